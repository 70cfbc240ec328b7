"""Functions of PostgREST's interface: choice, arguments, results, media handlers, settings.

Source: PostgREST's documentation, Functions as RPC; Media Type Handlers.
"""

from __future__ import annotations

import json
import re

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, Case, create_roles, error
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create schema api; create schema other;
create table api.harbour (id int primary key, title text);
create table api.voyage (id int primary key, to_id int references api.harbour, fare numeric);
insert into api.harbour values (1, 'Oslo'), (2, 'Riga');
insert into api.voyage values (1, 1, 300), (2, 1, 500), (3, 2, 140);
create function api.tide(at_harbour int, days int default 1) returns numeric language sql stable as 'select 1.42';
create function api.arrivals(harbour int) returns setof api.voyage language sql stable as
  'select * from api.voyage where to_id = $1 order by id';
create function api.one_voyage(id int) returns api.voyage language sql stable as 'select * from api.voyage v where v.id = $1';
create function api.join_names(sep text, variadic parts text[]) returns text language sql immutable as
  'select array_to_string(parts, sep)';
create function api.import(json) returns int language sql as 'select json_array_length($1)';
create function api.size_text(text) returns int language sql as 'select length($1)';
create function api.size_bytes(bytea) returns int language sql as 'select length($1)';
create function api.echo_xml(xml) returns text language sql as 'select $1::text';
create function api.sweep() returns void language sql as '';
create function api.range_of(v int) returns int language sql immutable as 'select 1';
create function api.range_of(v text) returns int language sql immutable as 'select 2';
create function api.over() returns int language sql immutable as 'select 0';
create function api.over(a int) returns int language sql immutable as 'select 1';
create function api.over(a int, b int) returns int language sql immutable as 'select 2';
create function api.numbers() returns setof int language sql immutable as 'select generate_series(1, 3)';
create function api.nothing() returns setof int language sql immutable as 'select 1 where false';
create function api.null_text() returns text language sql immutable as 'select null::text';
create function api.text_of(a text) returns text language sql immutable as 'select a';
create function api.json_of() returns json language sql immutable as $$ select '{"a": 1}'::json $$;
create function api.array_of() returns int[] language sql immutable as 'select array[1,2]';
create function api.range_text() returns int4range language sql immutable as 'select int4range(10, 20)';
create function api.outs(out a int, out b text) language sql immutable as $$ select 1, 'x' $$;
create function api.one_out(out a int) language sql immutable as 'select 1';
create function api.table_of() returns table (x int) language sql immutable as 'select generate_series(1, 2)';
create function api.record_of() returns record language sql immutable as $$ select 1 as a, 'x'::text as b $$;
create function api.by_id(id int) returns setof api.voyage language sql stable as 'select * from api.voyage v where v.id < $1';
create function api.many(ids int[]) returns int language sql immutable as 'select sum(i)::int from unnest(ids) i';
create function api.typed(a json, b char(3), c date) returns text language sql immutable as
  $$ select json_typeof(a) || b || c $$;
create table api.counter (n int); insert into api.counter values (0);
create function api.count_up() returns int language sql as 'update api.counter set n = n + 1 returning n';
create function api.writes_stable() returns int stable language plpgsql as $$ begin
  update api.counter set n = n + 1; return 1; end $$;
create function api.status() returns text language plpgsql as $$ begin
  perform set_config('response.status', '418', true);
  perform set_config('response.headers', '[{"Set-Cookie":"a=1"},{"Set-Cookie":"b=2"},{"X-A":"b"}]', true);
  return 'tea'; end $$;
create function api.bad_headers() returns int language sql as $$ select set_config('response.headers', '{"a":"b"}', true); select 1 $$;
create function api.odd_header(name text, content text) returns int language sql as
  $$ select set_config('response.headers', json_build_array(json_build_object(name, content))::text, true); select 1 $$;
create function api.bad_status() returns int language sql as $$ select set_config('response.status', 'x', true); select 1 $$;
create function api.raise_pt() returns int language plpgsql as $$ begin
  raise sqlstate 'PT429' using message = 'slow down', detail = 'd', hint = 'h'; end $$;
create function api.raise_pt503() returns int language plpgsql as $$ begin raise sqlstate 'PT503'; end $$;
create function api.raise_pt_bad() returns int language plpgsql as $$ begin raise sqlstate 'PT40A'; end $$;
create function api.raise_pt_odd() returns int language plpgsql as $$ begin raise sqlstate 'PT999'; end $$;
create function api.raise_plain() returns int language plpgsql as $$ begin raise 'plain'; end $$;
create function api.raise_pgrst(m text, d text default null) returns int language plpgsql as $$ begin
  if d is null then raise sqlstate 'PGRST' using message = m; end if;
  raise sqlstate 'PGRST' using message = m, detail = d; end $$;
create function api.setting(name text) returns text language sql stable as 'select current_setting($1, true)';
create function api.slow() returns int set statement_timeout = '50ms' language sql as 'select 1 from pg_sleep(5)';
create function api.isolation() returns text set default_transaction_isolation = 'serializable' language sql as
  $$ select current_setting('transaction_isolation') $$;
create function api.pause() returns trigger language plpgsql as 'begin return new; end';
create function api."page.html"() returns text language sql immutable as $$ select 'x'::text $$;
create domain "text/html" as text;
create domain api."application/x-bytes" as bytea;
create domain "*/*" as bytea;
create domain "Text/X-Capitals" as text; create function api.capitals() returns "Text/X-Capitals" immutable language sql as
  $$ select 'c'::"Text/X-Capitals" $$;
create function api.page() returns "text/html" language sql immutable as $$ select '<p>x</p>'::"text/html" $$;
create function api.bytes() returns api."application/x-bytes" language sql immutable as $$ select '\\x00ff'::api."application/x-bytes" $$;
create function api.escaped_bytes() returns api."application/x-bytes" stable language sql as
  $$ select set_config('bytea_output', 'escape', true); select '\\x5c00ff'::bytea::api."application/x-bytes" $$;
create function api.any_type() returns "*/*" language sql immutable as $$ select 'any'::bytea::"*/*" $$;
create domain "text/tab-separated-values" as text;
create function api.tsv_step(text, anyelement) returns text language sql immutable as $$ select coalesce($1, '') || $2::text || E'\\n' $$;
create function api.tsv_end(text) returns "text/tab-separated-values" language sql immutable as $$ select $1::"text/tab-separated-values" $$;
create aggregate api.tsv(anyelement) (sfunc = api.tsv_step, stype = text, finalfunc = api.tsv_end);
create domain "application/x-harbours" as text;
create function api.h_step(text, api.harbour) returns text language sql immutable as $$ select coalesce($1, '') || $2.title || ';' $$;
create function api.h_end(text) returns "application/x-harbours" language sql immutable as $$ select $1::"application/x-harbours" $$;
create aggregate api.harbours(api.harbour) (sfunc = api.h_step, stype = text, finalfunc = api.h_end);
create function api.several(a text, b int default 1) returns int immutable language sql as 'select 1';
create function api.several(a text) returns int immutable language sql as 'select 2';
create function api.several(a int) returns int immutable language sql as 'select 3';
create function api.defaults(a int default 1) returns int immutable language sql as 'select a';
create function api.odd_name("a.b" int) returns int immutable language sql as 'select "a.b"';
create function other.hidden() returns int language sql as 'select 1';
create procedure api.procedure() language sql as ''; create function api.two(int, text) returns int language sql as 'select 1';
create function api.first_unnamed(json, named int default 1) returns int language sql as 'select 1';
create function api.number_of(int) returns int language sql as 'select $1';
create function api.guarded() returns int stable language sql as 'select 1'; revoke execute on function api.guarded() from public;
create domain api.grade as int; create type api.mood as enum ('calm', 'rough'); create domain api.trip as api.voyage;
create function api.grade_of() returns api.grade immutable language sql as 'select 3::api.grade';
create function api.mood_of() returns api.mood immutable language sql as $$ select 'calm'::api.mood $$;
create function api.trip_of() returns api.trip stable language sql as 'select v::api.trip from api.voyage v where id = 1';
create function api.no_voyage() returns api.voyage stable language sql as 'select * from api.voyage where false';
create function api.records() returns setof record immutable language sql as $$ values (1, 'x'::text), (2, 'y') $$;
create function api.many_outs(out a int, out b text) returns setof record immutable language sql as $$ values (1, 'x'::text), (2, 'y') $$;
create function api.both_ways(inout a int, b int default 1) immutable language sql as 'select a + b';
create function api.doc(named json) returns int immutable language sql as 'select json_array_length(named)';
create function api.echo_json(json) returns json immutable language sql as 'select $1';
create function api.optional(variadic parts int[] default '{}') returns int immutable language sql as 'select cardinality(parts)';
create function api.bits(b bit(3), c char(2)) returns text immutable language sql as $$ select b::text || '/' || c $$;
create function api.length_of(voyage api.voyage) returns int immutable language sql as 'select $1.id';
create function api.doubled(api.voyage) returns numeric immutable language sql as 'select $1.fare * 2';
create domain api.long_trip as api.trip; create function api.long_trips() returns setof api.long_trip stable language sql as
  'select v::api.trip::api.long_trip from api.voyage v order by id';
create function api.pairs() returns table (voyage api.voyage, stops text[], notes json, harbours api.harbour[]) stable language sql as
  $$ select v, array['a', 'b'], '{"k": "The cats"}'::json, array(select h from api.harbour h order by id) from api.voyage v where id = 2 $$;
create function api.documents() returns table (body text, vector tsvector) immutable language sql as
  $$ values ('The cats'::text, to_tsvector('english', 'The cats')) $$;
create function api.origin(api.voyage) returns api.harbour immutable language sql as $$ select row(9, 'Bergen')::api.harbour $$;
create table public.ship (id int primary key, harbour_id int references api.harbour); insert into public.ship values (1, 2);
create view api.ship as select * from public.ship;
create function api.ships() returns setof public.ship stable security definer language sql as 'select * from public.ship';
create table other.hull (id int primary key); create view api.hull as select * from other.hull;
create function api.hulls() returns setof other.hull stable security definer language sql as 'select 1';
create function api.all_harbours() returns setof api.harbour stable language sql as 'select * from api.harbour order by id';
create function api.pages() returns setof "text/html" immutable language sql as $$ select '<p>'::"text/html" $$;
create function api.no_page() returns "text/html" immutable language sql as $$ select null::"text/html" where false $$;
create function api.refusing() returns "*/*" language plpgsql as $$ begin raise sqlstate 'PT415' using message = 'not this'; end $$;
create function api.typed_any() returns "*/*" language plpgsql as $$ begin
  perform set_config('response.headers', '[{"Content-Type":"image/x"}]', true); return 'any'::bytea; end $$;
create domain "text/xml" as text; create domain "text/plain" as text; create domain "application/octet-stream" as bytea;
create function api.as_xml() returns "text/xml" immutable language sql as $$ select '<a/>'::"text/xml" $$;
create function api.as_text() returns "text/plain" immutable language sql as $$ select 'a'::"text/plain" $$;
create function api.as_octets() returns "application/octet-stream" immutable language sql as $$ select 'a'::"application/octet-stream" $$;
create table api.blob (id int primary key, content text); insert into api.blob values (1, 'x'), (2, 'y');
create function api.blob_step(text, api.blob) returns text immutable language sql as $$ select coalesce($1, '') || $2.content $$;
create function api.blob_end(text) returns "*/*" immutable language sql as $$ select $1::bytea::"*/*" $$;
create aggregate api.blobs(api.blob) (sfunc = api.blob_step, stype = text, finalfunc = api.blob_end);
create table api.odd (id int primary key); insert into api.odd values (1);
create domain "application/json" as text; create domain "text/csv" as text;
create function api.odd_step(text, api.odd) returns text immutable language sql as $$ select coalesce($1, 'own:') || $2.id $$;
create function api.odd_json(text) returns "application/json" immutable language sql as $$ select $1::"application/json" $$;
create function api.odd_csv(text) returns "text/csv" immutable language sql as $$ select $1::"text/csv" $$;
create aggregate api.odds_json(api.odd) (sfunc = api.odd_step, stype = text, finalfunc = api.odd_json);
create aggregate api.odds_csv(api.odd) (sfunc = api.odd_step, stype = text, finalfunc = api.odd_csv);
create function api."a setting"(name text) returns text language sql stable as 'select current_setting($1, true)';
create function api.add_up(by int) returns int language sql as 'update api.counter set n = n + by returning n';
create function api.stable_denied() returns void stable language plpgsql as $$ begin raise 'no'; end $$;
create function api.immutable_denied(a int) returns int immutable language plpgsql as $$ begin raise 'no'; end $$;
create function api.stable_status() returns void stable language sql as $$ select set_config('response.status', '299', true) $$;
create function api.denied() returns int language plpgsql as $$ begin
  perform set_config('response.status', '299', true); raise 'no'; end $$;
"""  # noqa: E501 (each line is one object)


TYPES = """
integer, bigint, smallint, numeric, real, double precision, text, varchar(3), char(3), boolean, uuid, date, timestamp,
timestamptz, time, interval, json, jsonb, int[], text[], bytea, bit(3), api.grade, api.mood, api.voyage, int4range
"""
VALUES = r"""
"a" "" "1" " 1 " "1.5" 1 -5 0 -0 1.0 1e2 0.1000000000000000055511151231257827 12345678901234567890
123456789012345678901234567890 true false null "null" "true" "2024-02-29" "2024-02-29T12:00:00+02" "infinity"
"NaN" "{1,2}" [1,2] ["a",null] {"a":1} "(1,2,3)" [] "\u0041\u00e9\n" "\u0000" "a\\u0000" "calm" "[1,5)" "1 day" "101"
"0a7c4b1e-6f0e-4c1b-8d3a-2b1f0c9d8e7f"
"""
"""JSON of values, for an argument of each type."""
CONVERSIONS = "".join(
    f"create function api.as_{number}(v {name}) returns text immutable language sql as "
    "$$ select coalesce(v::text, 'NULL') $$;"
    for number, name in enumerate(TYPES.split(","))
)


@pytest.fixture(scope="module")
def service(serve: Serve, every_database: Database) -> Service:
    database = every_database
    database.execute(SQL + CONVERSIONS)
    (anonymous,) = create_roles(database, "anon")
    database.execute(
        f"grant usage on schema api to {anonymous}; grant all on all tables in schema api to {anonymous};"
        f"grant execute on all functions in schema api to {anonymous};"
        f"revoke execute on function api.guarded() from {anonymous}"
    )
    return serve(
        database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous, "PostgRest:AppSettings:key": "value"}
    )


OBJECT = {"accept": "application/vnd.pgrst.object+json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
TEXT = {"content-type": "text/plain"}
CASES = [
    Case(
        "GET /rpc/tide?at_harbour=3",
        text="1.42",
        has={"content-range": "0-0/*", "content-location": None, "content-type": "application/json; charset=utf-8"},
    ),
    Case("POST /rpc/tide", text="1.42", body='{"at_harbour":3,"days":2}'),
    Case(
        "GET /rpc/arrivals?harbour=1&select=id,fare&order=fare.desc&limit=1",
        text='[{"id":2,"fare":500}]',
        has={"content-range": "0-0/*"},
    ),
    Case("GET /rpc/arrivals?harbour=1&fare=gt.400&select=id", json=[{"id": 2}]),
    Case(
        "GET /rpc/arrivals?harbour=1&select=id,harbour(title)&id=eq.1", json=[{"id": 1, "harbour": {"title": "Oslo"}}]
    ),
    Case("POST /rpc/arrivals?select=id&fare=lt.400", json=[{"id": 1}], body='{"harbour":1}'),
    Case("GET /rpc/arrivals?harbour=1&limit=1", 206, headers={"prefer": "count=exact"}, has={"content-range": "0-0/2"}),
    Case("GET /rpc/arrivals?harbour=1", headers={"range": "1-1"}, json=[{"id": 2, "to_id": 1, "fare": 500}]),
    Case("GET /rpc/by_id?id=3&id=gt.1", json=[{"id": 2, "to_id": 1, "fare": 500}]),
    Case("GET /rpc/one_voyage?id=1", json={"id": 1, "to_id": 1, "fare": 300}),
    Case("GET /rpc/one_voyage?id=1&select=id", json={"id": 1}),
    Case("GET /rpc/tide?at_harbour=1", headers={"prefer": "count=exact"}, has={"content-range": "0-0/1"}),
    Case("GET /rpc/join_names?sep=-&parts=a&parts=b", json="a-b"),
    Case("POST /rpc/join_names", json="a-b", body='{"sep":"-","parts":["a","b"]}'),
    Case("POST /rpc/join_names", json="a-b", body="sep=-&parts=a&parts=b", headers=FORM),
    Case("POST /rpc/import", text="2", body='[{"k":1},{"k":2}]'),
    Case("POST /rpc/size_text", text="4", body="four", headers=TEXT),
    Case("POST /rpc/size_bytes", text="4", body="four", headers={"content-type": "application/octet-stream"}),
    Case(
        "POST /rpc/sweep",
        204,
        text="",
        body="{}",
        has={"content-range": "0-0/*", "content-type": None, "content-length": None},
    ),
    Case("POST /rpc/sweep", 204, text="", body=""),
    Case(
        "GET /rpc/range_of?v=3",
        300,
        error(
            "PGRST203",
            "Could not choose the best candidate function between: api.range_of(v => integer), api.range_of(v => text)",
            hint="Try renaming the parameters or the function itself in the database so function "
            "overloading can be resolved",
        ),
    ),
    Case(
        "GET /rpc/several?a=3",
        300,
        error(
            "PGRST203",
            "Could not choose the best candidate function between: api.several(a => integer), "
            "api.several(a => text), api.several(a => text, b => integer)",
        ),
    ),
    Case("GET /rpc/over", text="0"),
    Case("GET /rpc/over?a=1", text="1"),
    Case("GET /rpc/over?b=1&a=2", text="2"),
    Case(
        "GET /rpc/over?c=1",
        404,
        error(
            "PGRST202",
            "Could not find the function api.over(c) in the schema cache",
            details="Searched for the function api.over with parameter c, but no matches were found in the schema cache.",  # noqa: E501
        ),
    ),
    Case(
        "POST /rpc/tid",
        404,
        body="{}",
        json=error(
            "PGRST202",
            "Could not find the function api.tid without parameters in the schema cache",
            details="Searched for the function api.tid without parameters or with a single unnamed json/jsonb parameter, "  # noqa: E501
            "but no matches were found in the schema cache.",
            hint="Perhaps you meant to call the function api.tide",
        ),
    ),
    Case(
        "POST /rpc/tide",
        404,
        body="x",
        headers=TEXT,
        json=error(
            "PGRST202",
            "Could not find the function api.tide in the schema cache",
            details="Searched for the function api.tide with a single unnamed text parameter, but no matches were found in the schema cache.",  # noqa: E501
        ),
    ),
    Case(
        "GET /rpc/tide?at_harbour=1&x=1",
        404,
        error("PGRST202", hint="Perhaps you meant to call the function api.tide(at_harbour, days)"),
    ),
    Case("GET /rpc/text_of?a=in.x", 400, error("PGRST100", details='unexpected "x" expecting "("')),
    Case("GET /rpc/text_of?a=not.x", 400, error("PGRST100", details='unexpected "x" expecting operator (eq, gt, ...)')),
    Case("GET /rpc/text_of?a=eq(x)", text='"eq(x)"'),
    Case("GET /rpc/tide?at_harbour", 404, error("PGRST202")),
    Case("POST /rpc/import", body="[1,2]", status=400, json=error("PGRST102", "All object keys must match")),
    Case("POST /rpc/import", body="5", json=0),
    Case(
        "GET /rpc/arrivals?harbour=1&select=id,harbour(title)&harbour.title=eq.Riga&id=eq.1",
        json=[{"id": 1, "harbour": None}],
    ),
    Case("GET /rpc/arrivals?harbour=1&voyage.id=eq.1", 400, error("PGRST108")),
    Case("GET /rpc/arrivals?harbour=1&select=total:fare.sum()", 400, error("PGRST123")),
    Case("GET /rpc/arrivals?harbour=1&or=(id.eq.1,fare.gt.400)&select=id", json=[{"id": 1}, {"id": 2}]),
    Case("GET /rpc/one_voyage?id=1&to_id=eq.99", json=None, text="null", has={"content-range": "*/*"}),
    Case("GET /rpc/tide?at_harbour=1", text="pgrst_scalar\n1.42", headers={"accept": "text/csv"}),
    Case(
        "GET /harbour",
        406,
        error("PGRST107", 'None of these media types are available: application/vnd.pgrst.plan+text; for="text/csv"'),
        headers={"accept": 'application/vnd.pgrst.plan; for="text/csv"'},
    ),
    Case("POST /rpc/raise_pt503", 503, error("PT503"), body="{}", has={"retry-after": "1"}),
    Case(
        "POST /rpc/raise_pgrst",
        503,
        error("X"),
        body=json.dumps({"m": '{"code":"X","message":"m"}', "d": '{"status":503,"headers":{"Retry-After":"9"}}'}),
        has={"retry-after": "9"},
    ),
    Case("GET /rpc/hidden", 404, error("PGRST202")),
    Case("GET /rpc/pause", 404, error("PGRST202")),
    Case("GET /rpc/page.html", json="x"),
    Case("GET /rpc/numbers", text="[1, 2, 3]"),
    Case("GET /rpc/nothing", text="[]", has={"content-range": "*/*"}),
    Case("GET /rpc/null_text", text="null"),
    Case("GET /rpc/json_of", json={"a": 1}),
    Case("GET /rpc/array_of", json=[1, 2]),
    Case("GET /rpc/range_text", json="[10,20)"),
    Case("GET /rpc/outs", json={"a": 1, "b": "x"}),
    Case("GET /rpc/one_out", json={"a": 1}),
    Case("GET /rpc/table_of", json=[{"x": 1}, {"x": 2}]),
    Case("GET /rpc/record_of", json={"a": 1, "b": "x"}),
    Case("GET /rpc/table_of", headers={"accept": "text/csv"}, text="x\n1\n2"),
    Case("GET /rpc/many?ids={1,2}", text="3"),
    Case("POST /rpc/many", text="3", body='{"ids":[1,2]}'),
    Case("POST /rpc/text_of", json='{"x":1}', body='{"a":"{\\"x\\":1}"}'),
    Case("POST /rpc/typed", json="stringabcd2020-01-01", body='{"a":"{}","b":"abcd","c":"2020-01-01"}'),
    Case("POST /rpc/text_of", json="a", body='[{"a":"a"},{"a":"b"}]'),
    Case("POST /rpc/over", text="0", body="[]"),
    Case("POST /rpc/over?columns=a", text="1", body='{"a":1,"b":2}'),
    Case("POST /rpc/text_of?x=5", 400, error("PGRST100"), body='{"a":"a"}'),
    Case("GET /rpc/text_of?a=is.x", 400, error("PGRST100")),
    Case("PUT /rpc/tide", 405, error("PGRST101", "Cannot use the PUT method on RPC"), body="{}"),
    Case("POST /rpc/count_up", 200, body="{}"),
    Case("GET /rpc/count_up", 405, error("25006")),
    Case("POST /rpc/writes_stable", 400, error("0A000"), body="{}"),
    Case("HEAD /rpc/tide?at_harbour=1", has={"content-range": "0-0/*"}),
    Case("OPTIONS /rpc/sweep", has={"allow": "OPTIONS,POST"}),
    Case("OPTIONS /rpc/numbers", has={"allow": "OPTIONS,GET,HEAD,POST"}),
    Case("OPTIONS /rpc/tide", 404, error("PGRST202")),
    Case("POST /rpc/status", 418, body="{}", json="tea", has={"x-a": "b", "set-cookie": "a=1, b=2"}),
    Case("POST /rpc/bad_headers", 500, error("PGRST111"), body="{}"),
    Case("POST /rpc/bad_status", 500, error("PGRST112"), body="{}"),
    Case("POST /rpc/raise_pt", 429, error("PT429", "slow down", details="d", hint="h"), body="{}"),
    Case("POST /rpc/raise_pt_bad", 500, error("PT40A"), body="{}"),
    Case("POST /rpc/raise_pt_odd", 500, error("PT999"), body="{}"),
    Case("POST /rpc/raise_plain", 400, error("P0001", "plain"), body="{}"),
    Case(
        "POST /rpc/raise_pgrst",
        423,
        body='{"m":"{\\"code\\":\\"T-9\\",\\"message\\":\\"low\\",\\"hint\\":\\"wait\\"}","d":"{\\"status\\":423,\\"headers\\":{\\"Retry-After\\":\\"900\\"}}"}',
        json=error("T-9", "low", hint="wait", details=None),
        has={"retry-after": "900", "proxy-status": "PostgREST; error=T-9"},
    ),
    Case(
        "POST /rpc/raise_pgrst",
        500,
        error("PGRST121", details="Invalid JSON value for MESSAGE: 'x'"),
        body='{"m":"x","d":"{}"}',
    ),
    Case(
        "POST /rpc/raise_pgrst",
        500,
        error("PGRST121", details="DETAIL is missing in the RAISE statement"),
        body='{"m":"{\\"code\\":\\"1\\",\\"message\\":\\"m\\"}"}',
    ),
    Case("GET /rpc/setting?name=request.method", json="GET"),
    Case("GET /rpc/setting?name=request.path", json="/rpc/setting"),
    Case("GET /rpc/setting?name=app.settings.key", json="value"),
    Case("GET /rpc/setting?name=request.cookies", json='{"a":"b"}', headers={"cookie": "a=b"}),
    Case("GET /rpc/setting?name=search_path", json='"api", "public"'),
    Case("POST /rpc/slow", 500, error("57014"), body="{}"),
    Case("POST /rpc/isolation", json="serializable", body="{}"),
    Case("GET /rpc/page", headers={"accept": "text/html"}, text="<p>x</p>", has={"content-type": "text/html"}),
    *(
        Case("GET /rpc/capitals", headers={"accept": name}, text="c", has={"content-type": "Text/X-Capitals"})
        for name in ("text/x-capitals", "TEXT/X-Capitals")
    ),
    Case("GET /rpc/page", headers={"accept": "application/json"}, json="<p>x</p>"),
    Case(
        "GET /rpc/bytes",
        headers={"accept": "application/x-bytes"},
        has={"content-type": "application/x-bytes", "content-length": "2"},
    ),
    Case(
        "GET /rpc/any_type",
        headers={"accept": "image/png"},
        text="any",
        has={"content-type": "application/octet-stream"},
    ),
    Case("GET /rpc/text_of?a=x", 406, error("PGRST107"), headers={"accept": "text/plain"}),
    Case("GET /harbour?order=id", headers={"accept": "text/tab-separated-values"}, text="(1,Oslo)\n(2,Riga)\n"),
    Case(
        "GET /harbour?order=id",
        headers={"accept": "application/x-harbours"},
        text="Oslo;Riga;",
        has={"content-type": "application/x-harbours"},
    ),
    Case("GET /harbour?select=id", 406, error("PGRST107"), headers={"accept": "application/x-harbours"}),
    Case("GET /voyage", 406, error("PGRST107"), headers={"accept": "application/x-harbours"}),
    Case("GET /rpc/arrivals?harbour=1", 406, error("PGRST116"), headers=OBJECT),
    Case("GET /rpc/arrivals?harbour=2&select=id", headers=OBJECT, json={"id": 3}),
    Case(
        "GET /rpc/tide?at_harbour=1",
        headers=OBJECT,
        text="1.42",
        has={"content-type": "application/vnd.pgrst.object+json; charset=utf-8"},
    ),
    Case(
        "POST /rpc/arrivals",
        400,
        error("PGRST124"),
        body='{"harbour":1}',
        headers={"prefer": "handling=strict, max-affected=1"},
    ),
    Case(
        "POST /rpc/tide",
        400,
        error("PGRST128"),
        body='{"at_harbour":1}',
        headers={"prefer": "handling=strict, max-affected=1"},
    ),
    Case("GET /rpc/numbers?x=eq.1", 400, error("42703")),
    Case("GET /rpc/text_of?a=%00", 400, error("22021")),
    Case("GET /rpc/table_of?select=x,harbour(id)", 400, error("PGRST200")),
]


COUNTED = {"prefer": "count=exact"}
UNAVAILABLE = "None of these media types are available: "
CSV = {"content-type": "text/csv"}
CASES += [
    # which functions are served
    *(
        Case(f"POST /rpc/{name}", 404, error("PGRST202"), body=body)
        for name, body in (("procedure", "{}"), ("tsv", "{}"), ("two", "{}"), ("number_of", "1"), ("Tide", "{}"))
    ),
    Case("POST /rpc/first_unnamed", 404, error("PGRST202"), body='{"named":1}'),
    Case("GET /rpc/guarded", 401, error("42501"), has={"www-authenticate": "Bearer"}),
    # the choice among overloads, and its errors
    Case("POST /rpc/over", 404, error("PGRST202"), body='{"a":1,"b":2,"c":3}'),
    Case("POST /rpc/over", text="2", body='{"b":2,"a":1}'),
    Case("POST /rpc/sweep", 404, error("PGRST202", hint=None), body="x", headers=TEXT),
    Case("POST /rpc/defaults", text="1", body="x", headers=TEXT),
    Case("POST /rpc/echo_json", json=[{"a": "1"}], body='[{"a":"1"}]'),
    Case(
        "POST /rpc/echo_json",
        404,
        error(
            "PGRST202",
            "Could not find the function api.echo_json(a) in the schema cache",
            details="Searched for the function api.echo_json with parameter a, "
            "but no matches were found in the schema cache.",
        ),
        body="a\n1\n",
        headers=CSV,
    ),
    # bodies that are empty or invalid
    Case("POST /rpc/over", 400, error("PGRST102", "Empty or invalid json"), body=" "),
    Case("POST /rpc/over", text="0", body=" {}\n"),
    Case("POST /rpc/text_of?columns=a", 400, error("22P02"), body=""),
    Case("POST /rpc/over", text="2", body="a=1;b=2", headers=FORM),
    Case("POST /rpc/over", text="1", body="&a=1&", headers=FORM),
    Case("POST /rpc/text_of", json="", body="a", headers=FORM),
    Case("POST /rpc/over", text="0", body="a,b\n", headers=CSV),
    # names of arguments in quotes
    Case("GET /rpc/odd_name?%22a.b%22=5", text="5"),
    Case("GET /rpc/tide?%22at_harbour%22=1", text="1.42"),
    Case(
        "POST /rpc/over",
        404,
        error(
            "PGRST202",
            "Could not find the function api.over(a, x) in the schema cache",
            details="Searched for the function api.over with parameters a, x or with a single unnamed json/jsonb parameter,"  # noqa: E501
            " but no matches were found in the schema cache.",
        ),
        body='{"x":1,"a":2}',
    ),
    Case(
        "GET /rpc/nowhere",
        404,
        error(
            "PGRST202",
            "Could not find the function api.nowhere without parameters in the schema cache",
            details="Searched for the function api.nowhere without parameters, but no matches were found in the schema cache.",  # noqa: E501
            hint=None,
        ),
    ),
    *(
        Case(
            "POST /rpc/tide",
            404,
            error(
                "PGRST202",
                details=f"Searched for the function api.tide with a single unnamed {kind} parameter, "
                "but no matches were found in the schema cache.",
            ),
            body="x",
            headers={"content-type": name},
        )
        for name, kind in (("text/xml", "xml"), ("application/octet-stream", "bytea"))
    ),
    # arguments
    Case("POST /rpc/text_of", json="a", body="a=a", headers=FORM),
    Case("POST /rpc/text_of", json="b", body="a\nb\nc\n", headers=CSV),
    Case(
        "POST /rpc/text_of",
        400,
        error("PGRST102", "Content-Type not acceptable: image/png"),
        body="x",
        headers={"content-type": "image/png"},
    ),
    Case("POST /rpc/text_of", 400, error("PGRST102", "Empty or invalid json"), body="{"),
    Case("POST /rpc/text_of", 400, error("PGRST102"), body='[{"a":"a"},{"b":"b"}]'),
    Case("POST /rpc/text_of?columns=a", json="a", body='[{"a":"a"},{"b":"b"}]'),
    Case("POST /rpc/doc", text="1", body='{"named":[1]}'),
    Case("POST /rpc/doc", 404, error("PGRST202"), body="[]"),
    Case("POST /rpc/echo_json", text='{"a": 1,"a":2}', body='{"a": 1,"a":2}'),
    Case("POST /rpc/echo_json?columns=x", text='{"a":1}', body='{"a":1}'),
    Case("POST /rpc/bits", json="10101/abc", body='{"b":"10101","c":"abc"}'),
    Case("GET /rpc/bits?b=10101&c=abc", json="10101/abc"),
    Case("GET /rpc/optional", text="0"),
    Case("GET /rpc/optional?parts=1&parts=2", text="2"),
    Case("POST /rpc/optional", text="0", body="{}"),
    Case("GET /rpc/text_of?a=x&a=y", json="y"),
    Case("GET /rpc/text_of?a=not.in.(x)", 404, error("PGRST202")),
    Case("POST /rpc/length_of", text="7", body='{"voyage":{"id":7}}'),
    Case("GET /rpc/arrivals?harbour=1&fare=not.is.null&id=in.(2)&select=id", json=[{"id": 2}]),
    # results
    Case("GET /rpc/grade_of", text="3"),
    Case("GET /rpc/mood_of", text='"calm"'),
    Case("GET /rpc/trip_of", json={"id": 1, "to_id": 1, "fare": 300}),
    Case("GET /rpc/no_voyage", json={"id": None, "to_id": None, "fare": None}),
    Case("GET /rpc/records", json=[{"column1": 1, "column2": "x"}, {"column1": 2, "column2": "y"}]),
    Case("GET /rpc/many_outs", json=[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]),
    Case("GET /rpc/many_outs?select=b&a=gt.1", json=[{"b": "y"}]),
    Case("GET /rpc/both_ways?a=1", json={"a": 2}),
    Case("GET /rpc/arrivals?harbour=1&select=id,doubled&order=doubled.desc&limit=1", json=[{"id": 2, "doubled": 1000}]),
    Case(
        "GET /rpc/arrivals?harbour=1&select=id,...harbour(title)&order=id&offset=1",
        json=[{"id": 2, "title": "Oslo"}],
        has={"content-range": "1-1/*"},
    ),
    *(Case(f"GET /rpc/tide?at_harbour=1&{query}", 400, error("42703")) for query in ("select=x", "order=x", "x=eq.1")),
    # columns of results
    Case("GET /rpc/long_trips?select=fare&id=eq.2", json=[{"fare": 500}]),
    Case(
        "GET /rpc/pairs?select=voyage->fare,first:stops->>0,notes->>k,harbours->1->title",
        json=[{"fare": 500, "first": "a", "k": "The cats", "title": "Riga"}],
    ),
    Case(
        "GET /rpc/pairs?select=stops&voyage->>id=eq.2&notes->>k=like.The*&order=voyage->fare",
        json=[{"stops": ["a", "b"]}],
    ),
    Case("GET /rpc/pairs?select=stops&voyage->>id=eq.3", json=[]),
    Case("GET /voyage?select=origin->title&origin->>id=eq.9&id=eq.1", json=[{"title": "Bergen"}]),
    Case("GET /rpc/documents?select=body&body=fts(english).cat", json=[{"body": "The cats"}]),
    Case("GET /rpc/documents?select=body&body=fts(simple).the", json=[{"body": "The cats"}]),
    Case("GET /rpc/documents?select=body&body=fts(english).the", json=[]),
    Case("GET /rpc/documents?select=body&vector=fts(english).cats", json=[{"body": "The cats"}]),
    # rows of a table behind a view of the same name
    Case("GET /rpc/ships?select=id,harbour(title)", json=[{"id": 1, "harbour": {"title": "Riga"}}]),
    Case("GET /rpc/hulls?select=id&id=eq.1", json=[{"id": 1}]),
    # names of rows in errors
    *(
        Case(f"GET /rpc/{call}", 400, error("42703", f"column {name}.nope does not exist"))
        for call, name in (
            ("all_harbours?select=nope", "harbour"),
            ("one_voyage?id=1&nope=eq.1", "voyage"),
            ("table_of?select=nope", "int4"),
            ("many_outs?select=nope", "record"),
            ("numbers?order=nope", "numbers"),
        )
    ),
    Case(
        "GET /rpc/many_outs?select=a,harbour(id)",
        400,
        error("PGRST200", "Could not find a relationship between 'record' and 'harbour' in the schema cache"),
    ),
    # ranges and totals
    Case("GET /rpc/arrivals?harbour=1", headers={"prefer": "count=planned"}, has={"content-range": "0-1/*"}),
    Case(
        "GET /rpc/arrivals?harbour=1&limit=1",
        206,
        headers={"prefer": "count=estimated"},
        has={"content-range": "0-0/2"},
    ),
    Case(
        "GET /rpc/arrivals?harbour=1&offset=3",
        416,
        error("PGRST103", details="An offset of 3 was requested, but there are only 2 rows."),
        headers=COUNTED,
        has={"content-range": "*/2"},
    ),
    Case("GET /rpc/one_voyage?id=1", headers=COUNTED, has={"content-range": "0-0/1"}),
    Case("POST /rpc/arrivals?select=id", json=[{"id": 1}, {"id": 2}], body='{"harbour":1}', headers={"range": "1-1"}),
    Case(
        "HEAD /rpc/arrivals?harbour=1",
        text="",
        headers={"range": "1-1"},
        has={"content-range": "0-1/*", "content-length": None},
    ),
    Case("HEAD /rpc/count_up", 405, text="", has={"proxy-status": "PostgREST; error=25006"}),
    *(
        Case(f"{method} /rpc/tide", 405, error("PGRST101", f"Cannot use the {method} method on RPC"))
        for method in ("DELETE", "PATCH")
    ),
    # media types: handlers of functions
    Case("GET /rpc/pages", 406, error("PGRST107", UNAVAILABLE + "text/html"), headers={"accept": "text/html"}),
    Case("GET /rpc/no_page", text="", headers={"accept": "text/html"}, has={"content-type": "text/html"}),
    Case("GET /rpc/refusing", 415, error("PT415", "not this"), headers={"accept": "image/png"}),
    Case("GET /rpc/typed_any", text="any", headers={"accept": "image/png"}, has={"content-type": "image/x"}),
    Case(
        "GET /rpc/as_xml", text="<a/>", headers={"accept": "text/xml"}, has={"content-type": "text/xml; charset=utf-8"}
    ),
    Case(
        "GET /rpc/as_text",
        text="a",
        headers={"accept": "text/plain"},
        has={"content-type": "text/plain; charset=utf-8"},
    ),
    Case(
        "GET /rpc/as_octets",
        text="a",
        headers={"accept": "application/octet-stream"},
        has={"content-type": "application/octet-stream"},
    ),
    # media types: handlers of relations and of every relation
    Case("GET /rpc/all_harbours", text="Oslo;Riga;", headers={"accept": "application/x-harbours"}),
    Case("GET /rpc/all_harbours?select=id", 406, error("PGRST107"), headers={"accept": "application/x-harbours"}),
    Case("GET /rpc/arrivals?harbour=2", text="(3,2,140)\n", headers={"accept": "text/tab-separated-values"}),
    Case("GET /voyage?select=id&id=lt.3", text="(1)\n(2)\n", headers={"accept": "text/tab-separated-values"}),
    *(
        Case(
            "GET /blob?order=id", text="xy", headers={"accept": name}, has={"content-type": "application/octet-stream"}
        )
        for name in ("image/png", "application/json", "*/*", "text/csv")
    ),
    Case("GET /blob?id=eq.1", json={"id": 1, "content": "x"}, headers=OBJECT),
    Case("GET /blob?select=id&id=eq.1", json=[{"id": 1}]),
    Case(
        "GET /odd",
        text="own:1",
        has={"content-type": "application/json; charset=utf-8"},
        headers={"accept": "application/json"},
    ),
    Case("GET /odd", text="own:1", has={"content-type": "text/csv; charset=utf-8"}, headers={"accept": "text/csv"}),
    Case("GET /odd", text='[{"id":1}]', headers={"accept": "application/vnd.pgrst.array+json"}),
    # aggregates are off
    *(
        Case(f"GET /voyage?select={select}", 400, error("PGRST123", "Use of aggregate functions is not allowed"))
        for select in ("fare.sum()", "count()", "id,harbour(id.count())", "...harbour(id.count())")
    ),
    Case("GET /voyage?select=count", json=[{"count": 3}]),
    # settings and errors
    Case(
        "POST /rpc/odd_header",
        text="1",
        body='{"name":"X-A","content":"a\\tb \u00e9"}',
        has={"x-a": "a\tb \u00e9"},
    ),
    *(
        Case("POST /rpc/odd_header", 500, error("PGRST111"), body=json.dumps({"name": name, "content": content}))
        for name, content in (("X-A", "a\r\nX-B: c"), ("X A", "a"), ("", "a"), ("Transfer-Encoding", "chunked"))
    ),
    *(
        Case("POST /rpc/raise_pgrst", 500, error("PGRST121"), body=json.dumps({"m": message, "d": detail}))
        for message, detail in (
            ('{"code":"X","message":"m"}', '{"status":400,"headers":{"X A":"b"}}'),
            ('{"code":"X","message":"m"}', '{"status":400,"headers":{"X-A":"b\\n"}}'),
            ('{"code":"X\\n","message":"m"}', '{"status":400,"headers":{}}'),
        )
    ),
    *(Case(f"{method} /rpc/stable_denied", 400) for method in ("GET", "HEAD")),
    Case("POST /rpc/stable_denied", 400, error("P0001", "no"), body="{}"),
    *(Case(f"{method} /rpc/immutable_denied?a=1", 400) for method in ("GET", "HEAD")),
    *(Case(f"{method} /rpc/stable_status", 299) for method in ("GET", "HEAD")),
    Case("HEAD /rpc/stable_denied", 400, headers=COUNTED),
    Case("POST /rpc/denied", 400, error("P0001", "no"), body="{}"),
    Case(
        "POST /rpc/bad_headers",
        500,
        error(
            "PGRST111",
            "response.headers guc must be a JSON array composed of objects with a single key and a string value",
        ),
        body="{}",
    ),
    Case("POST /rpc/bad_status", 500, error("PGRST112", "response.status guc must be a valid status code"), body="{}"),
    Case(
        "POST /rpc/tide",
        400,
        error(
            "PGRST128",
            "Function must return SETOF or TABLE when max-affected preference is used with handling=strict",
        ),
        body='{"at_harbour":1}',
        headers={"prefer": "handling=strict, max-affected=1"},
    ),
    Case(
        "POST /rpc/arrivals",
        body='{"harbour":1}',
        headers={"prefer": "handling=strict, max-affected=2"},
        has={"preference-applied": "handling=strict, max-affected=2"},
    ),
    Case(
        "GET /rpc/tide?at_harbour=1",
        headers={"prefer": "return=minimal, missing=default"},
        has={"preference-applied": None},
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case} {case.body} {dict(case.headers)}")
def test_calls(service: Service, case: Case) -> None:
    case.check(service.client)


def test_calls_that_are_planned_once_have_arguments_of_their_own(service: Service) -> None:
    for number in (1, 2, 1):
        expected = [{"id": 1}, {"id": 2}] if number == 1 else [{"id": 3}]
        Case("POST /rpc/arrivals?select=id", json=expected, body=f'{{"harbour":{number}}}').check(service.client)
        Case("POST /rpc/text_of", json=str(number), body=f'[{{"a":"{number}"}}]').check(service.client)
        Case("POST /rpc/size_text", json=number, body="x" * number, headers={"content-type": "text/plain"}).check(
            service.client
        )
        Case("POST /rpc/text_of?x=eq.%00payload%00", 400, error("22021"), body='{"a":"b"}').check(service.client)


def test_calls_by_get_that_are_planned_once_have_arguments_of_their_own(service: Service) -> None:
    for number in (1, 2, 1):
        expected = [{"id": 1}, {"id": 2}] if number == 1 else [{"id": 3}]
        Case(f"GET /rpc/arrivals?select=id&harbour={number}", json=expected).check(service.client)
        Case(f"GET /rpc/arrivals?select=id&harbour={number}&id=gt.{number}", json=expected[1:] or expected).check(
            service.client
        )
        Case(f"GET /rpc/text_of?a=%2Beq.{number}+", json=f"+eq.{number} ").check(service.client)
        Case(f"GET /rpc/join_names?sep=-&parts=a&parts={number}", json=f"a-{number}").check(service.client)
        Case(f"GET /rpc/text_of?a=9&a={number}", json=str(number)).check(service.client)
    Case("GET /rpc/arrivals?select=id&harbour=x", 400, error("22P02")).check(service.client)
    Case("GET /rpc/arrivals?select=id&harbour=1", json=[{"id": 1}], headers={"range": "0-0"}).check(service.client)


def test_a_function_runs_once(service: Service, every_database: Database) -> None:
    before = every_database.value("select n from api.counter")
    Case("POST /rpc/count_up", text=str(before + 1), body="{}", headers={"prefer": "count=exact"}).check(service.client)
    assert every_database.value("select n from api.counter") == before + 1


@pytest.mark.slow
def test_a_value_is_converted_alike_with_and_without_columns(service: Service) -> None:
    """With `columns`, PostgreSQL reads the body; without, its values are parameters where that is the same."""
    succeeded = 0
    for number, name in enumerate(TYPES.split(",")):
        for value in re.findall(r'"[^"]*"|\{.*?\}|\[.*?\]|\S+', VALUES):
            body = f'{{"v":{value}}}'
            plain, read = (
                service.client.post(f"/rpc/as_{number}{query}", content=body) for query in ("", "?columns=v")
            )
            assert (plain.status_code, plain.text) == (read.status_code, read.text), (name, value)
            succeeded += plain.status_code == 200
    assert succeeded > 200


def test_bytes_do_not_depend_on_settings(service: Service) -> None:
    response = service.client.get("/rpc/escaped_bytes", headers={"accept": "application/x-bytes"})
    assert response.content == b"\\\x00\xff"


def test_a_whole_body_as_xml(service: Service, every_database: Database) -> None:
    try:
        every_database.execute("select '<a/>'::xml")
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this server is built without libxml")
    Case("POST /rpc/echo_xml", json="<a/>", body="<a/>", headers={"content-type": "text/xml"}).check(service.client)


def test_an_empty_array_with_columns_is_no_call(service: Service, every_database: Database) -> None:
    before = every_database.value("select n from api.counter")
    Case("POST /rpc/add_up?columns=by", body="[]").check(service.client)
    assert every_database.value("select n from api.counter") == before


def test_the_path_of_a_request_is_raw(service: Service) -> None:
    for path in ("/rpc/setting", "/rpc/a%20setting"):
        Case(f"GET {path}?name=request.path", json=path).check(service.client)
