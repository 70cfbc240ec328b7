"""Inserts whose rows are passed as arrays, compared with the same inserts whose rows are JSON.

Source: PostgREST's documentation, Tables and Views.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.postgrest.plan import read_plan
from rowcall.core.postgrest.request.payload import Payload, PayloadKind
from rowcall.core.postgrest.request.query_string import parse_query
from rowcall.core.postgrest.schema import Column, Relation, Schema
from rowcall.core.postgrest.sql.writes import Conflict, Returning, insert_statement
from rowcall.service.postgrest.planning.many_rows import ManyRows
from tests.harness.database import Database
from tests.harness.effort import examples

TYPES = (
    *("smallint", "integer", "bigint", "real", "double precision", "numeric", "numeric(4,2)", "numeric(5,0)"),
    *("boolean", "uuid", "date", "timestamp without time zone", "timestamp(0) without time zone", "time(1)"),
    *("timestamp with time zone", "timestamp(3) with time zone", "time without time zone", "text", "varchar"),
    *("character varying(3)", "character(3)", "json", "jsonb"),
)
"""Types that may be passed as arrays."""
OTHERS = ("integer[]", "text[]", "bytea", "bit(3)", "interval", "inet", "money", "int4range", '"char"', "name", "xml")
VALUES = r"""
"a" "" "1" " 1 " "+1" "-1" "1.5" "1e3" ".5" "5." "00" 1 -5 0 -0 1.0 -0.0 1.50 1e2 1.5e-20 0.1000000000000000055511151231
9.994 9.995 99.994 99.995 -99.994 999.9 1234 99999 99999.4 32767 32768 -32768 2147483647 2147483648 9007199254740993
9223372036854775807 -9223372036854775808 9223372036854775808 12345678901234567890 123456789012345678901234567890
3e38 1e39 1e400 true false null "null" "NULL" "true" "TRUE" "yes" "2024-02-29" "2023-02-29" "2024-02-29T12:00:00+02"
"2024-02-29 12:00:00.9999999" "2024-02-29t23:59:59.95Z" "2024-02-29T12:00:00.123456789-03:30" "0001-01-01T00:00:00Z"
"9999-12-31T23:59:59.999Z" "0000-01-01" "12:00:00" "23:59:59.99" "24:00:00" "infinity" "NaN" "now" "{1,2}" [1,2]
["a",null] {"a":1} {"a":1,"a":[1e5]} {"b":{"c":"\u00e9\"\\"}} [] "\u0041\u00e9\n" "a\"b\\c" "a\\u0000" "é€😀" "abc "
"  " "0a7c4b1e-6f0e-4c1b-8d3a-2b1f0c9d8e7f" "0A7C4B1E6F0E4C1B8D3A2B1F0C9D8E7F" "{0a7c4b1e-6f0e-4c1b-8d3a-2b1f0c9d8e7f}"
"(0a7c4b1e-6f0e-4c1b-8d3a-2b1f0c9d8e7f)" "101" "calm" "[1,5)" "1 day"
"""
"""JSON of values, each for a column of each type."""
PARTS = re.findall(r'"(?:[^"\\]|\\.)*"|\{.*?\}+|\[.*?\]|\S+', VALUES)
TEXTS = (
    st.text(max_size=5)
    | st.from_regex(r"\A *[-+]?[0-9]{0,20}(\.[0-9]{0,9})?(e[-+]?[0-9]{1,2})? *\Z")
    | st.from_regex(r"\A[0-9]{4}-[01][0-9]-[0-3][0-9]([Tt ][0-2][0-9]:[0-6][0-9](:[0-5][0-9](\.[0-9]{1,8})?)?)?\Z")
    | st.from_regex(r"\A2024-0[1-9]-0[1-9]T0[0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,8})?(Z|[-+][01][0-9](:[0-9]{2})?)\Z")
    | st.from_regex(r"\A[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]{1,8})?\Z")
    | st.uuids().map(str)
)
VALUE = st.recursive(
    st.none() | st.booleans() | TEXTS | st.integers(-(2**65), 2**65) | st.integers(-(2**16), 2**16)
    | st.floats(-1e3, 1e3) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
RETURNING = Returning(read_plan(Schema({("api", "x"): Relation("api", "x", ())}, {}), ("api", "x"), parse_query("")))


def relation_of(number: int, type_name: str) -> Relation:
    columns = (Column("n", "integer", "integer"), Column("v", type_name, type_name))
    return Relation("api", f"t{number}", columns, ("n",))


@pytest.fixture(scope="module")
def connection(database: Database) -> Iterator[psycopg.Connection]:
    database.execute("create schema api")
    for number, name in enumerate(TYPES + OTHERS):
        database.execute(f"create table api.t{number} (n int primary key, v {name}, place serial)")
    with psycopg.connect(database.conninfo, autocommit=True) as result:
        yield result


@pytest.fixture(scope="module")
def schema(connection: psycopg.Connection) -> Schema:
    rows = connection.execute(
        "select attrelid::regclass::text, format_type(atttypid, atttypmod) from pg_attribute "
        "where attrelid::regclass::text like 'api.t%' and attname = 'v'"
    ).fetchall()
    types: dict[str, str] = dict(rows)
    return Schema({("api", f"t{n}"): relation_of(n, types[f"api.t{n}"]) for n in range(len(TYPES + OTHERS))}, {})


def result_of(connection: psycopg.Connection, schema: Schema, number: int, payload: Payload) -> Any:
    """Return the rows of a table in the order of an insert, which is rolled back, or the error."""
    relation = schema.relations["api", f"t{number}"]
    statement = insert_statement(schema, relation, payload, RETURNING, conflict=Conflict(("n",), merge=True))
    try:
        with connection.transaction(force_rollback=True), psycopg.RawCursor(connection) as cursor:
            cursor.execute(statement.sql.encode(), statement.parameters)
            counts = cursor.fetchone()
            return counts, cursor.execute(f"select n, v::text from api.t{number} order by place".encode()).fetchall()
    except psycopg.Error as error:
        return error.diag.sqlstate, error.diag.message_primary, error.diag.message_detail


def body_of(values: list[str]) -> str:
    """Return rows with these values (JSON)."""
    rows = [f'{{"n":{place},"v":{value}}}' for place, value in enumerate(values)]
    return f"[{','.join(rows)}]"


def is_accepted(schema: Schema, number: int, value: str) -> bool:
    return ManyRows(schema).read(("api", f"t{number}"), body_of([value]).encode(), None) is not None


def compare(connection: psycopg.Connection, schema: Schema, number: int, values: list[str]) -> None:
    """Insert accepted values (JSON) as arrays and from JSON, and compare."""
    body = body_of(values)
    payload = ManyRows(schema).read(("api", f"t{number}"), body.encode(), None)
    assert payload is not None
    result = result_of(connection, schema, number, payload)
    document = Payload(PayloadKind.JSON, body, ("n", "v"), is_array=True, rows=len(values))
    assert result == result_of(connection, schema, number, document)
    assert len(result[1]) == len(values), "values that may be invalid are passed as arrays"


@pytest.mark.parametrize("number", range(len(TYPES)), ids=TYPES)
def test_values_are_converted_as_from_json(connection: psycopg.Connection, schema: Schema, number: int) -> None:
    accepted = [value for value in PARTS if is_accepted(schema, number, value)]
    assert len(accepted) > 1
    compare(connection, schema, number, accepted)


@pytest.mark.slow
@settings(max_examples=examples(2400), deadline=None)
@given(st.integers(0, len(TYPES) - 1), st.lists(VALUE, min_size=4, max_size=12), st.booleans())
def test_random_values_are_converted_as_from_json(
    connection: psycopg.Connection, schema: Schema, number: int, values: list[Any], ascii_only: bool
) -> None:
    texts = [json.dumps(value, ensure_ascii=ascii_only) for value in values]
    accepted = [text for text in texts if is_accepted(schema, number, text)]
    if accepted:
        compare(connection, schema, number, accepted)


@pytest.mark.parametrize("number", range(len(TYPES), len(TYPES + OTHERS)), ids=OTHERS)
def test_other_types_are_read_from_json(schema: Schema, number: int) -> None:
    assert not is_accepted(schema, number, "null")


def test_a_domain_is_read_from_json() -> None:
    columns = (Column("n", "integer", "integer", domain="api.number"),)
    schema = Schema({("api", "t"): Relation("api", "t", columns)}, {})
    assert ManyRows(schema).read(("api", "t"), b'[{"n":1}]', None) is None


def test_unknown_names_are_left_to_the_error(schema: Schema) -> None:
    many = ManyRows(schema)
    assert many.read(("api", "t1"), b'[{"n":1}]', None) is not None
    assert many.read(("api", "nope"), b'[{"n":1}]', None) is None
    assert many.read(("api", "t1"), b'[{"nope":1}]', None) is None
    assert many.read(("api", "t1"), b'[{"n":1}]', ("n", "nope")) is None


def test_columns_select_keys_of_the_objects(schema: Schema) -> None:
    many = ManyRows(schema)
    payload = many.read(("api", "t1"), b'[{"x":{},"n":1},{"x":0,"n":2}]', ("n", "n"))
    assert payload is not None
    assert (payload.keys, payload.arrays) == (("n",), ("{1,2}",))
    assert many.read(("api", "t1"), b'[{"n":1}]', ("n", "v")) is None
    assert many.read(("api", "t1"), b'[{"n":1}]', ()) is None


def test_the_statement_depends_neither_on_the_rows_nor_on_their_order_of_keys(schema: Schema) -> None:
    bodies = (b'[{"n":1,"v":2}]', b'[{"v":2,"n":1},{"v":null,"n":3}]')
    payloads = [ManyRows(schema).read(("api", "t1"), body, None) for body in bodies]
    assert None not in payloads
    relation = schema.relations["api", "t1"]
    statements = [insert_statement(schema, relation, payload, RETURNING) for payload in payloads if payload]
    assert len({statement.sql for statement in statements}) == 1
    assert [statement.parameters for statement in statements] == [("{1}", "{2}"), ("{1,3}", "{2,NULL}")]
