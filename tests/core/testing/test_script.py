"""Parsing of test files: statements, requests, includes, the head (testing-4 to testing-6)."""

from __future__ import annotations

import pytest

from rowcall.core.testing.header import Header, read_header
from rowcall.core.testing.request import Answer, Expectation, HttpBlock, Stub
from rowcall.core.testing.script import (
    HttpStep,
    Include,
    InvalidBlock,
    Note,
    Remark,
    ScriptWarning,
    SqlStep,
    Step,
    StubStep,
    read_script,
)


def steps(text: str) -> list[Step]:
    return [step for step in read_script(text, "t.sql") if not isinstance(step, Note | Remark)]


def block(text: str) -> HttpBlock:
    (step,) = steps(f"/*\n{text}\n*/")
    assert isinstance(step, HttpStep)
    return step.block


def test_statements_requests_and_blocks_are_read_in_the_order_of_the_file() -> None:
    text = """-- first
select 1; select ';' -- not here
;
/* an ordinary remark */
update t set a = 1
/* # said before
   // it

   HTTP get /api/x?y=1 HTTP/1.1 */
do $$ begin assert true; end $$
"""
    values = [(type(step).__name__, step.line) for step in steps(text)]
    assert values == [("SqlStep", 2), ("SqlStep", 2), ("SqlStep", 5), ("HttpStep", 6), ("SqlStep", 10)]
    assert [step.do_block for step in steps(text) if isinstance(step, SqlStep)] == [False, False, False, True]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("select true,\n 'name'", "select true,"),
        ("  select " + "x" * 100, "select " + "x" * 73),
        ("\n\ndo $$ begin end $$", "assert block (line 3)"),
    ],
)
def test_a_statement_is_titled_by_its_beginning(text: str, title: str) -> None:
    (step,) = steps(text)
    assert isinstance(step, SqlStep)
    assert step.title == title


@pytest.mark.parametrize(
    "line",
    [
        "GET x",
        "get /x and more",
        "GET",
        "select 1",
        "-- GET /x",
        "HTTP",
    ],
)
def test_comments_without_a_request_line_are_ignored(line: str) -> None:
    assert steps(f"/* {line} */") == []


@pytest.mark.parametrize(
    "line",
    ["OPTIONS /x", "GET a/x", "GET /x and more", "GET /a /b", "EXPECT ROW", "STUB GET"],
)
def test_a_comment_that_resembles_a_block_gives_a_warning(line: str) -> None:
    (step,) = steps(f"\n/* {line} */")
    assert isinstance(step, ScriptWarning)
    assert step.line == 2
    assert step.message.startswith(f"'{line}' is a comment without effect; ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GET /x", HttpBlock("GET", "/x")),
        ("http delete /x?a=b HTTP/1.1", HttpBlock("DELETE", "/x?a=b")),
        ("GET /x\nAccept: text/html\naccept: a/b", HttpBlock("GET", "/x", (("accept", "a/b"),))),
        (
            "GET /x\n# @claim id=1\n// @claim r=a=b\n# @claim r=",
            HttpBlock("GET", "/x", claims=(("id", "1"), ("r", "a=b"), ("r", ""))),
        ),
        ("PATCH /x", HttpBlock("PATCH", "/x")),
        ("query /x", HttpBlock("QUERY", "/x")),
        ("GET /x\n# @response answer\nstray\n# words: no header", HttpBlock("GET", "/x", table="answer")),
        ("PUT /x\n\n\n  {\r\n  }  \n", HttpBlock("PUT", "/x", body="{\n  }")),
        ('PUT /x\n\n{"a":\r"\u2028\x85"}', HttpBlock("PUT", "/x", body='{"a":\n"\u2028\x85"}')),
        ("PUT /x\n\na: b\n# kept", HttpBlock("PUT", "/x", body="a: b\n# kept")),
        ("GET /x\n# @snapshot", HttpBlock("GET", "/x", snapshot=True)),
        ("GET /x\n\nHTTP/1.1 204 No Content", HttpBlock("GET", "/x", expected=Answer(204))),
        (
            "POST /x\n\nbody\n\nHTTP/1.1 200\nA: b\n\n[1]",
            HttpBlock("POST", "/x", body="body", expected=Answer(200, (("A", "b"),), "[1]")),
        ),
    ],
)  # fmt: skip
def test_a_request_is_read(text: str, expected: HttpBlock) -> None:
    assert block(text) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/*\nGET /x\n# @claim id\n*/", "name=value"),
        ("/*\nGET /x\n# @response a-b\n*/", "is not a name for a response table"),
        ("/*\nGET /x\n\nHTTP/1.1 200\nno header\n*/", "is not a header"),
        ("/* EXPECT ERROR 1 */", "SQLSTATE"),
        ("/* EXPECT ROWS */", "follow the statement"),
        ("select 1; /* EXPECT ROWS */ /* EXPECT ROWS */", "follow the statement"),
        ("/* STUB GET http://x\nwords */", "status line"),
    ],
)
def test_an_invalid_block_is_reported_with_the_reason(text: str, why: str) -> None:
    (broken,) = [step for step in steps(text) if isinstance(step, InvalidBlock)]
    assert why in broken.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1; /* EXPECT ROWS\n 1\n\n 2\n*/", Expectation("ROWS", rows=("1", "2"))),
        ("select 1 /* expect notice All is well */", Expectation("NOTICE", "All is well")),
        ("select 1;\n/* EXPECT ERROR 23505 some key */", Expectation("ERROR", "some key", "23505")),
    ],
)
def test_expectations_belong_to_the_preceding_statement(text: str, expected: Expectation) -> None:
    (step,) = steps(text)
    assert isinstance(step, SqlStep)
    assert step.expected == expected


def test_a_stub_is_a_url_and_a_response() -> None:
    (step,) = steps("/* STUB GET http://rates/{{any}}\nHTTP/1.1 503\nRetry-After: 1\n\n{}\n*/")
    assert isinstance(step, StubStep)
    assert step.stub == Stub("GET", "http://rates/{{any}}", Answer(503, (("Retry-After", "1"),), "{}"))
    fits = [step.stub.fits(method, url) for method, url in (
        ("GET", "http://rates/eur"), ("GET", "http://rates/eur?day=1"), ("POST", "http://rates/eur"), ("GET", "http://other/eur"),
    )]  # fmt: skip
    assert fits == [True, True, False, False]


@pytest.mark.parametrize(
    ("line", "include"),
    [
        (r"\i fixtures/beds.sql", ("fixtures/beds.sql", False)),
        (r"\ir 'my fixtures.sql';", ("my fixtures.sql", True)),
        ("  \\IR ../x.sql", ("../x.sql", True)),
    ],
)
def test_an_include_is_a_step_between_statements(line: str, include: tuple[str, bool]) -> None:
    first, second, third = steps(f"select 1;\n{line}\nselect 2")
    assert isinstance(second, Include)
    assert (second.path, second.relative, second.line) == (*include, 2)
    assert isinstance(first, SqlStep)
    assert isinstance(third, SqlStep)
    assert (third.text, third.line) == ("select 2", 3)


@pytest.mark.parametrize(
    "text", ["select 1 \\i x.sql", "select '\n\\i x.sql\n'", "select 1\n\\i x.sql", "\\include x", "\\i"]
)
def test_other_backslash_commands_are_part_of_the_sql(text: str) -> None:
    (step,) = steps(text)
    assert isinstance(step, SqlStep)
    assert step.text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-- @setup A, B\n-- words\n-- @SETUP C\nselect 1", Header(setup=("A", "B", "C"))),
        ("-- @tag Slow,beds\n-- @teardown A\n-- @connection one\n-- @connection two",
         Header(teardown=("A",), connection="two", tags=frozenset({"slow", "beds"}))),
        ("select 1;\n-- @tag late", Header()),
        ("/* closed */\n-- @tag late", Header()),
        ("-- tagged x\n-- @isolation Template", Header(isolation="template")),
    ],
)  # fmt: skip
def test_the_header_ends_with_the_first_statement_or_block(text: str, expected: Header) -> None:
    assert read_header(read_script(text, "t.sql")) == expected


def test_an_unknown_key_of_the_header_gives_a_warning() -> None:
    warnings = read_header(read_script("-- @tagged x\n--\n-- @tag\nselect 1;\n-- @late", "t.sql")).warnings
    assert [(doubt.line, doubt.message.partition(";")[0]) for doubt in warnings] == [
        (1, "'@tagged x' has no effect"),
        (3, "'@tag' has no effect"),
    ]


def test_an_unknown_directive_is_a_warning() -> None:
    doubt, step = steps("/* GET /x\n# @other 1 */")
    assert isinstance(doubt, ScriptWarning)
    assert doubt.message == "'# @other 1' has no effect; known are @claim, @response and @snapshot"
    assert isinstance(step, HttpStep)
