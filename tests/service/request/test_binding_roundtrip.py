"""A value of PostgreSQL, written into a URL or a JSON body, bound, and read by PostgreSQL again, is the same value.

The session that reads has a DateStyle and a TimeZone that would change the meaning of careless texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta, timezone
from typing import Any
from urllib.parse import quote, quote_plus

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rowcall.core.binding.binding import Binder
from rowcall.ext.binding.parameters import FastBinder
from tests.harness.database import Database
from tests.harness.effort import examples
from tests.harness.parameters import binder, parameter

SENDABLE = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
OFFSETS = st.integers(-15 * 60, 15 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
DOCUMENTS = st.dictionaries(
    SENDABLE, SENDABLE | st.integers() | st.booleans() | st.none() | st.lists(SENDABLE), max_size=3
)
FAR_DATES = ["infinity", "-infinity", "0044-03-15 BC", "4713-01-01 BC", "20000-02-29", "294276-12-31"]
FAR_TIMES = ["infinity", "0044-03-15 10:00:00.5 BC", "0001-01-01 00:00:00", "1850-06-01 12:00", "20000-02-29 23:59:59"]

VALUES: dict[str, st.SearchStrategy[str]] = {
    "smallint": st.integers(-(2**15), 2**15 - 1).map(str),
    "integer": st.integers(-(2**31), 2**31 - 1).map(str),
    "bigint": st.integers(-(2**63), 2**63 - 1).map(str),
    "real": st.floats(width=32).map(repr),
    "double precision": st.floats().map(repr),
    "numeric": st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.sampled_from(["1.50", "1e400", "NaN", "Infinity"]),
    "boolean": st.booleans().map(str),
    "uuid": st.uuids().map(str),
    "text": SENDABLE,
    "character varying": SENDABLE,
    "jsonb": DOCUMENTS.map(json.dumps),
    "json": DOCUMENTS.map(lambda document: json.dumps(document, ensure_ascii=False, indent=1)),
    "date": st.dates().map(str) | st.sampled_from(FAR_DATES),
    "timestamp without time zone": st.datetimes().map(str) | st.sampled_from(FAR_TIMES),
    "timestamp with time zone": st.datetimes(timezones=OFFSETS).map(str) | st.sampled_from(FAR_TIMES),
    "time without time zone": st.times().map(str) | st.just("24:00:00"),
    "interval": st.timedeltas(timedelta(days=-99_999), timedelta(days=99_999)).map(
        lambda delta: f"{delta.total_seconds():.6f} seconds"
    ),
    "bytea": st.binary(max_size=20).map(lambda data: f"\\x{data.hex()}"),
    "inet": st.ip_addresses().map(str),
    "int4range": st.integers(0, 9).map(lambda low: f"[{low},{low + 3})"),
    "box": st.integers(0, 9).map(lambda low: f"({low + 1},{low + 1}),({low},{low})"),
    "point": st.integers(0, 9).map(lambda x: f"({x},0.5)"),
    "bit varying": st.text("01", max_size=9),
    "money": st.integers(-(10**9), 10**9).map(lambda cents: f"{cents / 100:.2f}"),
    "name": SENDABLE,
    '"char"': st.sampled_from(["", "q", '"', "\\"]),
    "jsonpath": st.sampled_from(["$.a", 'strict $."b c"[*] ? (@ > 1)']),
    "cidr": st.ip_addresses().map(str),
    "macaddr": st.binary(min_size=6, max_size=6).map(lambda data: data.hex(":")),
    "tsrange": st.datetimes().map(lambda moment: f'["{moment}","{moment}"]'),
    "tsvector": st.sampled_from(["a:1 b:2,3A", "'it''s' 'a b'"]),
    "oid": st.integers(0, 2**32 - 1).map(str),
}
TEXTUAL = frozenset({"text", "character varying", "name", '"char"'})
EVERY_TYPE = pytest.mark.parametrize("type_name", list(VALUES))
# `to_json` has no string for these that would say "this is a document and not its text".
NOT_IN_JSON_ARRAYS = {"json", "jsonb"}

ROUNDS = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(scope="module")
def connection(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.conninfo, autocommit=True) as opened:
        opened.execute("set datestyle = 'ISO, DMY'")
        opened.execute("set timezone = 'Asia/Kolkata'")
        yield opened


def texts_of(connection: psycopg.Connection, expression: str, value: object) -> Any:
    row = connection.execute(f"select {expression}".encode(), {"value": value}).fetchone()
    assert row is not None
    return row[0]


def bind_query(subject: Binder, query: str) -> bytes | None:
    [value] = (FastBinder(*subject.plain).bind_query(query) or subject.bind_query(query))[1]
    return value


def bind_body(subject: Binder, body: bytes) -> bytes | None:
    [value] = (FastBinder(*subject.plain).bind_body(body) or subject.bind_body(body))[1]
    return value


def decoded(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


@EVERY_TYPE
@ROUNDS
@given(data=st.data())
def test_scalars_survive_a_round_trip_through_a_url(
    connection: psycopg.Connection, type_name: str, data: st.DataObject
) -> None:
    original = texts_of(connection, f"%(value)s::{type_name}::text", data.draw(VALUES[type_name]))
    escape = data.draw(st.sampled_from([quote, quote_plus]))
    bound = bind_query(binder(parameter("x", type_name)), f"x={escape(original)}")
    stored = original if original or type_name in TEXTUAL else None
    assert texts_of(connection, f"%(value)s::{type_name}::text", decoded(bound)) == stored


@EVERY_TYPE
@ROUNDS
@given(data=st.data())
def test_scalars_survive_a_round_trip_through_a_body(
    connection: psycopg.Connection, type_name: str, data: st.DataObject
) -> None:
    value = data.draw(VALUES[type_name])
    original = texts_of(connection, f"%(value)s::{type_name}::text", value)
    written = texts_of(connection, f"to_json(%(value)s::{type_name})::text", value)
    bound = bind_body(binder(parameter("x", type_name)), f'{{"x":{written}}}'.encode())
    assert texts_of(connection, f"%(value)s::{type_name}::text", decoded(bound)) == original


@EVERY_TYPE
@ROUNDS
@given(data=st.data())
def test_arrays_survive_a_round_trip_through_a_url(
    connection: psycopg.Connection, type_name: str, data: st.DataObject
) -> None:
    values = data.draw(st.lists(VALUES[type_name], min_size=1, max_size=4))
    originals = texts_of(connection, f"%(value)s::text[]::{type_name}[]::text[]", values)
    query = "&".join(f"x={quote_plus(original)}" for original in originals)
    bound = bind_query(binder(parameter("x", f"{type_name}[]")), query)
    textual = type_name in TEXTUAL
    items = [original if original or textual else None for original in originals]
    assert texts_of(connection, f"%(value)s::{type_name}[]::text[]", decoded(bound)) == items


@pytest.mark.parametrize("type_name", [name for name in VALUES if name not in NOT_IN_JSON_ARRAYS])
@ROUNDS
@given(data=st.data())
def test_arrays_survive_a_round_trip_through_a_body(
    connection: psycopg.Connection, type_name: str, data: st.DataObject
) -> None:
    columns = data.draw(st.integers(1, 3))
    row = st.lists(VALUES[type_name] | st.none(), min_size=columns, max_size=columns)
    values = data.draw(st.lists(row, min_size=1, max_size=3) | row)
    original = texts_of(connection, f"%(value)s::text[]::{type_name}[]::text", values)
    written = texts_of(connection, f"to_json(%(value)s::text[]::{type_name}[])::text", values)
    bound = bind_body(binder(parameter("x", f"{type_name}[]")), f'{{"x":{written}}}'.encode())
    assert texts_of(connection, f"%(value)s::{type_name}[]::text", decoded(bound)) == original


@ROUNDS
@given(documents=st.lists(DOCUMENTS, max_size=3))
def test_arrays_of_documents_survive_a_round_trip_through_a_body(
    connection: psycopg.Connection, documents: list[dict[str, Any]]
) -> None:
    bound = bind_body(binder(parameter("x", "jsonb[]")), json.dumps({"x": documents}).encode())
    assert texts_of(connection, "to_json(%(value)s::jsonb[])::jsonb", decoded(bound)) == documents


@ROUNDS
@given(value=st.times(timezones=OFFSETS).map(str))
def test_a_time_with_offset_is_the_same_instant(connection: psycopg.Connection, value: str) -> None:
    at_utc = "(%(value)s::timetz at time zone 'UTC')::text"
    bound = bind_query(binder(parameter("x", "time with time zone")), f"x={quote(value)}")
    assert texts_of(connection, at_utc, decoded(bound)) == texts_of(connection, at_utc, value)


@ROUNDS
@given(
    value=st.datetimes(timezones=OFFSETS).map(str)
    | st.sampled_from(["0001-01-01 00:00:00+15", "0044-03-15 10:00+02 BC"])
)
def test_types_without_time_zone_get_the_utc_time_of_an_offset(connection: psycopg.Connection, value: str) -> None:
    for type_name in ("timestamp without time zone", "date"):
        bound = bind_query(binder(parameter("x", type_name)), f"x={quote(value)}")
        expected = texts_of(connection, f"(%(value)s::timestamptz at time zone 'UTC')::{type_name}::text", value)
        assert texts_of(connection, f"%(value)s::{type_name}::text", decoded(bound)) == expected


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("3/1/2026 1:05 PM", "2026-03-01 13:05:00"),
        ("March 1, 2026", "2026-03-01 00:00:00"),
        ("1-Mar-2026", "2026-03-01 00:00:00"),
        ("Sun, 01 Mar 2026 10:00:00 GMT", "2026-03-01 10:00:00"),
        ("20260301T100000Z", "2026-03-01 10:00:00"),
        ("2026/3/1 10:00", "2026-03-01 10:00:00"),
        ("2026-03-01 12:00 am", "2026-03-01 00:00:00"),
        ("2026-03-01T23:59:60", "2026-03-02 00:00:00"),
        ("2026-03-01T24:00", "2026-03-02 00:00:00"),
    ],
)
def test_common_date_formats_do_not_depend_on_datestyle(connection: psycopg.Connection, text: str, meant: str) -> None:
    bound = bind_query(binder(parameter("x", "timestamp without time zone")), f"x={quote_plus(text)}")
    assert texts_of(connection, "%(value)s::timestamp::text", decoded(bound)) == meant
