"""User-defined validation rules for numbers and arrays, and the response to a value that breaks one."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function book(_seats int, _names text[], _mail text default null, _price numeric default 1) returns text
language sql as $$ select 'booked' $$;
comment on function book(int, text[], text, numeric) is 'HTTP POST /book
validate _seats using seats
validate _names using some, few
validate mail using email
validate _price using cheap
validate_message _names few At most two people, and {0} has more';
create function look(_names text[]) returns text language sql stable as $$ select 'seen' $$;
comment on function look(text[]) is 'HTTP GET /look
validate _names using few';
create function lease(_id int[], _rooms box[] default null) returns text language sql as $$ select 'leased' $$;
comment on function lease(int[], box[]) is 'HTTP POST /lease/{_id}
validate _id using some
validate _rooms using few';
create function meet(_names text[]) returns text language sql stable as $$ select 'met' $$;
comment on function meet(text[]) is 'HTTP GET /meet/{_names}
validate _names using some';
create function reserve(_from int, _most numeric, _seats int, _code text, _names text[]) returns text language sql
as $$ select 'reserved' $$;
comment on function reserve(int, numeric, int, text, text[]) is 'HTTP POST /reserve
validate _from using from
validate _most using most
validate _seats using between
validate _code using long
validate _names using pair';
create type span as (day date, tags text[]);
create function stamp(_at timestamptz default null, _id uuid default null, _n numeric default null) returns text
language sql stable as $$ select 'stamped' $$;
comment on function stamp is 'HTTP GET /stamp/{_id?}
validate _at using iso
validate _id using upper
validate _n using short, thousands';
create function stamp_body(_at timestamptz default null, _id uuid default null, _n numeric default null) returns text
language sql as $$ select 'stamped' $$;
comment on function stamp_body is 'HTTP POST /stamp
validate _at using iso
validate _id using upper
validate _n using short, thousands';
create function days(_s span) returns text language sql stable as $$ select 'days' $$;
comment on function days is 'HTTP GET /days
validate sDay using day';
create function days_body(_s span) returns text language sql as $$ select 'days' $$;
comment on function days_body is 'HTTP POST /days
validate sDay using day
validate sTags using json';
create function amount(_n int, _tags text[]) returns text language sql stable as $$ select 'counted ' || _n $$;
comment on function amount is 'HTTP GET /count
param _n default 5
param _tags default {a,b}
validate _n using short
validate _tags using short';
"""
RULES = "ValidationOptions:Rules:"
SETTINGS = {
    f"{RULES}seats:Type": "Range",
    f"{RULES}seats:Min": "1",
    f"{RULES}seats:Max": "4",
    f"{RULES}seats:Message": "{1} goes from 1 to 4",
    f"{RULES}some:Type": "MinItems",
    f"{RULES}some:MinItems": "1",
    f"{RULES}few:Type": "MaxItems",
    f"{RULES}few:MaxItems": "2",
    f"{RULES}cheap:Type": "Max",
    f"{RULES}cheap:Max": "9.99",
    f"{RULES}cheap:StatusCode": "422",
    f"{RULES}from:Type": "Min",
    f"{RULES}from:Min": "-1e3",
    f"{RULES}most:Type": "Max",
    f"{RULES}most:Max": "0.50",
    f"{RULES}between:Type": "Range",
    f"{RULES}between:Min": "1",
    f"{RULES}between:Max": "4",
    f"{RULES}long:Type": "MinLength",
    f"{RULES}long:MinLength": "2",
    f"{RULES}pair:Type": "MaxItems",
    f"{RULES}pair:MaxItems": "2",
    f"{RULES}iso:Type": "Regex",
    f"{RULES}iso:Pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$",
    f"{RULES}upper:Type": "Regex",
    f"{RULES}upper:Pattern": "^[0-9A-F-]{36}$",
    f"{RULES}short:Type": "MaxLength",
    f"{RULES}short:MaxLength": "5",
    f"{RULES}thousands:Type": "Max",
    f"{RULES}thousands:Max": "1000",
    f"{RULES}day:Type": "Regex",
    f"{RULES}day:Pattern": "^[0-9]{2}/",
    f"{RULES}json:Type": "Regex",
    f"{RULES}json:Pattern": r'^\["',
}
GOOD = {"seats": 2, "names": ["Ann"]}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


@pytest.mark.parametrize(
    "change", [{}, {"seats": 1}, {"seats": 4}, {"seats": None}, {"mail": "a@b.c"}, {"price": 9.99}]
)
def test_valid_values_are_accepted(service: Service, change: dict[str, object]) -> None:
    assert answer(service.post("/book", json=GOOD | change)) == (200, TEXT, "booked")


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"seats": 0}, 400, "seats goes from 1 to 4"),
        ({"seats": 5}, 400, "seats goes from 1 to 4"),
        ({"names": []}, 400, "Parameter 'names' must have at least 1 item"),
        ({"names": ["a", "b", "c"]}, 400, "At most two people, and names has more"),
        ({"mail": "nowhere"}, 400, "Parameter 'mail' must be a valid email address"),
        ({"price": 10}, 422, "Parameter 'price' must be at most 9.99"),
    ],
)
def test_values_that_violate_a_rule_are_reported(
    service: Service, change: dict[str, object], status: int, message: str
) -> None:
    assert problem(service.post("/book", json=GOOD | change), status)["detail"] == message


def test_the_default_message_states_the_bounds(service: Service) -> None:
    wrong = {"from": -1001, "most": 1, "seats": 9, "code": "x", "names": ["a", "b", "c"]}
    members = problem(service.post("/reserve", json=wrong), 400)
    assert members["detail"] == "Parameter 'from' must be at least -1000"
    assert [error["message"] for error in members["errors"][1:]] == [
        "Parameter 'most' must be at most 0.50",
        "Parameter 'seats' must be between 1 and 4",
        "Parameter 'code' must have at least 2 characters",
        "Parameter 'names' must have at most 2 items",
    ]


def test_all_violated_rules_are_reported_at_once(service: Service) -> None:
    members = problem(service.post("/book", json={"seats": 9, "names": [], "mail": "x"}), 400)
    assert [error["parameter"] for error in members["errors"]] == ["seats", "names", "mail"]


def test_elements_of_arrays_in_a_query_are_counted(service: Service) -> None:
    assert answer(service.get("/look?names=a,b,c&names=d")) == (200, TEXT, "seen")
    problem(service.get("/look?names=a&names=b&names=c"), 400)


def test_elements_of_array_literals_and_lengths_of_segments_are_counted(service: Service) -> None:
    assert answer(service.get("/meet/Ann")) == (200, TEXT, "met")
    assert answer(service.post("/lease/1", json={"rooms": ["(0,0),(1,1)", "(0,0),(1,1)"]})) == (200, TEXT, "leased")
    problem(service.post("/lease/1", json={"rooms": ["(0,0),(1,1)"] * 3}), 400)
    assert answer(service.post("/book", json=GOOD | {"names": '{"a,b",c}'})) == (200, TEXT, "booked")
    problem(service.post("/book", json=GOOD | {"names": "{a\\,b,c,d}"}), 400)
    problem(service.post("/book", json=GOOD | {"names": "{ }"}), 400)


UPPER = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("at=2026-03-01T10:00:00Z", 200),
        ("at=2026-03-01+10:00:00", 400),
        (f"id={UPPER}", 200),
        (f"id={UPPER.lower()}", 400),
        ("n=1,000", 200),
        ("n=%201000", 200),
        ("n=%20%201000", 400),
        ("n=1,001", 400),
        ("", 200),
    ],
)
def test_rules_for_texts_check_a_value_as_it_was_sent_in_the_query(service: Service, query: str, status: int) -> None:
    assert service.get(f"/stamp?{query}").status_code == status


def test_rules_for_texts_check_a_value_as_it_was_sent_in_the_path(service: Service) -> None:
    assert service.get(f"/stamp/{UPPER}").status_code == 200
    problem(service.get(f"/stamp/{UPPER.lower()}"), 400)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"at": "2026-03-01T10:00:00Z", "id": UPPER, "n": 1000}, 200),
        ({"at": "2026-03-01 10:00:00"}, 400),
        ({"id": UPPER.lower()}, 400),
        ({"n": 999.99}, 400),
        ({"n": "1,000"}, 200),
        ({}, 200),
    ],
)
def test_rules_for_texts_check_a_value_as_it_was_sent_in_the_body(
    service: Service, body: dict[str, object], status: int
) -> None:
    assert service.post("/stamp", json=body).status_code == status
    assert service.post("/stamp", data=body).status_code == status


def test_rules_for_texts_check_fields_of_composites_as_they_were_sent(service: Service) -> None:
    for query, status in (
        ("sDay=03/01/2026", 200),
        ("sDay=2026-03-01", 400),
        ('s={"day":"03/01/2026"}', 200),
        ('s={"day":"2026-03-01"}', 400),
    ):
        assert service.get(f"/days?{query}").status_code == status
    sent = {"day": "03/01/2026", "tags": ["a"]}
    assert service.post("/days", json={"s": sent}).status_code == 200
    assert service.post("/days", json={"sDay": "03/01/2026", "s": {"tags": ["a"]}}).status_code == 200
    problem(service.post("/days", json={"s": {**sent, "day": "2026-03-01"}}), 400)
    problem(service.post("/days", json={"s": {**sent, "tags": []}}), 400)


@pytest.mark.usefixtures("service")
def test_rules_check_the_value_that_replaces_an_invalid_or_unknown_one(database: Database, serve_once: Serve) -> None:
    keys = {"Service:UnusableValues": "Established", "Service:UnknownQueryParameters": "Ignore"}
    service = serve_once(database, "", SETTINGS | keys)
    problem(service.get(f"/stamp/{'-' * 36}?id={UPPER.lower()}"), 400)
    assert service.get(f"/stamp/{'-' * 36}?id={UPPER}").status_code == 400
    assert answer(service.get("/count?n=none")) == (200, TEXT, "counted 5")
    assert answer(service.get("/count?={")) == (200, TEXT, "counted 5")


def test_replaced_built_in_rules_are_unknown(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", SETTINGS | {"ValidationOptions:ReplaceBuiltInRules": "true"})
    problem(service.post("/book", json=GOOD), 404)
    assert "validate 'mail': the rule 'email' is none of" in service.log


def test_messages_of_validation_can_be_those_of_npgsqlrest(database: Database, serve_once: Serve) -> None:
    keys = {"ValidationOptions:ReplaceBuiltInRules": "true", "ValidationOptions:DatabaseNamesInMessages": "true"}
    comments = SQL[SQL.index("comment on") : SQL.index("create function look")]
    service = serve_once(database, comments.replace("validate mail using email\n", ""), SETTINGS | keys)
    assert problem(service.post("/book", json=GOOD | {"seats": 9}), 400)["detail"] == "seats goes from 1 to 4"
    assert problem(service.post("/book", json=GOOD | {"price": 10}), 422)["detail"].startswith("Parameter '_price' ")
