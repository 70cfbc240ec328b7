"""Which calls may run with a forced generic plan (driver-4): those that touch no table and nest no query."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from rowcall.service.database.generic_plans import generic_plan, is_eligible, read_user_names
from tests.harness.database import Database

SQL = """
create table items (id int primary key, status text);
create view item_view as select * from items;
create schema "Other";

create function series(_n int, _t text) returns table (n int, t text) language sql stable
  as 'select n, _t from generate_series(1, _n) n';
create function tiny() returns table (a text, b timestamptz) language sql stable as 'select $$x$$, now()';
create function three(_a int, _b int) returns table (n int) language sql stable
  as 'select a from generate_series(1, _a) a, generate_series(1, _b) b order by 1 limit 10';
create function next_of(_n int) returns int language sql immutable strict as 'select _n + 1';
create function wide(_a int, _b text, _c jsonb, _d int[]) returns table (a int, b text, c text, d int)
  language sql stable as 'select _a, upper(_b), _c->>$$k$$, cardinality(_d)';

create function on_table(_s text) returns setof items language sql stable as 'select * from items where status = _s';
create function on_view(_id int) returns setof item_view language sql stable
  as 'select * from item_view where id = _id';
create function on_index(_id int) returns text language sql stable as 'select status from items where id = _id';
create function insert_item(_id int) returns int language sql as 'insert into items values (_id) returning id';
create function procedural(_n int) returns int language plpgsql stable as 'begin return _n; end';
create function volatile_sql(_n int) returns table (n int) language sql volatile
  as 'select n from generate_series(1, _n) n';
create function definer(_n int) returns table (n int) language sql stable security definer
  as 'select n from generate_series(1, _n) n';
create function with_setting(_n int) returns table (n int) language sql stable set work_mem = '4MB'
  as 'select n from generate_series(1, _n) n';
create function wrapper(_n int) returns table (n int) language sql stable
  as 'select public.procedural(n) from generate_series(1, _n) n';
create function "Other"."Odd (name)"(_n int) returns int language plpgsql stable as 'begin return _n; end';
create function wrapper_of_odd(_n int) returns table (n int) language sql stable
  as 'select "Other"."Odd (name)"(n) from generate_series(1, _n) n';

create domain checked as int check (procedural(value) > 0);
create function with_domain(_n int) returns table (n int) language sql stable
  as 'select n::checked::int from generate_series(1, _n) n';
create function same(_a int, _b int) returns bool language plpgsql immutable as 'begin return _a = _b; end';
create operator === (leftarg = int, rightarg = int, function = same);
create function with_operator(_n int) returns table (n bool) language sql stable
  as 'select n === 2 from generate_series(1, _n) n';
create aggregate total (int) (sfunc = int4pl, stype = int, initcond = '0');
create function with_aggregate(_n int) returns table (n int) language sql stable
  as 'select total(n) from generate_series(1, _n) n';
"""

ELIGIBLE = {
    "an inlined set over generate_series": ("select * from series($1::int, $2::text)", 2),
    "no parameters": ("select * from tiny()", 0),
    "a cross join with order and limit": ("select * from three($1::int, $2::int)", 2),
    "a scalar expression": ("select next_of($1::int)", 1),
    "built-in functions and operators": ("select * from wide($1::int, $2::text, $3::jsonb, $4::int[])", 4),
}

REFUSED = {
    "a table": ("select * from on_table($1::text)", 1),
    "a view": ("select * from on_view($1::int)", 1),
    "an index": ("select on_index($1::int)", 1),
    "an insert": ("select insert_item($1::int)", 1),
    "plpgsql": ("select procedural($1::int)", 1),
    "plpgsql in from": ("select * from procedural($1::int)", 1),
    "a volatile function, which is not inlined": ("select * from volatile_sql($1::int)", 1),
    "security definer": ("select * from definer($1::int)", 1),
    "a set clause": ("select * from with_setting($1::int)", 1),
    "an inlined wrapper of plpgsql": ("select * from wrapper($1::int)", 1),
    "a name that needs quotes": ("select * from wrapper_of_odd($1::int)", 1),
    "a quoted name in from": ('select * from "Other"."Odd (name)"($1::int)', 1),
    "a domain checked by plpgsql": ("select * from with_domain($1::int)", 1),
    "an operator in plpgsql": ("select * from with_operator($1::int)", 1),
    "a user's aggregate": ("select * from with_aggregate($1::int)", 1),
}


@pytest.fixture(scope="module")
def schema(every_database: Database) -> Database:
    every_database.execute(SQL)
    return every_database


def judge(database: Database, statement: str, parameters: int) -> bool:
    async def work() -> bool:
        async with await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True) as connection:
            names = await read_user_names(connection)
            return is_eligible(await generic_plan(connection, statement, parameters), names)

    return asyncio.run(work())


@pytest.mark.parametrize(("statement", "parameters"), ELIGIBLE.values(), ids=ELIGIBLE)
def test_statements_suitable_for_generic_plans_are_accepted(schema: Database, statement: str, parameters: int) -> None:
    assert judge(schema, statement, parameters)


@pytest.mark.parametrize(("statement", "parameters"), REFUSED.values(), ids=REFUSED)
def test_statements_unsuitable_for_generic_plans_are_refused(schema: Database, statement: str, parameters: int) -> None:
    assert not judge(schema, statement, parameters)


def test_judging_a_statement_does_not_run_it(schema: Database) -> None:
    judge(schema, "select insert_item($1::int)", 1)
    assert schema.value("select count(*) from items") == 0
