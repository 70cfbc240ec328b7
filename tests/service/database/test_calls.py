"""From a comment to SQL that PostgreSQL accepts: every call of every endpoint is prepared on every server version."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.endpoint.call import UncallableError, all_present, call_sql
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from tests.harness.catalogue import build_endpoints, discover
from tests.harness.database import Database

SCHEMA = """
create schema shop;
create schema "Odd ""Name";
create type gauge as (id int, label varchar(5));
create type shop.crate as (code text, item gauge, parts gauge[]);
create type flagbox as (is_on boolean);
create domain shop.quantity as int check (value > 0);
create type shop."State" as enum ('open', 'closed');
create table shop.parcels (id int, gone text, label text, weight numeric(6,2));
alter table shop.parcels drop column gone;

create function nothing() returns void language sql as '';
create function plain(_a int, _b text default 'x', _c int[] default '{1}') returns int language sql as 'select 1';
create function unnamed(int, text, int default 1) returns text language sql as 'select $2';
create function mixed(a int, int, c int default 1) returns int language sql as 'select 1';
create function many(_a text, variadic _v int[] default '{}') returns setof int language sql as 'select unnest(_v)';
create function outs(_a int, out "X y" int, inout z text) language sql as 'select 1, z';
create function tabled() returns table (n int, c gauge, m text) language sql
  as 'select 1, (7, $$x$$)::public.gauge, $$z$$';
create function one_column() returns table (val text) language sql as 'select $$x$$';
create function one_composite(out c gauge) language sql as 'select (7, $$x$$)::public.gauge';
create function composites() returns table (c gauge) language sql as 'select (7, $$x$$)::public.gauge';
create function single_field() returns flagbox language sql as 'select row(true)::public.flagbox';
create function parcels() returns setof shop.parcels language sql as 'select 1, $$a$$, 1.5';
create function anonymous() returns record language sql as 'select 1, 2';
create function records() returns setof record language sql as 'select 1, 2';
create function unnamed_outs(out int, out text) language sql as 'select 1, $$x$$';
create function box(_p shop.parcels, _c shop.crate default null) returns int language sql as 'select (_p).id';
create function odd(_q shop.quantity, _s shop."State", _f char, _bits bit, _all gauge[]) returns text
  language sql as 'select _f || _bits::text';
create function "Odd ""Name"."Do It"("My ""Param" int) returns int language sql as 'select 1';
create function polymorphic(_a anyelement, _b anyarray) returns text language sql as 'select _a::text';
create function vectors(_v int2vector, _n "char", _x name) returns text language sql as 'select _n::text';
create procedure work(_a int, inout _b int default 3) language sql as 'select _b';
"""

DEFAULTS = EndpointDefaults().of_source(CommentsMode.IGNORE)


def endpoints(conninfo: str) -> dict[str, Endpoint]:
    async def run() -> list[Endpoint]:
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            result, diagnostics = build_endpoints(await discover(connection), DEFAULTS)
            assert diagnostics == []
            return result

    return {endpoint.routine.name: endpoint for endpoint in asyncio.run(run())}


@pytest.fixture(scope="module")
def shop(every_database: Database) -> Database:
    every_database.execute(SCHEMA)
    if every_database.value("select current_setting('server_version_num')::int") >= 140000:
        every_database.execute(
            "create procedure outgoing(_a int, out _b int, out _c text) language sql as 'select 1, $$x$$';"
            "create procedure nameless(int, out int) language sql as 'select 1'"
        )
    return every_database


@pytest.fixture(scope="module")
def found(shop: Database) -> dict[str, Endpoint]:
    return endpoints(shop.conninfo)


def run(database: Database, sql: str, *values: str | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names and rows, values sent as text the way the service sends them."""
    with psycopg.connect(database.conninfo, autocommit=True) as connection:
        connection.execute("set search_path = ''")
        result = connection.pgconn.exec_params(
            sql.encode(), [None if value is None else value.encode() for value in values]
        )
        assert result.status in (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK), (
            sql,
            result.error_message,
        )
        columns = [(result.fname(index) or b"").decode() for index in range(result.nfields)]
        return columns, [
            tuple(result.get_value(row, column) for column in range(result.nfields)) for row in range(result.ntuples)
        ]


def test_every_set_of_present_parameters_is_accepted(shop: Database, found: dict[str, Endpoint]) -> None:
    with psycopg.connect(shop.conninfo, autocommit=True) as connection:
        connection.execute("set search_path = ''")
        for endpoint in found.values():
            required = sum(
                1 << index
                for index, parameter in enumerate(endpoint.parameters)
                if not parameter.has_default and parameter.attribute is None
            )
            for mask in range(all_present(endpoint) + 1):
                if mask & required == required:
                    _prepare(connection, endpoint, mask)


def _prepare(connection: psycopg.Connection, endpoint: Endpoint, mask: int) -> None:
    try:
        sql = call_sql(endpoint, mask)
    except UncallableError:
        return
    result = connection.pgconn.prepare(b"", sql.encode())
    assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, (sql, result.error_message)


def test_the_selected_columns_are_those_of_the_shape(shop: Database, found: dict[str, Endpoint]) -> None:
    for endpoint in found.values():
        if endpoint.shape.path is ResultPath.ROWS and not endpoint.parameters:
            columns, _ = run(shop, call_sql(endpoint, 0))
            named = [column.column.name for column in endpoint.shape.columns]
            assert columns == (named or [endpoint.routine.name])


@pytest.mark.parametrize(
    ("name", "values", "row"),
    [
        ("odd", ("5", "open", "abc", "101", '{"(1,x)"}'), (b"abc101",)),
        ("box", ("7", "a,b", "1.555", "c", "(1,x)", '{"(1,x)"}'), (b"7",)),
        ("Do It", ("1",), (b"1",)),
        ("tabled", (), (b"1", b"7", b"x", b"z")),
        ("one_composite", (), (b"7", b"x")),
        ("composites", (), (b"7", b"x")),
        ("single_field", (), (b"t",)),
        ("unnamed_outs", (), (b"1", b"x")),
        ("outs", ("1", "q"), (b"1", b"q")),
        ("polymorphic", ("1", "{2}"), (b"1",)),
        ("vectors", ("1 2", "a", "b"), (b"a",)),
        ("many", ("a", "{5}"), (b"5",)),
    ],
)
def test_values_are_passed_unchanged(
    shop: Database, found: dict[str, Endpoint], name: str, values: tuple[str, ...], row: tuple[bytes, ...]
) -> None:
    _, rows = run(shop, call_sql(found[name], all_present(found[name])), *values)
    assert rows == [row]


def test_procedures_with_out_parameters_can_be_called(shop: Database, found: dict[str, Endpoint]) -> None:
    if "outgoing" not in found:
        pytest.skip("procedures have OUT parameters since PostgreSQL 14")
    for name in ("outgoing", "nameless"):
        run(shop, call_sql(found[name], 0b1), "1")
