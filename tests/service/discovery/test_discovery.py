"""What discovery finds in a real catalogue, on every PostgreSQL version at hand."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

from rowcall.core.building.endpoint_builder import EndpointDefaults
from rowcall.core.catalogue.catalog import Catalog, Column, ParameterMode, Routine, RoutineKind, TypeKind, Volatility
from rowcall.core.endpoint.capabilities import CommentsMode
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.service.discovery.catalogue import ObjectSelection, load_types
from rowcall.service.discovery.filters import RoutineFilter
from tests.harness.catalogue import build_endpoints, discover
from tests.harness.database import Database

SCHEMA = """
create schema shop;
create schema "Odd Name";
create type gauge as (id int, label varchar(5));
create type shop.crate as (code text, item gauge, parts gauge[]);
create domain shop.quantity as int check (value > 0);
create type shop.state as enum ('open', 'closed');
create table shop.parcels (id int, gone text, label text);
alter table shop.parcels drop column gone;

create function plain(_a int, _b text default 'x, y', _c int[] default '{1,2}') returns int
  language sql stable strict as 'select 1';
comment on function plain is 'HTTP GET';
create function unnamed(int, text) returns text language sql immutable as 'select $2';
create function many(variadic _v int[]) returns setof int language sql as 'select unnest(_v)';
create function outs(_a int, out x int, inout y text) language sql as 'select 1, y';
create function tabled() returns table (n int, c gauge) language sql as 'select 1, null::gauge';
create function one_out(out r int) language sql as 'select 1';
create function lone_unnamed(out int) returns setof int language sql as 'select 1';
create function composite() returns shop.parcels language sql as 'select null::shop.parcels';
create function crates() returns setof shop.crate language sql as 'select null::shop.crate';
create function takes(_p shop.parcels, _q shop.quantity, _s shop.state, _f char, _bits bit) returns void
  language sql as '';
create procedure work(_a int, inout _b int) language sql as 'select _b';
create procedure shop.work() language sql as 'select 1';
create function "Odd Name"."Do It"("MyParam" int) returns int language sql as 'select 1';
create function on_change() returns trigger language plpgsql as 'begin return null; end';
create aggregate total(int) (sfunc = int4pl, stype = int);
create function windowed() returns bigint language internal window as 'window_row_number';
create function native(int) returns int language internal as 'int4abs';
"""


def read(conninfo: str, **arguments: Any) -> Catalog:
    async def run() -> Catalog:
        async with await psycopg.AsyncConnection.connect(conninfo, autocommit=True) as connection:
            return await discover(connection, **arguments)

    return asyncio.run(run())


def routine(catalog: Catalog, name: str, schema: str = "public") -> Routine:
    return next(routine for routine in catalog.routines if (routine.schema, routine.name) == (schema, name))


def names(catalog: Catalog) -> list[str]:
    return [f"{routine.schema}.{routine.name}" for routine in catalog.routines]


@pytest.fixture(scope="module")
def shop(every_database: Database) -> Database:
    every_database.execute(SCHEMA)
    return every_database


@pytest.fixture(scope="module")
def catalog(shop: Database) -> Catalog:
    return read(shop.conninfo)


def test_lists_plain_functions_and_procedures_sorted_by_schema_and_name(catalog: Catalog) -> None:
    assert names(catalog) == [
        "Odd Name.Do It",
        "public.composite",
        "public.crates",
        "public.lone_unnamed",
        "public.many",
        "public.one_out",
        "public.outs",
        "public.plain",
        "public.tabled",
        "public.takes",
        "public.unnamed",
        "public.work",
        "shop.work",
    ]


TENANTS = """
create type gauge as (id int, label text);
""" + "".join(
    f"""
create schema {tenant};
create function {tenant}.find(_id int, _label text default null) returns table (n int, c gauge) language sql
  as 'select 1, null::gauge';
create function {tenant}.rename(_id int, _label text) returns table (n int, c gauge) language sql
  as 'select 1, null::gauge';
create function {tenant}.list() returns table (n int, d gauge) language sql as 'select 1, null::gauge';
create procedure {tenant}.find_again(_id int, _label text default null) language sql as '';
"""
    for tenant in ("north", "south")
)


def test_routines_with_equal_signatures_share_their_objects(own_database: Database) -> None:
    """And no others do: what is like it but for a default, a name of a column or its kind has its own."""
    own_database.execute(TENANTS)
    result = read(own_database.conninfo)
    endpoints, _ = build_endpoints(result, EndpointDefaults().of_source(CommentsMode.IGNORE))
    by_path = {item.path: item for item in endpoints}
    for name in ("find", "rename", "list", "find-again"):
        north, south = by_path[f"/api/north/{name}"], by_path[f"/api/south/{name}"]
        assert north.parameters is south.parameters
        assert north.shape is south.shape
        assert (north.routine.schema, south.routine.schema) == ("north", "south")
    find, rename, again = (by_path[f"/api/north/{name}"] for name in ("find", "rename", "find-again"))
    assert [item.has_default for item in find.parameters] == [False, True]
    assert [item.has_default for item in rename.parameters] == [False, False]
    assert find.shape is rename.shape
    assert find.parameters[0] is rename.parameters[0] is again.parameters[0]
    assert again.shape.path is ResultPath.VOID
    assert [column.key for column in find.shape.columns] == [b"n", b"id", b"label"]
    assert by_path["/api/north/list"].shape.columns[1].group == Column("d", *_type_of(find))


def _type_of(find: Endpoint) -> tuple[int, str]:
    group = find.shape.columns[1].group
    assert group is not None
    return group.type_oid, group.type_name


def test_reads_the_properties_of_a_routine(catalog: Catalog) -> None:
    result = routine(catalog, "plain")
    assert (result.kind, result.comment, result.language) == (RoutineKind.FUNCTION, "HTTP GET", "sql")
    assert (result.strict, result.volatility, result.returns_set) == (True, Volatility.STABLE, False)
    assert result.return_type_name == "integer"
    assert result.identity == "public.plain(integer, text, integer[])"


def test_the_last_input_parameters_have_the_defaults(catalog: Catalog) -> None:
    assert [parameter.has_default for parameter in routine(catalog, "plain").parameters] == [False, True, True]


def test_unnamed_parameters_have_no_name(catalog: Catalog) -> None:
    assert [parameter.name for parameter in routine(catalog, "unnamed").parameters] == [None, None]


def test_a_variadic_parameter_has_an_array_type(catalog: Catalog) -> None:
    (parameter,) = routine(catalog, "many").parameters
    assert (parameter.mode, parameter.type_name) == (ParameterMode.VARIADIC, "integer[]")


def test_inout_is_an_input_and_a_column(catalog: Catalog) -> None:
    result = routine(catalog, "outs")
    assert [(parameter.name, parameter.argument) for parameter in result.parameters] == [("_a", 0), ("y", 2)]
    assert [column.name for column in result.columns] == ["x", "y"]


def test_table_results_are_columns(catalog: Catalog) -> None:
    result = routine(catalog, "tabled")
    assert [(column.name, column.type_name) for column in result.columns] == [("n", "integer"), ("c", "gauge")]
    assert not result.returns_composite


def test_one_out_parameter_is_one_column(catalog: Catalog) -> None:
    assert [column.name for column in routine(catalog, "one_out").columns] == ["r"]


def test_a_lone_unnamed_out_parameter_is_a_value_without_a_name(catalog: Catalog) -> None:
    assert routine(catalog, "lone_unnamed").columns == ()


def test_a_composite_result_has_the_undropped_attributes(catalog: Catalog) -> None:
    result = routine(catalog, "composite")
    assert result.returns_composite
    assert [column.name for column in result.columns] == ["id", "label"]


def test_a_procedure_has_no_columns(catalog: Catalog) -> None:
    result = routine(catalog, "work")
    assert (result.kind, result.columns) == (RoutineKind.PROCEDURE, ())
    assert [parameter.name for parameter in result.parameters] == ["_a", "_b"]


def test_pure_out_parameters_of_a_procedure_are_stored_for_the_call(own_database: Database) -> None:
    if own_database.value("select current_setting('server_version_num')::int") < 140000:
        pytest.skip("procedures have OUT parameters since PostgreSQL 14")
    own_database.execute("create procedure p(_a int, out _b int, _c int) language sql as 'select 1'")
    result = routine(read(own_database.conninfo), "p")
    assert [(parameter.name, parameter.argument) for parameter in result.parameters] == [("_a", 0), ("_c", 2)]
    assert [(parameter.name, parameter.argument) for parameter in result.out_parameters] == [("_b", 1)]


def test_types_are_loaded_at_any_depth(catalog: Catalog) -> None:
    crate = catalog.types[routine(catalog, "crates").return_type_oid]
    assert [attribute.name for attribute in crate.attributes] == ["code", "item", "parts"]
    parts = catalog.types[crate.attributes[2].type_oid]
    assert parts.kind is TypeKind.ARRAY
    gauge = catalog.types[parts.element]
    assert [attribute.type_name for attribute in gauge.attributes] == ["integer", "character varying(5)"]


def test_domains_have_a_base_type_and_enums_their_kind(catalog: Catalog) -> None:
    parameters = routine(catalog, "takes").parameters
    domain, enum = (catalog.types[parameters[index].type_oid] for index in (1, 2))
    assert (domain.kind, catalog.types[domain.base].display) == (TypeKind.DOMAIN, "integer")
    assert (enum.kind, enum.display) == (TypeKind.ENUM, "shop.state")


def test_a_vector_is_not_an_array(shop: Database) -> None:
    async def run() -> TypeKind:
        async with await psycopg.AsyncConnection.connect(shop.conninfo, autocommit=True) as connection:
            return (await load_types(connection, [22]))[22].kind

    assert asyncio.run(run()) is TypeKind.BASE


def test_the_search_path_selects_unqualified_type_names(shop: Database) -> None:
    result = routine(read(shop.conninfo, search_path="shop"), "takes")
    assert [parameter.type_name for parameter in result.parameters][:3] == ["parcels", "quantity", "state"]


def test_the_search_path_of_the_session_is_not_changed(shop: Database) -> None:
    async def run() -> tuple[Any, Any]:
        async with await psycopg.AsyncConnection.connect(shop.conninfo, autocommit=True) as connection:
            show = "show search_path"
            before = await (await connection.execute(show)).fetchone()
            await discover(connection, search_path="shop")
            return before, await (await connection.execute(show)).fetchone()

    before, after = asyncio.run(run())
    assert before == after


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"schema_similar_to": "sh%|x"}, {"shop.work"}),
        ({"schema_not_similar_to": "(public|Odd%)"}, {"shop.work"}),
        ({"include_schemas": ("shop", "")}, {"shop.work"}),
        ({"exclude_schemas": ("public", "Odd Name")}, {"shop.work"}),
        ({"name_similar_to": "w_rk"}, {"public.work", "shop.work"}),
        ({"include_names": ("work", "plain"), "name_not_similar_to": "p%"}, {"public.work", "shop.work"}),
        ({"include_names": ("work",), "exclude_schemas": ("shop",)}, {"public.work"}),
        ({"include_names": ("work", "many"), "exclude_names": ("work",)}, {"public.many"}),
        ({"exclude_languages": ("SQL",)}, {"public.native"}),
        ({"include_languages": ("INTERNAL",), "exclude_languages": ()}, {"public.native"}),
        ({"include_schemas": ("shop",), "schema_similar_to": "  ", "include_names": ()}, {"shop.work"}),
    ],
)
def test_filters_select_routines(shop: Database, conditions: dict[str, Any], expected: set[str]) -> None:
    result = names(read(shop.conninfo, wanted=ObjectSelection(RoutineFilter(**conditions))))
    assert {name for name in result if not name.startswith("pg_")} == expected


PRIVILEGES = """
create schema hidden;
create schema shown;
create type hidden.secret as (id int);
create type shown.open as (id int);
create function shown.mine() returns int language sql as 'select 1';
create function shown.forbidden() returns int language sql as 'select 1';
revoke execute on function shown.forbidden() from public;
create function shown.returns_hidden() returns hidden.secret language sql as 'select null::hidden.secret';
create function shown.returns_hidden_set() returns setof hidden.secret[] language sql as 'select null::hidden.secret[]';
create function shown.returns_hidden_columns() returns table (a int, b hidden.secret) language sql as
  'select 1, null::hidden.secret';
create function shown.returns_hidden_arrays(out a int, inout b hidden.secret[]) language sql as 'select 1, b';
create function shown.returns_columns() returns table (a int, b shown.open) language sql as
  'select 1, null::shown.open';
create function shown.takes_hidden(_s hidden.secret) returns int language sql as 'select 1';
create function hidden.inside() returns int language sql as 'select 1';
create role {role} login;
grant usage on schema shown to {role};
"""


def test_only_routines_with_execute_privilege_are_found(own_database: Database) -> None:
    role = f"{own_database.name}_guest"
    own_database.execute(PRIVILEGES.format(role=role))
    catalog = read(own_database.conninfo_as(role))
    assert names(catalog) == ["shown.mine", "shown.returns_columns", "shown.takes_hidden"]


def test_types_in_inaccessible_schemas_are_opaque(own_database: Database) -> None:
    role = f"{own_database.name}_guest"
    own_database.execute(PRIVILEGES.format(role=role))
    catalog = read(own_database.conninfo_as(role))
    (parameter,) = routine(catalog, "takes_hidden", "shown").parameters
    assert catalog.types[parameter.type_oid].attributes == ()


@pytest.mark.slow
def test_five_thousand_routines_need_no_more_statements_than_five(own_database: Database) -> None:
    counted = [_counted(own_database)]
    for count in (5, 5000):
        own_database.execute(
            f"do $$ begin for i in 1..{count} loop"
            " execute format('create or replace function f%s(_a int, _b text default null) returns table (x int)"
            " language sql as ''select 1''', i); end loop; end $$"
        )
        counted.append(_counted(own_database))
    (none, _), (few, five), (many, thousands) = counted
    assert (five, thousands) == (5, 5000)
    assert few == many <= none + 1 <= 6


def _counted(database: Database) -> tuple[int, int]:
    """Statements that one discovery sends, and the routines it finds."""

    class Counting(psycopg.AsyncCursor[Any]):
        sent = 0

        async def execute(self, *arguments: Any, **options: Any) -> Any:
            Counting.sent += 1
            return await super().execute(*arguments, **options)

    async def run() -> Catalog:
        async with await psycopg.AsyncConnection.connect(
            database.conninfo, autocommit=True, cursor_factory=Counting
        ) as connection:
            return await discover(connection)

    output = len(asyncio.run(run()).routines)
    return Counting.sent, output
