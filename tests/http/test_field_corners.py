"""Combinations: unusual catalogues and requests, several annotations at once, JSON for every type."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.routines import Routine, routines
from tests.harness.service import Service
from tests.http.conftest import Serve

TYPES = """
create schema s1; create schema s2; create schema "S 3";
create type s1.mood as enum ('a', 'b c'); create type s2.mood as enum ('x');
create type "S 3"."My Type" as ("Id" int, "Na""me" text, m s1.mood[]);
create table dropped (a int, gone text, b text, c int generated always as (a * 2) stored);
alter table dropped drop column gone; insert into dropped (a, b) values (1, 'x');
create view seen as select a, b as "View Col" from dropped;
create type altered as (a int, gone int, b text);
alter type altered drop attribute gone; alter type altered add attribute c date;
create domain positive as int check (value > 0); create domain positives as positive[];
create type pair as (id int, label text);
create type holder as (p positive, ps positive[], m s1.mood, r int4range, j json, n numeric(6,2), ts timestamptz[]);
create table split (id int, k text) partition by list (k);
create table split_a partition of split for values in ('a'); insert into split values (1, 'a');
"""

AB = "select format('%s|%s', coalesce(_a::text, 'NULL'), coalesce(_b::text, 'NULL'))"
HOLDER = "(1, '{1,2}', 'b c', '[1,3)', '{\"a\":1}', 1.5, '{2024-01-01 00:00+00}')::holder"


def _value(name: str, type_name: str) -> Routine:
    return f"{name}(_v {type_name}) returns text", "select coalesce(_v::text, 'NULL')", "HTTP POST"


ROUTINES = [
    # catalogues
    ("moods(_m s1.mood, _ms s1.mood[] default null, _o s2.mood default null) returns text stable",
     "select concat_ws('|', _m, _ms, _o)", "HTTP"),
    ('quoted_in(_t "S 3"."My Type") returns text stable', "select _t::text", "HTTP"),
    ('quoted_out() returns "S 3"."My Type" stable', "select (1, 'n', '{a,b c}')::\"S 3\".\"My Type\"", "HTTP"),
    ('quoted_nested() returns table(x "S 3"."My Type", y s1.mood) stable',
     "select (1, 'n', '{a,b c}')::\"S 3\".\"My Type\", 'a'::s1.mood", "HTTP\nnested"),
    ("dropped_out() returns setof dropped stable", "select * from dropped", "HTTP"),
    ("dropped_in(_t dropped) returns text stable", "select _t::text", "HTTP"),
    ("dropped_nested() returns table(t dropped, n int) stable", "select t, 1 from dropped t", "HTTP\nnested"),
    ("altered_in(_t altered) returns text stable", "select _t::text", "HTTP"),
    ("altered_array() returns table(a altered[]) stable", "select array[(1, 'x', '2024-01-01')::altered]", "HTTP"),
    ("view_out() returns setof seen stable", "select * from seen", "HTTP"),
    ("split_out() returns setof split stable", "select * from split", "HTTP"),
    ("held() returns holder stable", f"select {HOLDER}", "HTTP"),
    ("held_array() returns table(hs holder[]) stable", f"select array[{HOLDER}]", "HTTP"),
    ("domains_in(_p positive, _ps positives default null) returns text stable", "select concat_ws('|', _p, _ps)",
     "HTTP"),
    ("odd_defaults(_a text default 'a, b', _b int[] default array[1,2], _c text default 'it''s', _d int default 3*3)"
     " returns text stable", "select concat_ws('|', _a, _b, _c, _d)", "HTTP"),
    ("out_first(out x int, _a int, out y text, _b text default 'z') stable", "select _a, _b", "HTTP"),
    ("procedure out_only(out _a int, _b int)", "select _b", "HTTP"),
    ("any_value(_a anyelement) returns anyelement stable", "select _a", "HTTP"),
    ("cursor_out() returns refcursor language plpgsql stable",
     "declare c refcursor := 'my c'; begin return c; end", "HTTP"),
    ("same_name(_a int, a int) returns text stable", "select _a || '-' || a", "HTTP"),
    ("many(" + ", ".join(f"_p{n} int default {n}" for n in range(60)) + ") returns int stable", "select _p0 + _p59",
     "HTTP"),
    # several annotations at once
    ("segment_resolved(_a int, _b text) returns text stable", AB,
     "HTTP GET /segment-resolved/{_b}\n_b = select 'r' || {_a}"),
    ("segment_default(_a int, _b text default null) returns text stable", AB,
     "HTTP GET /segment-default/{a?}\nparam _a default 5"),
    ("segment_retyped(_a text, _b text default null) returns text stable", AB,
     "HTTP GET /segment-retyped/{a}\nparam _a type is int"),
    ("segment_renamed(_a int, _b text default null) returns text stable", AB,
     "HTTP GET /segment-renamed/{x}\nparam _a x"),
    ("raw_renamed(_a text, _b text default null) returns text", AB,
     "HTTP POST\nparam _a payload\nbody_parameter_name payload"),
    ("raw_defaulted(_a int default 3, _b text default null) returns text", AB, "HTTP POST\nbody_parameter_name _a"),
    ("raw_array(_a text[], _b text default null) returns text", AB, "HTTP POST\nbody_parameter_name _a"),
    ("raw_boolean(_a boolean, _b text default null) returns text", AB, "HTTP POST\nbody_parameter_name _a"),
    ("raw_field(_box pair, _n int default 1) returns text", "select _box::text || _n",
     "HTTP POST\nbody_parameter_name boxLabel"),
    ("headers_renamed(_a text, _h text default null) returns text stable", "select _a || (_h is not null)",
     "HTTP\nparam _h is _headers"),
    ("headers_segment(_headers text default null) returns text stable", "select left(_headers, 5)",
     "HTTP GET /headers-segment/{_headers?}"),
    ("swapped(_a int, _b int) returns text stable", AB, "HTTP\nparam _a is b\nparam _b is a"),
    ("array_default(_a int[], _b text default null) returns text stable", AB, "HTTP\nparam _a default '{1,2}'"),
    ("empty_elements(_a text[], _b int[] default null) returns text stable", AB,
     "HTTP\nquery_null_handling empty_string"),
    ("bytes_single() returns setof bytea stable", "values ('ab'::bytea), ('cd')", "HTTP\nsingle"),
    ("bytes_array() returns table(b bytea[]) stable", "select array['\\x00'::bytea, null]", "HTTP"),
    ("typed_void() returns void", "select null", "HTTP GET\nsingle\nraw"),
    ("everything(_a int) returns int stable", "select _a", "HTTP\nnested\nsingle\nbuffer_rows 5\ncolumns\nraw"),
    ("raw_composites() returns table(id int, p pair, ps pair[]) stable",
     "select 1, (1, 'x')::pair, array[(2, 'y')::pair]", "HTTP\nraw\nseparator ;\ncolumns\nnew_line \\n"),
    ("nested_single() returns table(id int, p pair) stable", "select 1, (1, 'x')::pair", "HTTP\nnested\nsingle"),
    ("hidden_value(_a text) returns int stable", "select _a::int", "HTTP\nsensitive"),
    ("no_policy() returns text language plpgsql", "begin raise exception 'p'; end",
     "HTTP GET\nerror_code_policy nosuch\nretry_strategy nosuch"),
    ("main_connection() returns text stable", "select 'x'", "HTTP GET\nconnection Default"),
    ("late(_n int) returns setof int stable", "select 10 / (_n - g) from generate_series(1, _n) g", "HTTP"),
    *(_value(name, type_name) for name, type_name in (
        ("ints", "int[]"), ("texts", "text[]"), ("booleans", "boolean[]"), ("jsons", "json[]"), ("boxes", "box[]"),
        ("numerics", "numeric[]"), ("numeric_v", "numeric"), ("float_v", "float8"), ("real_v", "real"), ("int_v",
     "int"),
        ("bigint_v", "bigint"), ("boolean_v", "boolean"), ("json_v", "json"), ("text_v", "text"), ("money_v", "money"),
        ("date_v", "date"), ("moment_v", "timestamp"), ("zoned_v", "timestamptz"), ("interval_v", "interval"),
        ("mood_v", "s1.mood"), ("xml_v", "xml"), ("bytes_v", "bytea"))),
]  # fmt: skip

# type, JSON of `v`, response
VALUES = [
    ("ints", "[[1,2],[3,null]]", "200T {{1,2},{3,NULL}}"),
    ("ints", '["1"," 2 "]', "200T {1,2}"),
    ("ints", "5", "400 parameter 'v"),
    ("ints", "[true]", "400 parameter 'v"),
    ("ints", "[1.5]", "400 parameter 'v"),
    ("texts", '[["a"],["b"]]', "200T {{a},{b}}"),
    ("texts", '[1,true,null,{"a":1}]', '200T {1,true,NULL,"{\\"a\\":1}"}'),
    ("booleans", '[true,"false",null]', "200T {t,f,NULL}"),
    ("booleans", '["t"]', "400 parameter 'v"),
    ("jsons", '[{"a":1},[1],null,2]', '200T {"{\\"a\\":1}",[1],NULL,2}'),
    ("boxes", '["(1,2),(3,4)"]', "200T {(3,4),(1,2)}"),
    ("numerics", '[1.50,"2.5",1e3,null]', "200T {1.50,2.5,1000,NULL}"),
    ("numeric_v", "123456789012345678901234567890.5", "200T 123456789012345678901234567890.5"),
    ("numeric_v", "1e3", "200T 1000"),
    ("numeric_v", '"1e3"', "200T 1000"),
    ("numeric_v", '"1,000.5"', "200T 1000.5"),
    ("float_v", "1e400", "400 parameter 'v"),
    ("float_v", '"Infinity"', "200T Infinity"),
    ("real_v", "1e39", "400 parameter 'v"),
    ("int_v", "1e2", "400 parameter 'v"),
    ("int_v", "-0", "200T 0"),
    ("int_v", '"+5"', "200T 5"),
    ("int_v", '""', "400 parameter 'v"),
    ("bigint_v", "1.0", "400 parameter 'v"),
    ("boolean_v", '"TRUE "', "200T true"),
    ("boolean_v", '"f"', "400 parameter 'v"),
    ("json_v", '"\\"x\\""', '200T "x"'),
    ("json_v", '"x"', "400 parameter 'v"),
    ("json_v", "1.50", "200T 1.50"),
    ("text_v", '{"a" : 1}', '200T {"a" : 1}'),
    ("text_v", "1E5", "200T 1E5"),
    ("money_v", '"$12.50"', "200T $12.50"),
    ("date_v", '"2024-02-30"', "400 parameter 'v"),
    ("date_v", "20240101", "400 parameter 'v"),
    ("moment_v", '"2024-01-15"', "200T 2024-01-15 00:00:00"),
    ("moment_v", '"01/15/2024 10:30 PM"', "200T 2024-01-15 22:30:00"),
    ("moment_v", '"2024-01-15T10:30:00.1234567"', "200T 2024-01-15 10:30:00.123457"),
    ("moment_v", "1700000000", "400 parameter 'v"),
    ("zoned_v", '"2024-01-15T10:30:00.5-05:00"', "200T 2024-01-15 15:30:00.5+00"),
    ("interval_v", '"1 hour 5 minutes"', "200T 01:05:00"),
    ("interval_v", '"zz"', "400 parameter 'v"),
    ("mood_v", '"b c"', "200T b c"),
    ("mood_v", "5", "400 parameter 'v"),
    ("xml_v", '"<a>"', "400 parameter 'v"),
    ("bytes_v", '"\\\\x00ff"', "200T \\x00ff"),
]

CASES: list[RequestContext] = [
    ("GET /api/moods?m=a&ms=a&ms=b%20c&o=x", '200T a|{a,"b c"}|x'),
    ("GET /api/moods?m=zz", "400 parameter '"),
    ('GET /api/quoted-in?tId=1&tNa"me=q&tM=a&tM=b%20c', '200T (1,q,"{a,""b c""}")'),
    ("GET /api/quoted-out", '200 {"Id":1,"Na\\"me":"n","m":["a","b c"]}'),
    ("GET /api/quoted-nested", '200 [{"x":{"id":1,"na\\"me":"n","m":["a","b c"]},"y":"a"}]'),
    ("GET /api/dropped-out", '200 [{"a":1,"b":"x","c":2}]'),
    ("GET /api/dropped-in?tA=1&tB=x", "200T (1,x,)"),
    ("GET /api/dropped-nested", '200 [{"t":{"a":1,"b":"x","c":2},"n":1}]'),
    ("GET /api/altered-in?tA=1&tB=x&tC=2024-01-01", "200T (1,x,2024-01-01)"),
    ("GET /api/altered-array", '200 [{"a":[{"a":1,"b":"x","c":"2024-01-01"}]}]'),
    ("GET /api/view-out", '200 [{"a":1,"View Col":"x"}]'),
    ("GET /api/split-out", '200 [{"id":1,"k":"a"}]'),
    ("GET /api/held",
     '200 {"p":1,"ps":["1","2"],"m":"b c","r":"[1,3)","j":{"a":1},"n":1.50,"ts":["2024-01-01T00:00:00+00:00"]}'),
    ("GET /api/held-array",
     '200 [{"hs":[{"p":"1","ps":["1","2"],"m":"b c","r":"[1,3)","j":{"a":1},"n":1.50,'
     '"ts":["2024-01-01T00:00:00+00:00"]}]}]'),
    ("GET /api/domains-in?p=5&ps=1&ps=2", "200T 5|{1,2}"),
    ("GET /api/domains-in?p=0", "400 parameter '"),
    ("GET /api/odd-defaults", "200T a, b|{1,2}|it's|9"),
    ("GET /api/odd-defaults?c=x&d=1", "200T a, b|{1,2}|x|1"),
    ("GET /api/out-first?a=5", '200 {"x":5,"y":"z"}'),
    ('POST /api/out-only {"b":1}', "204"),
    ('POST /api/out-only {"a":1,"b":1}', "404 a"),
    ("GET /api/any-value?a=5", "200T 5"),
    ("GET /api/cursor-out", "200T my c"),
    ("GET /api/same-name?a=5", "200T 5-5"),
    ("GET /api/many?p59=1", "200T 1"),
    ("GET /segment-resolved/anything?a=1", "200T 1|r1"),
    ("GET /segment-default", "200T 5|NULL"),
    ("GET /segment-default/4", "200T 4|NULL"),
    ("GET /segment-default/q", "400 parameter '"),
    ("GET /segment-retyped/7", "200T 7|NULL"),
    ("GET /segment-retyped/q", "400 parameter '"),
    ("GET /segment-renamed/5", "200T 5|NULL"),
    ("POST /api/raw-renamed?b=q the body", "200T the body|q"),
    ("POST /api/raw-defaulted 5", "200T 5|NULL"),
    ("POST /api/raw-defaulted maybe", "400 parameter '"),
    ("POST /api/raw-array plain", "200T {plain}|NULL"),
    ("POST /api/raw-boolean true", "200T true|NULL"),
    ("POST /api/raw-field?boxId=1 hello", "200T (1,hello)1"),
    ("GET /api/headers-renamed?a=q", "200T qtrue"),
    ("GET /headers-segment/other", '200T {"Hos'),
    ("GET /headers-segment", '200T {"Hos'),
    ("GET /api/swapped?b=1&a=2", "200T 1|2"),
    ("GET /api/array-default", "200T {1,2}|NULL"),
    ("GET /api/array-default?a=5", "200T {5}|NULL"),
    ("GET /api/empty-elements?a=&a=x&b=&b=1", "200T {NULL,x}|{NULL,1}"),
    ("GET /api/bytes-single", "200B ab"),
    ("GET /api/bytes-array", '200 [{"b":["\\\\x00",null]}]'),
    ("GET /api/typed-void", "204"),
    ("GET /api/everything?a=1", "200T 1"),
    ("GET /api/raw-composites", '200 "id";"id";"label";"ps"\n1;1;"x";{"(2,y)"}'),
    ("GET /api/nested-single", '200 {"id":1,"p":{"id":1,"label":"x"}}'),
    ("GET /api/hidden-value?a=secret", '400 invalid input syntax for type integer: "***"|22P02'),
    ("GET /api/no-policy", "500 P0001: p|P0001"),
    ("GET /api/main-connection", "200T x"),
    ("GET /api/late?n=3", "500 22012: division by zero|22012"),
    *((f"POST /api/{name.replace('_', '-')} {{\"v\":{value}}}", answer) for name, value, answer in VALUES),
]  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, TYPES + routines(ROUTINES))


@pytest.mark.parametrize("context", cases(CASES))
def test_combination_gets_the_expected_response(service: Service, context: RequestContext) -> None:
    check(service, context)
