"""Composite values in requests: as fields, as objects, in arrays, nested (binding-4 to binding-6)."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type gauge as (id int, unit_code text);
create type crate as ("Code" char(3), item gauge, parts gauge[], meta jsonb, at timestamp);
create domain small_gauge as gauge check ((value).id < 100);
create domain gauges as gauge[];
create domain numbers as int[] check (array_length(value, 1) < 4);
create table parcel (id int, gone text, weight numeric(6, 2), tags text[], ready boolean);
alter table parcel drop column gone;

create type label as (code varchar(3), pad char(2), flags bit varying(3), names varchar(2)[], n int);
create table tag (id int primary key, code varchar(3));

create function fit(_box gauge, _n int default 1) returns text language sql as $$ select _box::text || ' ' || _n $$;
comment on function fit is 'HTTP POST /fit';
create function fit_query(_box gauge) returns text language sql stable as $$ select _box::text $$;
comment on function fit_query is 'HTTP GET /fit';
create function pack(_c crate) returns text language sql as $$ select _c::text $$;
comment on function pack is 'HTTP POST /pack';
create function store(_p parcel) returns text language sql as $$ select _p::text $$;
comment on function store is 'HTTP POST /store';
create function measure(_gauges gauge[]) returns text language sql as $$ select _gauges::text $$;
comment on function measure is 'HTTP POST /measure';
create function measure_query(_gauges gauge[]) returns text language sql stable as $$ select _gauges::text $$;
comment on function measure_query is 'HTTP GET /measure';
create function crates(_crates crate[]) returns text language sql as $$ select _crates::text $$;
comment on function crates is 'HTTP POST /crates';
create function domains(_g small_gauge default null, _gs gauges default null, _n numbers default null) returns text
  language sql as $$ select concat_ws(' ', _g, _gs, _n) $$;
comment on function domains is 'HTTP POST /domains';
create function domains_query(_n numbers) returns text language sql stable as $$ select _n::text $$;
comment on function domains_query is 'HTTP GET /domains';
create function spread(variadic _gauges gauge[]) returns text language sql as $$ select _gauges::text $$;
comment on function spread is 'HTTP POST /spread';
create function chosen(_box gauge) returns text language sql as $$ select 'a box' $$;
comment on function chosen(gauge) is 'HTTP POST /chosen';
create function chosen(_name text) returns text language sql as $$ select 'a name' $$;
comment on function chosen(text) is 'HTTP POST /chosen';
create function stick(_l label) returns text language sql as $$ select _l::text $$;
comment on function stick is 'HTTP POST /stick';
create function stick_query(_l label) returns text language sql stable as $$ select _l::text $$;
comment on function stick_query is 'HTTP GET /stick';
create function hang(_t tag) returns text language sql as $$ select _t::text $$;
comment on function hang is 'HTTP POST /hang';
create function same_name(_box gauge, box text) returns text language sql as $$ select _box::text || box $$;
comment on function same_name is 'HTTP POST /same-name';
"""

ODD = 'q"u\\o, (t)e\n\t{}é'


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


def as_text(database: Database, expression: str, *values: object) -> str:
    text: str = database.value(f"select ({expression})::text", *values)
    return text


@pytest.mark.parametrize(
    ("body", "received"),
    [
        ({"boxId": 4, "boxUnitCode": "cm"}, "(4,cm) 1"),
        ({"box": {"id": 4, "unitCode": "cm"}}, "(4,cm) 1"),
        ({"box": {"id": "4", "unit_code": "cm"}, "n": 2}, "(4,cm) 2"),
        ({"box": {"id": 4}, "boxUnitCode": "cm"}, "(4,cm) 1"),
        ({"box": {"unitCode": None}}, "(,) 1"),
        ({"box": {"unitCode": ""}}, '(,"") 1'),
        ({"box": {"unitCode": "null"}}, "(,null) 1"),
        ({"box": {}}, "(,) 1"),
        ({"box": None}, "(,) 1"),
        ({}, "(,) 1"),
    ],
)
def test_a_composite_parameter_is_sent_by_field_or_as_an_object(
    service: Service, body: dict[str, object], received: str
) -> None:
    assert answer(service.post("/fit", json=body)) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ('{"box":{"id":"x"}}', 400, "box.id"),
        ('{"box":{"id":1.5}}', 400, "box.id"),
        ('{"box":7}', 400, "box"),
        ('{"box":7,"z":1}', 404, "z"),
        ('{"box":[4,"cm"]}', 400, "box"),
        ('{"box":{"height":7}}', 404, "box.height"),
        ('{"box":{"ID":7}}', 404, "box.ID"),
        ('{"box":{"id":1,"id":2}}', 400, "id"),
        ('{"box":{"id":1},"box":{"unitCode":"cm"}}', 400, "the key 'box' is there twice"),
        ('{"box":{},"n":1,"box":{"id":1}}', 400, "the key 'box' is there twice"),
        ('{"box":{"unitCode":"a","unit_code":"b"}}', 400, "boxUnitCode"),
        ('{"box":{"id":1},"boxId":2}', 400, "boxId"),
        ('{"box":{"unitCode":"\\u0000"}}', 400, "box.unitCode"),
        ('{"Box":{"id":1}}', 404, "Box"),
    ],
)
def test_objects_with_wrong_members_are_refused(service: Service, body: str, status: int, named: str) -> None:
    assert named in problem(service.post("/fit", content=body), status)["detail"]


@pytest.mark.parametrize(
    ("query", "received"),
    [
        ("boxId=4&boxUnitCode=cm", "(4,cm)"),
        ('box={"id":4,"unitCode":"cm"}', "(4,cm)"),
        ('box={"id":4}&boxUnitCode=', '(4,"")'),
        ("", "(,)"),
    ],
)
def test_query_string_accepts_composite_fields_and_objects(service: Service, query: str, received: str) -> None:
    assert answer(service.get(f"/fit?{quote(query, safe='=&')}")) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("query", "status"),
    [("box=1", 404), ('box={"id":"x"}', 400), ('box={"id":', 400), ('box={"id":1}&boxId=2', 400), ("boxId=q", 400)],
)
def test_query_string_refuses_invalid_composites(service: Service, query: str, status: int) -> None:
    problem(service.get(f"/fit?{quote(query, safe='=&')}"), status)


def test_composites_nest_to_any_depth(service: Service, database: Database) -> None:
    sent = {
        "Code": "abc",
        "item": {"id": 1, "unitCode": ODD},
        "parts": [{"id": 2, "unitCode": ODD}, None, {"unitCode": None}],
        "meta": {"k": [1, "x"]},
        "at": "2026-03-01T10:00:00+02:00",
    }
    inner = "(%s, (1, %s)::gauge, array[(2, %s)::gauge, null, (null, null)::gauge], %s::jsonb, %s::timestamp)::crate"
    values = ("abc", ODD, ODD, json.dumps(sent["meta"]), "2026-03-01 08:00:00")
    received = as_text(database, inner, *values)
    assert answer(service.post("/pack", json={"c": sent})) == (200, TEXT, received)
    by_field = {f"c{key[0].upper()}{key[1:]}": value for key, value in sent.items()}
    assert answer(service.post("/pack", json=by_field)) == (200, TEXT, received)
    assert answer(service.post("/crates", json={"crates": [sent, None]})) == (
        200,
        TEXT,
        as_text(database, f"array[{inner}, null]", *values),
    )


@pytest.mark.parametrize(
    ("label", "received"),
    [
        ({"code": "äöü", "pad": "x", "flags": "101", "names": ["ab", None], "n": 1}, '(äöü,"x ",101,"{ab,NULL}",1)'),
        ({"code": "abc  ", "names": '{"a",b}'}, '(abc,,,"{a,b}",)'),
        ({"code": 123, "flags": 11, "names": []}, "(123,,11,{},)"),
    ],
)
def test_attributes_with_a_length_accept_values_that_fit(
    service: Service, label: dict[str, object], received: str
) -> None:
    assert answer(service.post("/stick", json={"l": label})) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        ("code", "abcd", "'l.code' (character varying(3)): 'abcd' has more than 3 characters"),
        ("code", 1234, "'l.code' (character varying(3)): '1234' has more than 3 characters"),
        ("code", "\u00e4bcd\n", "has more than 3 characters"),
        ("pad", "abc", "'l.pad' (character(2)): 'abc' has more than 2 characters"),
        ("flags", "1010", "'l.flags' (bit varying(3)): '1010' has more than 3 bits"),
        ("flags", "xF", "has more than 3 bits"),
        ("names", ["ab", "abc"], "'l.names[1]' (character varying(2)): 'abc' has more than 2 characters"),
        ("names", '{ab,"abc"}', "'abc' has more than 2 characters"),
    ],
)
def test_values_that_are_too_long_for_an_attribute_are_refused(
    service: Service, member: str, value: object, reason: str
) -> None:
    by_object = problem(service.post("/stick", json={"l": {member: value}}), 400)["detail"]
    assert reason in by_object
    by_field = problem(service.post("/stick", json={f"l{member.title()}": value}), 400)["detail"]
    assert reason.partition(": ")[2] in by_field


def test_values_of_a_query_and_of_a_row_type_that_are_too_long_are_refused(service: Service) -> None:
    assert answer(service.get("/stick?lCode=abc&lNames=ab&lNames=b")) == (200, TEXT, '(abc,,,"{ab,b}",)')
    for query in ("lCode=abcd", "lNames=ab&lNames=abc", 'l={"code":"abcd"}'):
        assert "has more than" in problem(service.get(f"/stick?{quote(query, safe='=&')}"), 400)["detail"]
    assert answer(service.post("/hang", json={"t": {"id": 1, "code": "abc"}})) == (200, TEXT, "(1,abc)")
    assert "has more than 3" in problem(service.post("/hang", json={"t": {"id": 1, "code": "abcd"}}), 400)["detail"]


def test_nested_invalid_value_is_reported_with_its_path(service: Service) -> None:
    detail = problem(service.post("/crates", json={"crates": [{"parts": [{"id": "x"}]}]}), 400)["detail"]
    assert detail == "parameter 'crates[0].parts[0].id' (integer): 'x' is not an integer"


def test_a_table_type_is_a_composite_without_its_dropped_columns(service: Service) -> None:
    parcel = {"id": 7, "weight": 1.555, "tags": ["a,b", None, ""], "ready": True}
    assert answer(service.post("/store", json={"p": parcel})) == (200, TEXT, '(7,1.56,"{""a,b"",NULL,""""}",t)')


@pytest.mark.parametrize(
    ("value", "received"),
    [
        ([{"id": 1, "unitCode": "a"}, {"id": 2}], '{"(1,a)","(2,)"}'),
        (["(1,a)", None], '{"(1,a)",NULL}'),
        ([[{"id": 1}], [{"id": 2}]], '{{"(1,)"},{"(2,)"}}'),
        ([], "{}"),
        ('{"(1,a)"}', '{"(1,a)"}'),
    ],
)
def test_body_accepts_arrays_of_composites(service: Service, value: object, received: str) -> None:
    assert answer(service.post("/measure", json={"gauges": value})) == (200, TEXT, received)
    assert answer(service.post("/spread", json={"gauges": value})) == (200, TEXT, received)


@pytest.mark.parametrize(
    ("query", "received"),
    [
        ("gauges=(1,a)&gauges=(2,)", '{"(1,a)","(2,)"}'),
        ('gauges={"id":1,"unitCode":"a"}&gauges=', '{"(1,a)",NULL}'),
        ('gauges=[{"id":1},{"id":2}]', '{"(1,)","(2,)"}'),
    ],
)
def test_query_string_accepts_arrays_of_composites(service: Service, query: str, received: str) -> None:
    assert answer(service.get(f"/measure?{quote(query, safe='=&')}")) == (200, TEXT, received)


@pytest.mark.parametrize("value", [{"id": 1}, [{"nope": 1}], [{"id": []}], [7], "(1,a)", [[{}], {}]])
def test_invalid_array_of_composites_is_refused(service: Service, value: object) -> None:
    assert (
        "gauges"
        in problem(service.post("/measure", json={"gauges": value}), 404 if value == [{"nope": 1}] else 400)["detail"]
    )


def test_domains_over_composites_and_arrays_accept_the_same_values(service: Service) -> None:
    sent = {"g": {"id": 5, "unitCode": "x"}, "gs": [{"id": 6}], "n": [1, 2]}
    assert answer(service.post("/domains", json=sent)) == (200, TEXT, '(5,x) {"(6,)"} {1,2}')
    assert answer(service.get("/domains?n=1&n=2")) == (200, TEXT, "{1,2}")


def test_domain_constraints_are_still_checked(service: Service) -> None:
    for sent in ({"g": {"id": 500}}, {"n": [1, 2, 3, 4]}):
        members = problem(service.post("/domains", json=sent), 400)
        assert "the value is not allowed" in members["detail"]
        assert "check" not in members["detail"]


def test_overload_selection_treats_an_object_as_its_fields(service: Service) -> None:
    assert answer(service.post("/chosen", json={"box": {"id": 1}})) == (200, TEXT, "a box")
    assert answer(service.post("/chosen", json={"name": "x"})) == (200, TEXT, "a name")


def test_parameter_with_the_object_name_takes_precedence(service: Service) -> None:
    assert answer(service.post("/same-name", json={"boxId": 1, "box": "x"})) == (200, TEXT, "(1,)x")
