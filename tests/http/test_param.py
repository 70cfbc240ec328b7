"""`param`: what a parameter is called, how it is read, and what it is when it is missing (comments-22 to
comments-25)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

PAIR = "(_id int, _note text) returns text language sql stable as $$ select format('%L %L', _id, _note) $$"

SQL = f"""
create type crate as (width int, unit_code text);
create function renamed{PAIR};
comment on function renamed is 'HTTP GET /renamed
param _id is number
@param note shortNote';

create function in_path{PAIR};
comment on function in_path is 'HTTP GET /in-path/{{number}}
parameter _id is number
param number default 5';

create function defaults(_n int, _t text, _a int[], _b boolean) returns text language sql stable
  as $$ select format('%L %L %L %L', _n, _t, _a, _b) $$;
comment on function defaults is 'HTTP GET /defaults
param :_n default 42 and nothing else counts
param t = ''two words, it''''s''
param A default {{1,2}}
param _b default';

create function read_defaults(_at timestamp, _tz timestamptz, _n numeric, _id uuid, _ids int[], _more int[], _b boolean,
  _box crate[], _day date) returns text language sql stable set timezone = 'UTC'
  as $$ select concat_ws(' ', _at, _tz, _n, _id, _ids, _more, _b, _box, _day = current_date) $$;
comment on function read_defaults is 'HTTP GET /read-defaults
param _at default 2026-03-01T10:00:00+02:00
param _tz default ''2026-03-01T10:00:00''
param _n default 1,000
param _id default {{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}}
param _ids default 1
param _more default [2,null]
param _b default yes
param _box default ''[{{"width": 1}}]''
param _day default today';

create function invalid_defaults(_n int, _m int default 7, _ids int[] default null, _at date default null) returns text
  language sql stable as $$ select concat_ws(' ', _n, _m, _ids, _at) $$;
comment on function invalid_defaults is 'HTTP GET /invalid-defaults
param _n default ten
param _m is many default 1.5
param _ids default [1,x]
param _at default whenever';

create function in_body(_n int, _t text) returns text language sql as $$ select format('%L %L', _n, _t) $$;
comment on function in_body is 'HTTP POST /in-body
param _n is count default null
param _t = ''''';

create function server_default(_n int default 7) returns text language sql stable as $$ select format('%L', _n) $$;
comment on function server_default is 'HTTP GET /server-default
param _n default 8';

create function retyped(_n text, _d text default null, _list text default null) returns text language sql stable
  as $$ select format('%L %L %L', _n, _d, _list) $$;
comment on function retyped is 'HTTP GET /retyped
param _n type is int
param _d is day date
param _list type is int[]';

create function any_range(_v anyrange) returns text language sql stable as $$ select pg_typeof(_v)::text $$;
comment on function any_range is 'HTTP GET /any-range';

create function ranged(_v anyrange) returns text language sql stable as $$ select pg_typeof(_v)::text $$;
comment on function ranged is 'HTTP GET /ranged
param _v type is int4range';

create function anything(_v anyelement) returns text language sql stable as $$ select pg_typeof(_v)::text $$;
comment on function anything is 'HTTP GET /anything
param _v type is int';

create function composite(_box crate) returns text language sql stable as $$ select _box::text $$;
comment on function composite is 'HTTP GET /composite
param _box is carton
param carton_width is wide default 3
param cartonUnitCode code';

create function unnamed(int, text default 'x') returns text language sql stable as $$ select format('%L %L', $1, $2) $$;
comment on function unnamed is 'HTTP GET /unnamed
param $1 is first
param $2 second';

create function swapped(_a int, _b int) returns text language sql stable as $$ select format('%s %s', _a, _b) $$;
comment on function swapped is 'HTTP GET /swapped
param _a is x
param _b is _a
param x is _b';

create function strict_one(_n int) returns text language sql stable strict as $$ select 'ran' $$;
comment on function strict_one is 'HTTP GET /strict-one
param _n default null';

create function formatted(_n int, _t text) returns text language sql stable as $$ select format('%s %s', _n, _t) $$;
comment on function formatted is 'HTTP GET /formatted
X-Number: {{number}}
param _n is number
param _t default kind';

create function registered(_password text, _stored text default null) returns text language sql
  as $$ select concat_ws(' ', _password, coalesce(_stored, 'NULL')) $$;
comment on function registered is 'HTTP POST /registered
param _password is secret
param _stored is hash of secret';

create function mistakes(_n int, _box crate default null) returns text language sql stable
  as $$ select format('%L', _n) $$;
comment on function mistakes is 'HTTP GET /mistakes
param _m is other
param _n is 1st
param _n type is unknown_type
param _box default x
param _n
param';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


@pytest.mark.parametrize(
    ("path", "received"),
    [
        ("/renamed?number=1&shortNote=x", "'1' 'x'"),
        ("/in-path/3?note=x", "'3' 'x'"),
        ("/defaults", "'42' 'two words, it''s' '{1,2}' NULL"),
        ("/defaults?n=&t=&a=9&b=true", "NULL '' '{9}' 't'"),
        ("/server-default", "'8'"),
        ("/server-default?n=9", "'9'"),
        ("/retyped?n=%2012%20&day=2026-03-01T23:30:00-02:00&list=1&list=2", "'12' '2026-03-02' '{1,2}'"),
        ("/anything?v=7", "integer"),
        ("/ranged?v=[1,7)", "int4range"),
        ("/composite?wide=4&code=cm", "(4,cm)"),
        ("/composite", "(3,)"),
        ("/unnamed?first=4&second=y", "'4' 'y'"),
        ("/unnamed?first=4", "'4' 'x'"),
        ("/swapped?_b=1&_a=2", "1 2"),
    ],
)
def test_renamed_parameters_receive_their_values(service: Service, path: str, received: str) -> None:
    assert answer(service.get(path)) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/renamed?id=1&shortNote=x", "id"),
        ("/renamed?number=1&note=x", "note"),
        ("/renamed?Number=1&shortNote=x", "number"),
        ("/composite?boxWidth=4", "boxWidth"),
        ("/unnamed?$1=4", "$1"),
    ],
)
def test_old_names_and_wrong_values_are_refused(service: Service, path: str, named: str) -> None:
    assert named in problem(service.get(path), 404)["detail"]


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("/renamed?number=x&shortNote=x", "'number' (integer): 'x' is not an integer"),
        ("/retyped?n=twelve", "'twelve' is not an integer"),
        ("/defaults?n=many", "'many' is not an integer"),
    ],
)
def test_a_value_that_does_not_fit_the_annotated_type_is_refused(service: Service, path: str, named: str) -> None:
    assert named in problem(service.get(path), 400)["detail"]


@pytest.mark.parametrize(
    ("body", "received"),
    [
        (b"{}", "NULL ''"),
        (b'{"count":3,"t":null}', "'3' NULL"),
        (b'{"count":null,"t":"null"}', "NULL 'null'"),
    ],
)
def test_defaults_apply_to_missing_members_only(service: Service, body: bytes, received: str) -> None:
    assert answer(service.post("/in-body", content=body)) == (200, TEXT, received)


def test_defaults_are_read_like_values_of_requests(service: Service) -> None:
    moments = "2026-03-01 08:00:00 2026-03-01 10:00:00+00"
    received = f'{moments} 1000 a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 {{1}} {{2,NULL}} t {{"(1,)"}} t'
    assert answer(service.get("/read-defaults")) == (200, TEXT, received)


def test_defaults_that_are_no_values_of_their_type_are_reported_and_not_used(service: Service) -> None:
    assert "'n' (integer) is required" in problem(service.get("/invalid-defaults"), 404)["detail"]
    assert answer(service.get("/invalid-defaults?n=1")) == (200, TEXT, "1 7")
    for message in (
        "the default of _n (integer) is not used: 'ten' is not an integer (comment line: param _n default ten)",
        "the default of many (integer) is not used: '1.5' is not an integer (comment line: param _m is many",
        "the default of _ids (integer[]) is not used: ",
        "the default of _at (date) is not used: 'whenever' is not a date",
    ):
        assert service.log.count(message) == 1


def test_a_strict_function_is_not_called_for_a_null_default(service: Service) -> None:
    assert answer(service.get("/strict-one")) == (204, None, "")
    assert answer(service.get("/strict-one?n=1")) == (200, TEXT, "ran")


def test_placeholders_accept_the_new_name_of_a_renamed_parameter(service: Service) -> None:
    response = service.get("/formatted?number=12")
    assert (response.text, response.headers["x-number"]) == ("12 kind", "12")


@pytest.mark.parametrize(
    "message",
    [
        "has no parameter _m (comment line: param _m is other)",
        "'1st' is not a name",
        "parameter _v is of the pseudo-type anyrange",
        "unknown_type is not a known type; the type stays integer",
        "_box is a composite; name one of its fields: boxWidth, boxUnitCode (comment line: param _box default x)",
    ],
)
def test_impossible_param_annotations_are_reported_once(service: Service, message: str) -> None:
    assert service.log.count(message) == 1
    assert answer(service.get("/mistakes?n=1")) == (200, TEXT, "'1'")


def test_a_parameter_is_filled_with_the_hash_of_another(service: Service) -> None:
    secret, stored = service.post("/registered", json={"secret": "pass", "stored": "forged"}).text.split(" ")
    assert (secret, len(stored)) == ("pass", 64)
    assert service.post("/registered", json={"secret": "pass"}).text != f"pass {stored}"
    assert service.post("/registered", json={"secret": None}).text == "NULL"
