"""The vectors (`tests.harness.vectors`) through the real service: each value as a column, as an element of an array,
as a field of a nested column and as a field of a composite in an array.

A vector says what one place gives. Where another place differs, the difference has a name (`in_column`, `in_array`).
"""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.vectors import vectors
from tests.http.conftest import Serve

VECTORS = vectors()
# The `xmlparse` of a server built without libxml, an extension that is not installed.
NOT_ON_THIS_SERVER = (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile)
DOMAINS = ("short_txt", "pos_int", "draught", "callsign")
BLANK = re.compile(r'("at(?:Ts|Tz)":"\d{4,}-\d\d-\d\d) ')
"""Between date and time, in the fields of `richbox`."""
FUNCTION = """
create type field_{number} as (v {type});
create function vector_{number}() returns table (n int, v {type}, f field_{number}, fs field_{number}[]{array_column})
language sql stable as $vector$
  select {number}, s.v, row(s.v)::field_{number}, array[row(s.v)::field_{number}]{array_value}
  from (select (x.v)::{type} as v from ({sql}) x) s
$vector$;
comment on function vector_{number}() is e'HTTP GET /vectors/{number}\\nnested';
"""
RECORD = """
create function vector_{number}() returns table (n int, v record) language sql stable as $vector$
  select {number}, x.v from ({sql}) x
$vector$;
comment on function vector_{number}() is 'HTTP GET /vectors/{number}';
"""


def is_array(vector: dict[str, Any]) -> bool:
    return str(vector["pg_type"]).endswith("[]")


def function(number: int, vector: dict[str, Any]) -> str:
    """SQL that serves a vector's value in every place that its type may stand in."""
    if vector["context"] == "record":
        return RECORD.format(number=number, sql=vector["sql"])
    column, value = ("", "") if is_array(vector) else (f", e {vector['pg_type']}[]", ", array[s.v]")
    return FUNCTION.format(
        number=number, type=vector["pg_type"], sql=vector["sql"], array_column=column, array_value=value
    )


def meaning(text: str) -> Any:
    """JSON with its numbers and keys to the letter, so that a lost digit or a doubled key shows."""
    return json.loads(text, parse_int=str, parse_float=str, object_pairs_hook=lambda pairs: pairs)


def expected_json(vector: dict[str, Any]) -> str:
    """Return the JSON of a vector. Timestamps in composites have `T` instead of a blank at every depth
    (rendering-26)."""
    return BLANK.sub(r"\1T", vector.get("recommended", vector["json"]))


def in_column(vector: dict[str, Any], expected: str) -> Any:
    """A composite column of a function stands for its fields as columns: it is null where all of them are, and they
    are rendered as in columns (rendering-19)."""
    value = meaning(expected)
    if vector["context"] != "composite" or value is None:
        return value
    if re.fullmatch(r"\(,*\)", vector["pg_text"]):
        return None
    return value


def in_array(vector: dict[str, Any], expected: str) -> str:
    """Inside arrays, and in the composites in them, a domain is text, whatever its base type (7.2, 8.5)."""
    text = vector["pg_text"]
    return json.dumps(text) if vector["pg_type"] in DOMAINS and text is not None else expected


@pytest.fixture(scope="module")
def missing(database: Database) -> set[int]:
    """Makes the types and a function for every vector; gives the numbers of those that this server cannot make."""
    failed: set[int] = set()
    refused: set[str] = set()
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        for statement in dict.fromkeys(statement for vector in VECTORS for statement in vector.get("setup", [])):
            try:
                connection.execute(statement)
            except NOT_ON_THIS_SERVER:
                refused.add(statement)
        for number, vector in enumerate(VECTORS):
            try:
                if not refused.isdisjoint(vector.get("setup", [])):
                    raise psycopg.errors.FeatureNotSupported
                connection.execute(vector["sql"])
            except NOT_ON_THIS_SERVER:
                failed.add(number)
            else:
                connection.execute(function(number, vector).encode())
    return failed


@pytest.fixture(scope="module")
def services(database: Database, serve: Serve, missing: set[int]) -> dict[bool, Service]:
    """By `ResolveNestedCompositeTypes`."""
    key = "Service:RoutineOptions:ResolveNestedCompositeTypes"
    return {resolve: serve(database, "", {key: str(resolve).lower()}) for resolve in (True, False)}


@pytest.mark.parametrize(
    ("number", "vector"),
    list(enumerate(VECTORS)),
    ids=[f"{vector['context']}-{vector['pg_type']}-{vector['note'] or 'plain'}" for vector in VECTORS],
)
def test_each_vector_is_served_as_expected(
    number: int, vector: dict[str, Any], services: dict[bool, Service], missing: set[int]
) -> None:
    if number in missing:
        pytest.skip(f"this server cannot make it: {vector['sql']}")
    resolve = vector.get("resolve_nested", True)
    expected = expected_json(vector)
    response = services[resolve].get(f"/vectors/{number}")
    assert response.status_code == 200, response.text
    row = dict(meaning(response.text)[0])
    assert row["v"] == in_column(vector, expected)
    if "e" in row:
        assert row["e"] == [meaning(in_array(vector, expected))]
    if "f" in row and resolve:
        # Without resolving a field of a composite type is text, which has no vector.
        assert row["f"] == ([("v", meaning(expected))] if vector["pg_text"] is not None else None)
        assert row["fs"] == [[("v", meaning(in_array(vector, expected)))]]
