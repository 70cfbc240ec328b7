"""The twins, and so the Cython modules, compared with `to_json` of PostgreSQL.

Only values for which both are meant to agree: `to_json` has no tuple strings, and puts a `T` into every timestamp.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ext.conftest import Connection
from tests.ext.strategies import values_of
from tests.ext.twins import values as twin
from tests.ext.twins.arrays import print_array
from tests.ext.twins.types import Array, Composite, Scalar, Type
from tests.harness.effort import examples

TEXT, NUMBER, BOOLEAN, JSON = Scalar("text"), Scalar("number"), Scalar("boolean"), Scalar("json")
GAUGE = Composite((("id", NUMBER), ("label", TEXT)))
SHELF = Composite((("title", TEXT), ("main", GAUGE), ("doc", JSON), ("tags", Array(TEXT)), ("open", BOOLEAN)))
HALL = Composite((("tag", TEXT), ("shelf", SHELF), ("flags", Array(BOOLEAN))))
TYPES: list[tuple[str, Type]] = [
    ("text", TEXT),
    ("numeric", NUMBER),
    ("numeric[]", Array(NUMBER)),
    ("text[]", Array(TEXT)),
    ("json[]", Array(JSON)),
    ("timestamp[]", Array(Scalar("datetime"))),
    ("gauge", GAUGE),
    ("shelf", SHELF),
    ("hall", HALL),
]


@pytest.fixture(scope="module")
def server(connection: Connection) -> Connection:
    connection.execute("""
        create type gauge as (id numeric, label text);
        create type shelf as (title text, main gauge, doc json, tags text[], open boolean);
        create type hall as (tag text, shelf shelf, flags boolean[])
    """)
    return connection


def exact(text: str) -> Any:
    return json.loads(text, parse_int=str, parse_float=str)


def assert_as_postgres(server: Connection, name: str, kind: Type, text: str) -> None:
    # The server prints the value again, so that its text is compared and not that of the test. Null bytes and lone
    # surrogates, which it refuses, are never generated; inside json it keeps them as escapes.
    query = f"select v::text, to_json(v)::text from (select %s::{name} as v) s"
    printed, expected = server.execute(query.encode(), [text]).fetchall()[0]
    assert exact(twin.render_value(kind, printed)) == exact(expected)


@pytest.mark.parametrize(("name", "kind"), TYPES, ids=[name for name, _ in TYPES])
def test_the_twin_renders_values_as_to_json(server: Connection, name: str, kind: Type) -> None:
    @given(values_of(kind).filter(lambda value: value[0] is not None and "BC" not in value[0]))
    @settings(max_examples=examples(60), deadline=None)
    def holds(value: tuple[str | None, Any]) -> None:
        assert_as_postgres(server, name, kind, value[0] or "")

    holds()


def test_arrays_of_composites_are_rendered_as_by_to_json(server: Connection) -> None:
    @given(st.lists(values_of(HALL), max_size=3))
    @settings(max_examples=examples(60), deadline=None)
    def holds(values: list[tuple[str | None, Any]]) -> None:
        assert_as_postgres(server, "hall[]", Array(HALL), print_array([text for text, _ in values]))

    holds()
