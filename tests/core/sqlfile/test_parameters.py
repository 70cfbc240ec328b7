"""Placeholders, their types in comments, and comments about single statements."""

from __future__ import annotations

import pytest

from rowcall.core.sqlfile.reading import SqlFileError, asks_for_endpoint, excerpt, place, read_file


def names(sql: str) -> tuple[str, ...]:
    return read_file(sql).parameters.names


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select :bed_id, :_x, :X1", ("bed_id", "_x", "X1")),
        ("select 1::int, x::text", ()),
        ("select f(a := 1)", ()),
        ("select arr[1:3], arr[1 : n]", ()),
        ("select arr[1:n]", ("n",)),
        ("select ':a', \":b\", $t$ :c $t$ -- :d\n /* :e */", ()),
        ("select a ? 'b', a ?| b, a @? c", ()),
        ("select :b, :B, :a", ("b", "a")),
        ("select 1:::x", ("x",)),
        ("select $1, $3", ("$1", "$2", "$3")),
        ("select '$5', $$ $6 $$, a$7", ()),
        ("select 1", ()),
    ],
)
def test_placeholders_are_found_outside_of_strings_and_comments_only(sql: str, expected: tuple[str, ...]) -> None:
    assert names(sql) == expected


def test_parameters_are_numbered_for_each_statement() -> None:
    first, second, third = read_file("select :a, :b, :a; select :b; select 1").parameters.statements
    assert (first.text, first.numbers) == ("select $1, $2, $1", (0, 1))
    assert (second.text, second.numbers) == ("select $1", (1,))
    assert (third.text, third.numbers) == ("select 1", ())


def test_positional_placeholders_are_numbered_and_gaps_are_parameters() -> None:
    (statement,) = read_file("select $3, $2").parameters.statements
    assert (statement.text, statement.numbers) == ("select $2, $1", (1, 2))


def test_both_kinds_in_one_file_are_an_error_with_a_position() -> None:
    with pytest.raises(SqlFileError, match="not both kinds") as caught:
        read_file("select $1;\nselect :a")
    assert (caught.value.line, caught.value.column) == (2, 8)


@pytest.mark.parametrize("number", ["$0", "$65536", "$99999999999999"])
def test_impossible_numbers_are_a_mistake(number: str) -> None:
    with pytest.raises(SqlFileError, match="is not between"):
        read_file(f"select {number}")


def test_a_position_in_the_numbered_text_maps_to_the_file() -> None:
    sql = "-- head\nselect :long_name,\n  wrong"
    (statement,) = read_file(sql).parameters.statements
    offset = statement.in_file(statement.text.index("wrong"))
    assert sql[offset:] == "wrong"
    assert place(sql, offset) == (3, 3)
    assert excerpt(sql, 3, 3) == "  wrong\n  ^"


def test_the_excerpt_of_a_long_line_is_cut_around_the_position() -> None:
    shown, caret = excerpt("x" * 5000 + "!", 1, 5001).split("\n")
    assert len(shown) <= 120
    assert shown[caret.index("^")] == "!"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("param $1 id int", "int"),
        ("@param $1 id integer[];", "integer[]"),
        ("param $1 is id bigint default 3", "bigint"),
        ("parameter $1 type is timestamptz", "timestamptz"),
        ("param $1 id", None),
        ("param $1 id default 3", None),
        ("param $1 default int", None),
        ("param $1 is upload metadata", None),
        ("param $1 meta is upload metadata", None),
        ("param $1 is hash of int", None),
        ("param $2 id int", None),
    ],
)
def test_a_param_line_may_give_a_type(line: str, expected: str | None) -> None:
    hint = read_file(f"-- {line}\nselect $1").notes.hints.get(0)
    assert (None if hint is None else hint.readings[-1]) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("param :id int", "int"),
        ("param id int", None),
        ("param :id number", None),
        ("param :id text default 'x'", "text"),
    ],
)
def test_a_lone_type_name_after_a_colon_is_a_type(line: str, expected: str | None) -> None:
    hint = read_file(f"-- {line}\nselect :id").notes.hints.get(0)
    assert (None if hint is None else hint.type_name) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("param $1 id ;", ()),
        ("param $1 type is ;", ()),
        ("param $1 type is ;; default 1", ()),
        ("param $1 id timestamp with time zone ;", ("timestamp with time zone", "timestamp")),
    ],
)
def test_a_semicolon_is_not_part_of_a_type(line: str, expected: tuple[str, ...]) -> None:
    hint = read_file(f"-- {line}\nselect $1").notes.hints.get(0)
    assert (() if hint is None else hint.readings) == expected


@pytest.mark.parametrize(
    "line",
    [
        "param $1 id",
        "param $1 is id",
        "param $1 id default is",
        "param $1 id is upload metadata",
        "param $1 id is the number of the order",
    ],
)
def test_a_renamed_parameter_is_found_by_its_new_name(line: str) -> None:
    notes = read_file(f"-- {line}\n-- param id type is int\nselect $1").notes
    assert notes.hints[0].type_name == "int"


@pytest.mark.parametrize(
    "line",
    [
        "param $1 is hash of $2",
        "param $1 is upload metadata",
        "param $1 is merge patch",
        "param $1 id is upload metadata",
        "param $1 default is",
    ],
)
def test_other_forms_of_param_declare_no_type(line: str) -> None:
    assert read_file(f"-- {line}\nselect $1, $2").notes.hints == {}


def test_virtual_parameters_are_listed_with_their_lines() -> None:
    lines = ("@define_param format", "define_param Count int", "define_param a ;", "define_param c int; prose")
    notes = read_file("\n".join([*(f"-- {line}" for line in lines), "select 1"])).notes
    virtual = [(item.name, item.readings) for item in notes.virtual]
    assert virtual == [
        ("format", ("text", "text")),
        ("Count", ("int", "int")),
        ("a", ("text", "text")),
        ("c", ("int; prose", "int")),
    ]
    assert notes.claimed == set(lines)


def test_a_virtual_parameter_without_a_name_is_reported() -> None:
    notes = read_file("-- @define_param\nselect 1").notes
    assert (notes.virtual, notes.warnings) == ([], ["'@define_param' defines no parameter: a name has to follow"])


def test_annotations_apply_to_their_statement() -> None:
    sql = """
    select 1; -- @result is first
    -- @single
    -- result second
    select 2;
    select 3; /* skip */
    -- returns setof something
    -- @returns int;
    -- Returns what it is, they say
    select 4
    """
    item, two, three, four = read_file(sql).notes.statements
    assert (item.name, item.single, item.skip) == ("first", False, False)
    assert (two.name, two.single, two.skip) == ("second", True, False)
    assert (three.name, three.skip) == (None, True)
    lines = [(item.type_name, item.certain) for item in four.returns_lines]
    assert lines == [("setof something", False), ("int", True)]


@pytest.mark.parametrize(
    "line", ["Results of today", "result", "singles", "skip the rest", "single file only", "Returns, as said, a lot!"]
)
def test_sentences_are_not_annotations_of_statements(line: str) -> None:
    (notes,) = read_file(f"-- {line}\nselect 1").notes.statements
    assert (notes.name, notes.single, notes.skip, notes.returns_lines) == (None, False, False, [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("-- HTTP\nselect 1", True),
        ("-- @http get /x\nselect 1", True),
        ("/* first\n   HTTP GET */ select 1", True),
        ("select 1 -- http\tget", True),
        ("select 'HTTP GET'", False),
        ("-- see https://x\nselect 1", False),
        ("-- mcp\nselect 1", False),
    ],
)
def test_a_comment_line_exposes_a_file(sql: str, expected: bool) -> None:
    assert asks_for_endpoint(sql, frozenset()) is expected


def test_other_annotations_expose_a_file_too() -> None:
    assert asks_for_endpoint("-- @mcp A tool\nselect 1", frozenset({"mcp"}))


def test_in_header_scope_later_comments_do_not_expose_a_file() -> None:
    sql = "select 1;\n-- HTTP\nselect 2"
    assert asks_for_endpoint(sql, frozenset())
    assert not asks_for_endpoint(sql, frozenset(), whole=False)
    assert read_file(sql, whole=False).comment == ""


def test_in_header_scope_later_comments_annotate_statements_but_no_parameters() -> None:
    sql = "-- param $1 type is int\nselect $1; -- define_param x\n-- param $1 b text\n-- result last\nselect 2"
    every, head = read_file(sql).notes, read_file(sql, whole=False).notes
    assert (every.hints[0].type_name, [item.name for item in every.virtual]) == ("text", ["x"])
    assert (head.hints[0].type_name, head.virtual) == ("int", [])
    assert [item.name for item in head.statements] == [None, "last"]


@pytest.mark.parametrize("copy", ["copy t from stdin", "COPY (select 1) TO -- out\n STDOUT with (format csv)"])
def test_copy_with_the_client_is_refused(copy: str) -> None:
    with pytest.raises(SqlFileError, match="cannot run through an endpoint") as caught:
        read_file(f"-- HTTP POST\nselect 1;\n {copy}")
    assert (caught.value.line, caught.value.column) == (3, 2)


@pytest.mark.parametrize(
    "statement", ["copy t from '/tmp/stdin'", "select 1 as copy from stdin", "copy stdin to program 'x'"]
)
def test_copies_without_the_client_and_quoted_copy_texts_are_accepted(statement: str) -> None:
    assert len(read_file(f"-- HTTP POST\n{statement}").statements) == 1
