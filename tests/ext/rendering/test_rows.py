"""Whole results of a real server rendered as bodies: brackets, keys, scalars, plans."""

from __future__ import annotations

import json

import pytest

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.rows import Renderer
from tests.ext import catalogue
from tests.ext.conftest import Connection
from tests.ext.results import address_of
from tests.ext.twins.rows import Column, render_rows, render_scalar
from tests.ext.twins.types import Array, Scalar


@pytest.fixture(scope="module")
def codecs(connection: Connection) -> Codecs:
    connection.execute("create type gauge as (id int, label text)")
    return catalogue.load(connection)


def body(renderer: Renderer, connection: Connection, sql: str) -> bytes:
    cursor = connection.execute(sql.encode())
    return renderer.render_result(address_of(cursor))


def rows(codecs: Codecs, *keys: str, is_set: bool = True, named: bool = True) -> Renderer:
    return Renderer(codecs, "rows", is_set, named, [key.encode() for key in keys])


def scalar(codecs: Codecs) -> Renderer:
    return Renderer(codecs, "scalar", False, False, [])


def test_a_set_of_rows_is_an_array_of_objects(connection: Connection, codecs: Codecs) -> None:
    sql = "select n, n % 2 = 0, 'x\"' || n, null::int from generate_series(1, 2) n"
    assert (
        body(rows(codecs, "id", "isEven", 'the "label"', "none"), connection, sql)
        == b'[{"id":1,"isEven":false,"the \\"label\\"":"x\\"1","none":null},'
        b'{"id":2,"isEven":true,"the \\"label\\"":"x\\"2","none":null}]'
    )


def test_a_set_without_rows_is_an_empty_array(connection: Connection, codecs: Codecs) -> None:
    assert body(rows(codecs, "n"), connection, "select 1 where false") == b"[]"


def test_a_single_row_has_no_brackets(connection: Connection, codecs: Codecs) -> None:
    assert body(rows(codecs, "n", "t", is_set=False), connection, "select 1, 'x'") == b'{"n":1,"t":"x"}'


def test_a_single_result_without_rows_is_empty(connection: Connection, codecs: Codecs) -> None:
    assert body(rows(codecs, "n", is_set=False), connection, "select 1 where false") == b""


def test_unnamed_values_have_no_keys(connection: Connection, codecs: Codecs) -> None:
    unnamed = rows(codecs, named=False)
    assert body(unnamed, connection, "select n from generate_series(1, 3) n") == b"[1,2,3]"
    assert body(unnamed, connection, "values ('a'), (null)") == b'["a",null]'
    assert body(unnamed, connection, "values (array[1, 2]), (array[3])") == b"[[1,2],[3]]"
    assert body(unnamed, connection, """values ('{"k" : 1}'::json)""") == b'[{"k" : 1}]'


def test_an_anonymous_record_is_an_array_of_strings(connection: Connection, codecs: Codecs) -> None:
    sql = "values (row(1, 'x')), (row(null, 'y'))"
    assert body(rows(codecs, named=False), connection, sql) == b'[["1","x"],[null,"y"]]'


def test_a_composite_column_is_an_object(connection: Connection, codecs: Codecs) -> None:
    sql = "select row(1, 'a')::gauge, array[row(2, 'b')::gauge]"
    expected = b'[{"c":{"id":1,"label":"a"},"all":[{"id":2,"label":"b"}]}]'
    assert body(rows(codecs, "c", "all"), connection, sql) == expected


def test_without_keys_the_column_names_are_used(connection: Connection, codecs: Codecs) -> None:
    assert body(rows(codecs), connection, 'select 1 as "a\\b", 2 as two') == b'[{"a\\\\b":1,"two":2}]'


def test_equal_keys_are_all_written(connection: Connection, codecs: Codecs) -> None:
    assert body(rows(codecs, "label", "label"), connection, "select 'a', 'b'") == b'[{"label":"a","label":"b"}]'


def test_a_row_without_columns_is_an_empty_object(connection: Connection, codecs: Codecs) -> None:
    assert body(rows(codecs), connection, "select from generate_series(1, 2)") == b"[{},{}]"


def test_a_changed_result_description_is_rendered_by_a_new_plan(connection: Connection, codecs: Codecs) -> None:
    renderer = rows(codecs)
    assert body(renderer, connection, "select 1 as a") == b'[{"a":1}]'
    assert body(renderer, connection, "select '1' as a") == b'[{"a":"1"}]'
    assert body(renderer, connection, "select '1' as b, true as a") == b'[{"b":"1","a":true}]'
    assert body(renderer, connection, "select 1 as c") == b'[{"c":1}]'


def test_columns_that_do_not_fit_the_keys_are_refused(connection: Connection, codecs: Codecs) -> None:
    with pytest.raises(ValueError, match="2 columns where 1 were expected"):
        body(rows(codecs, "a"), connection, "select 1, 2")
    with pytest.raises(ValueError, match="2 columns where one value was expected"):
        body(scalar(codecs), connection, "select 1, 2")


def test_an_unknown_path_is_refused(codecs: Codecs) -> None:
    with pytest.raises(ValueError, match="path must be"):
        Renderer(codecs, "table", True, True, [])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select true", b"t"),
        ("select timestamp '2021-01-31 12:34:56.789'", b"2021-01-31 12:34:56.789"),
        ("select 'say \"hi\"'", b'say "hi"'),
        ("select 'NaN'::float8", b"NaN"),
        ("""select '{"k" : 1}'::json""", b'{"k" : 1}'),
        ("select array['a b', null]", b'["a b",null]'),
        ("select array[timestamp '2021-01-31 12:00']", b'["2021-01-31T12:00:00"]'),
        ("select array[row(1, 'a')::gauge]", b'[{"id":1,"label":"a"}]'),
        ("select '\\x00ff5c'::bytea", b"\x00\xff\x5c"),
        ("select ''::bytea", b""),
        ("select null::bytea", b""),
    ],
)
def test_a_scalar_is_rendered_as_text_array_or_bytes(
    connection: Connection, codecs: Codecs, sql: str, expected: bytes
) -> None:
    assert body(scalar(codecs), connection, sql) == expected


def test_bytea_in_escape_format_is_written_unchanged(connection: Connection, codecs: Codecs) -> None:
    with connection.transaction():
        connection.execute("set local bytea_output = 'escape'")
        assert body(scalar(codecs), connection, "select 'ab'::bytea") == b"ab"


def test_rows_and_their_twin_write_the_same_bytes(connection: Connection, codecs: Codecs) -> None:
    sql = """
        select n, 'text "' || n, array[n, null], timestamp '2024-01-01' + n * interval '1 hour', n % 3 = 0
        from generate_series(1, 50) n
    """
    columns = [
        Column("n", Scalar("number")),
        Column("t", Scalar("text")),
        Column("a", Array(Scalar("number"))),
        Column("at", Scalar("datetime")),
        Column("b", Scalar("boolean")),
    ]
    result = connection.execute(sql).pgresult
    assert result is not None
    texts = [[_text(result.get_value(row, column)) for column in range(5)] for row in range(result.ntuples)]
    rendered = body(rows(codecs, *(column.key for column in columns)), connection, sql)
    assert rendered.decode() == render_rows(columns, texts)
    assert len(json.loads(rendered)) == 50


def test_scalars_and_their_twin_write_the_same_bytes(connection: Connection, codecs: Codecs) -> None:
    for sql, kind in (("select array[1, 2]", Array(Scalar("number"))), ("select 'x'", Scalar("text"))):
        text = connection.execute(f"select ({sql})::text".encode()).fetchall()[0][0]
        assert body(scalar(codecs), connection, sql).decode() == render_scalar(kind, text)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@pytest.mark.parametrize(
    ("value", "blank_is_null", "rendered"),
    [
        ("(null, null)", True, "null"),
        ("(null, null)", False, '{"id":null,"label":null}'),
        ("(null, '')", True, '{"id":null,"label":""}'),
        ("(null, ',')", True, '{"id":null,"label":","}'),
        ("(1, null)", True, '{"id":1,"label":null}'),
    ],
)
def test_a_composite_of_nulls_can_be_rendered_as_null(
    connection: Connection, codecs: Codecs, value: str, blank_is_null: bool, rendered: str
) -> None:
    renderer = Renderer(codecs, "rows", is_set=False, named=False, keys=[], blank_is_null=blank_is_null)
    assert body(renderer, connection, f"select {value}::gauge").decode() == rendered


def test_only_top_level_composites_of_nulls_are_rendered_as_null(connection: Connection, codecs: Codecs) -> None:
    renderer = Renderer(codecs, "rows", is_set=False, named=False, keys=[], blank_is_null=True)
    assert body(renderer, connection, "select array[(null, null)::gauge]") == b'[{"id":null,"label":null}]'


def test_fields_of_a_nested_column_are_rendered_as_columns(connection: Connection, codecs: Codecs) -> None:
    connection.execute("create domain score as int; create type try as (at timestamp, score score, label text)")
    registry = catalogue.load(connection)
    renderer = Renderer(registry, "rows", is_set=False, named=False, keys=[], blank_is_null=True)
    value = "(timestamp '2024-01-15 10:30', 7, 'a b')::try"
    nested = b'{"at":"2024-01-15T10:30:00","score":7,"label":"a b"}'
    assert body(renderer, connection, f"select {value}") == nested
    assert body(renderer, connection, f"select array[{value}]") == (
        b'[{"at":"2024-01-15T10:30:00","score":"7","label":"a b"}]'
    )


def test_keys_and_values_of_every_length_are_copied_completely(connection: Connection, codecs: Codecs) -> None:
    """Short keys are copied in overlapping pieces, which depend on their length."""
    lengths = range(1, 41)
    digits = "1234567890" * 4
    columns = ", ".join(f"{digits[:n]}::numeric, '{{{digits[:n]}}}'::numeric[]" for n in lengths)
    keys = [key for n in lengths for key in ("k" * n, "a" * n)]
    members = ",".join(f'"{"k" * n}":{digits[:n]},"{"a" * n}":[{digits[:n]}]' for n in lengths)
    assert body(rows(codecs, *keys), connection, f"select {columns}").decode() == f"[{{{members}}}]"


def test_keys_of_composites_of_every_length_are_copied_completely(connection: Connection) -> None:
    lengths = range(1, 41)
    with connection.transaction(force_rollback=True):
        fields = ", ".join(f"{'k' * n} numeric" for n in lengths)
        connection.execute(f"create type wide_keys as ({fields})".encode())
        values = ", ".join(str(n) for n in lengths)
        members = ",".join(f'"{"k" * n}":{n}' for n in lengths)
        renderer = rows(catalogue.load(connection), "c")
        assert body(renderer, connection, f"select row({values})::wide_keys").decode() == f'[{{"c":{{{members}}}}}]'
