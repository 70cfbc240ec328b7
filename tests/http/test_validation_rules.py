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
