"""`validate`, `ValidationOptions` (execution-6 to execution-10): which values are refused, how, and before what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve


def rule(name: str, kind: str, **values: str) -> dict[str, str]:
    return {f"ValidationOptions:Rules:{name}:{key}": value for key, value in {"Type": kind, **values}.items()}


def function(name: str, parameters: str, annotations: str) -> str:
    """An endpoint that shows whether its routine has run."""
    declared = ", ".join(parameters.split(", "))
    types = ", ".join(item.split(" ")[1] for item in parameters.split(", "))
    return (
        f"create function {name}({declared}) returns text language sql immutable as $$ select 'ran' $$;"
        f"comment on function {name}({types}) is E'{annotations}';"
    )


BUILT_IN = (
    "".join(
        [
            function("not_null", "_value text", "HTTP POST\\nvalidate _value using not_null"),
            function("not_empty", "_value text", "HTTP POST\\nvalidate _value using not_empty"),
            function("needed", "_value text", "HTTP POST\\n@validate value using required"),
            function("email", "_mail text", "HTTP POST\\nvalidation _mail using required, email"),
            function("number", "_value int", "HTTP GET\\nvalidate _value using required"),
            function("default_one", "_value text default null", "HTTP POST\\nvalidate _value using required"),
            function("array_in_form", "_value text[]", "HTTP POST\\nvalidate _value using required"),
            function("array_in_query", "_value text[]", "HTTP GET\\nvalidate _value using not_empty"),
            function("two", "_b text, _a text", "HTTP POST\\nvalidate _a using required\\nvalidate _b using required"),
            function("closed", "_value text", "HTTP POST\\nauthorize\\nvalidate _value using required"),
            function("in_path", "_value text", "HTTP GET /in-path/{_value}\\nvalidate _value using email"),
            function(
                "whole_body", "_value text", "HTTP POST\\nbody_parameter_name _value\\nvalidate _value using required"
            ),
            function(
                "wrong",
                "_value text",
                "HTTP POST\\nvalidate _value required please",
            ),
            function(
                "wrong_rule",
                "_value text",
                "HTTP POST\\nvalidate _none using required\\nvalidate _value using Required",
            ),
        ]
    )
    + "create function strictly(_value text) returns text language sql strict as 'select $1';"
    "comment on function strictly(text) is E'HTTP POST\\nvalidate _value using not_null';"
)


@pytest.fixture(scope="module")
def built_in(database: Database, serve: Serve) -> Service:
    return serve(database, BUILT_IN)


NULL = "Parameter 'value' cannot be null"
EMPTY = "Parameter 'value' cannot be empty"
REQUIRED = "Parameter 'value' is required"
EMAIL = "Parameter 'mail' must be a valid email address"


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("not-null", {"value": None}, NULL),
        ("not-empty", {"value": ""}, EMPTY),
        ("needed", {"value": None}, REQUIRED),
        ("needed", {"value": ""}, REQUIRED),
        ("email", {"mail": ""}, "Parameter 'mail' is required"),
        ("email", {"mail": "x"}, EMAIL),
        ("email", {"mail": "a b@c.d"}, EMAIL),
        ("email", {"mail": "a@b"}, EMAIL),
        ("default-one", {"value": ""}, REQUIRED),
        ("two", {"a": "", "b": ""}, "Parameter 'a' is required"),
        ("strictly", {"value": None}, NULL),
    ],
)
def test_a_value_that_violates_a_rule_is_refused(built_in: Service, path: str, body: Any, message: str) -> None:
    members = problem(built_in.post(f"/api/{path}", json=body), 400)
    assert (members["title"], members["detail"]) == ("Bad Request", message)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("not-null", {"value": ""}),
        ("not-empty", {"value": None}),
        ("not-empty", {"value": " "}),
        ("needed", {"value": "x"}),
        ("email", {"mail": "a@b.c"}),
        ("default-one", {}),
        ("two", {"a": "x", "b": "y"}),
    ],
)
def test_a_valid_value_is_accepted(built_in: Service, path: str, body: Any) -> None:
    assert built_in.post(f"/api/{path}", json=body).text == "ran"


def test_an_empty_number_counts_as_null(built_in: Service) -> None:
    assert problem(built_in.get("/api/number?value="), 400)["detail"] == REQUIRED
    assert built_in.get("/api/number?value=0").text == "ran"


@pytest.mark.parametrize(("query", "status"), [("value=", 400), ("value=a&value=b", 200), ("value=&value=", 200)])
def test_an_array_in_the_query_is_checked_as_its_joined_elements(built_in: Service, query: str, status: int) -> None:
    """Two empty elements give a comma."""
    assert built_in.get(f"/api/array-in-query?{query}").status_code == status


@pytest.mark.parametrize(("form", "status"), [("value=", 400), ("value=a&value=b", 200)])
def test_an_array_in_a_form_is_checked_as_its_joined_elements(built_in: Service, form: str, status: int) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    response = built_in.post("/api/array-in-form", content=form.encode(), headers=headers)
    assert response.status_code == status


def test_values_of_the_path_and_of_the_whole_body_are_checked(built_in: Service) -> None:
    problem(built_in.get("/in-path/x"), 400)
    assert built_in.get("/in-path/a@b.c").text == "ran"
    problem(built_in.post("/api/whole-body", content=b""), 400)
    assert built_in.post("/api/whole-body", content=b"x").text == "ran"


def test_missing_and_unconvertible_values_are_reported_before_rules(built_in: Service) -> None:
    problem(built_in.post("/api/needed", json={}), 404)
    problem(built_in.get("/api/number?value=x"), 400)


def test_unauthorized_callers_get_no_validation_errors(built_in: Service) -> None:
    problem(built_in.post("/api/closed", json={"value": ""}), 401)


def test_mistakes_in_validate_annotations_are_reported(built_in: Service) -> None:
    """Where a name does not exist the endpoint is left out: its values would reach it unchecked."""
    problem(built_in.post("/api/wrong", json={"value": ""}), 404)
    problem(built_in.post("/api/wrong-rule", json={"value": ""}), 404)
    for warning in ("`validate <parameter> using <rule>` is expected (comment line: validate _value required please)",):
        assert built_in.log.count(f"public.wrong(text): {warning}") == 1
    for warning in (
        "validate '_none' names no parameter; the endpoint is left out",
        "validate '_value': the rule 'Required' is none of email, not_empty, not_null, required; the endpoint is left",
    ):
        assert built_in.log.count(f"public.wrong_rule(text): {warning}") == 1


def test_a_refusal_is_logged_as_a_warning_without_the_value(built_in: Service) -> None:
    built_in.post("/api/email", json={"mail": "not-for-the-log"})
    line = built_in.wait_for_log(f"POST /api/email: {EMAIL}")
    assert "WRN" in line
    assert "not-for-the-log" not in built_in.log


CONFIGURED = "".join(
    [
        function("zip", "_zip_code text", "HTTP POST\\nvalidate _zip_code using zip"),
        function("short", "_value text", "HTTP POST\\nvalidate _value using short, long"),
        function("list", "_value int[]", "HTTP POST\\nvalidate _value using short"),
        function("gone", "_value text", "HTTP POST\\nvalidate _value using required"),
        function("slow", "_value text", "HTTP POST\\nvalidate _value using slow"),
        function("named", "_value text", "HTTP POST\\nvalidate _value using named"),
        function("number", "_value int", "HTTP POST\\nvalidate _value using short"),
    ]
)

RULES = (
    rule("zip", "regex", Pattern=r"^\d{5}$", Message="{1} ({0}) is no zip code [{2}]", StatusCode="422")
    | rule("short", "MaxLength", MaxLength="5")
    | rule("long", "MinLength", MinLength="2", Message="too short")
    | rule("slow", "Regex", Pattern=r"^(a+)+$")
    | rule("named", "Regex", Pattern=r"(?<word>\p{Lu})")
    | rule("no_type", "Guess")
    | rule("no_pattern", "Regex")
    | rule("bad_pattern", "Regex", Pattern="(")
    | rule("no_length", "MinLength", MaxLength="5")
    | rule("bad_status", "NotNull", StatusCode="200")
)


@pytest.fixture(scope="module")
def configured(database: Database, serve: Serve) -> Service:
    return serve(
        database,
        "drop function if exists number; " + CONFIGURED,
        RULES | {"ValidationOptions:ReplaceBuiltInRules": "true"},
    )


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("zip", {"zipCode": "1234"}, 422, "zipCode (_zip_code) is no zip code [zip]"),
        ("zip", {"zipCode": None}, 422, "zipCode (_zip_code) is no zip code [zip]"),
        ("short", {"value": "123456"}, 400, "Parameter 'value' must have at most 5 characters"),
        ("short", {"value": "1"}, 400, "too short"),
        ("short", {"value": None}, 400, "too short"),
        ("list", {"value": [1, 2, 3]}, 400, "Parameter 'value' must have at most 5 characters"),
        ("number", {"value": 123456}, 400, "Parameter 'value' must have at most 5 characters"),
        ("slow", {"value": "a" * 60 + "b"}, 400, "Validation failed for parameter 'value'"),
        ("named", {"value": "é"}, 400, "Validation failed for parameter 'value'"),
    ],
)
def test_values_that_violate_configured_rules_are_refused(
    configured: Service, path: str, body: Any, status: int, message: str
) -> None:
    response = configured.post(f"/api/{path}", json=body)
    assert (response.status_code, response.json()["detail"]) == (status, message)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("zip", {"zipCode": "12345"}),
        ("short", {"value": "éé€"}),
        ("list", {"value": [1, 2]}),
        ("named", {"value": "xÉ"}),
        ("slow", {"value": "aaa"}),
    ],
)
def test_values_that_satisfy_configured_rules_are_accepted(configured: Service, path: str, body: Any) -> None:
    """Lengths are counted in characters, arrays as JSON; the built-in rules are gone."""
    response = configured.post(f"/api/{path}", content=_compact(body))
    assert response.text == "ran"


def _compact(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "warning",
    [
        "no_type is skipped: its Type is none of NotNull, NotEmpty, Required, Regex, MinLength, MaxLength",
        "no_pattern is skipped: a Regex needs a Pattern",
        "bad_pattern is skipped: its Pattern is no regular expression",
        "no_length is skipped: it needs MinLength",
        "bad_status is skipped: its StatusCode is not a status from 400 to 599: 200",
        "public.gone(text): validate '_value': the rule 'required' is none of long, named, short, slow, zip; the",
    ],
)
def test_unusable_rules_are_reported_once(configured: Service, warning: str) -> None:
    assert configured.log.count(warning) == 1


def test_built_in_rules_apply_although_configured_rules_are_disabled(own_database: Database, serve_once: Serve) -> None:
    sql = function("one", "_value text", "HTTP POST\\nvalidate _value using zip, required")
    sql += function("other", "_value text", "HTTP POST\\nvalidate _value using zipp")
    service = serve_once(own_database, sql, RULES | {"ValidationOptions:Enabled": "false"})
    assert problem(service.post("/api/one", json={"value": ""}), 400)["detail"] == REQUIRED
    assert service.post("/api/one", json={"value": "1"}).text == "ran"
    assert service.log.count("the rule 'zip' is not checked, as ValidationOptions:Enabled is false") == 1
    problem(service.post("/api/other", json={"value": "1"}), 404)
    assert service.log.count("the rule 'zipp' is none of email, not_empty, not_null, required") == 1
