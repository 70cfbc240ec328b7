"""What settings do to all endpoints at once: comment modes, names, NULL, headers, filters, error policies, prefix."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.cases import Case, ask, check, names, routines
from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

AB = "select format('%s|%s', coalesce(_a_b::text, 'NULL'), coalesce(_b::text, 'NULL'))"
HEADER = "coalesce({0} ->> 'x-one', {0} ->> 'X-One', 'none')"

ROUTINES = [
    ("shop.get_order(_order_id int) returns table(order_id int, \"Full Name\" text) stable", "select _order_id, 'n'",
     "HTTP"),
    ("no_words() returns text", "select 'no words'", ""),
    ("some_words() returns text", "select 'some words'", "Some words"),
    ("only_path() returns text", "select 'only path'", "PATH /only-path"),
    ("only_modifier() returns setof int", "values (1), (2)", "single"),
    ("only_authorize() returns text", "select 'closed'", "authorize"),
    ("switched_off() returns text", "select 'off'", "HTTP\ndisabled"),
    ("http_path() returns text", "select 'http path'", "HTTP GET /http-path"),
    ("give(_a_b text, _b int default 1) returns text stable", AB, "HTTP GET"),
    ("give_null() returns text stable", "select null::text", "HTTP GET"),
    ("give_null_own() returns text stable", "select null::text", "HTTP GET\nresponse_null_handling empty_string"),
    ("give_own(_a_b text, _b int default 1) returns text stable", AB, "HTTP GET\nquery_null ignore"),
    ("give_headers(_headers json default null) returns text stable", f"select {HEADER.format('_headers')}", "HTTP GET"),
    ("give_context() returns text stable",
     f"select {HEADER.format('''nullif(current_setting('app.headers', true), '')::json''')}", "HTTP GET"),
    ("post_it(_a_b int, _b text) returns text", "select _a_b || _b", "HTTP"),
    ("two_words(_box_size_cm int) returns table(x_y int) stable", "select _box_size_cm", "HTTP"),
    ("raise_it(_code text) returns text language plpgsql stable",
     "begin raise exception 'said' using errcode = _code; end",
     "HTTP GET"),
    ("raise_named(_code text) returns text language plpgsql stable",
     "begin raise exception 'said' using errcode = _code; end", "HTTP GET\nerror_code_policy named"),
    ("boxes() returns table(n int, c pair) stable", "select 1, (7, 'x')::pair", "HTTP GET"),
    ("checked(_a text) returns text stable", "select 'ok'", "HTTP GET\nvalidate _a using short, digits"),
    ("checked_built_in(_a text) returns text stable", "select 'ok'", "HTTP GET\nvalidate _a using required"),
    ("moment(_at timestamp) returns text stable", "select _at::text", "HTTP GET"),
    ("with_env(_a int default 1) returns text stable", "select 'x'", "HTTP GET\nX-Env: {FIELD_MISSING}-{a}"),
]  # fmt: skip

SQL = "create schema shop; create type pair as (id int, label text);" + routines(ROUTINES)


@pytest.fixture(scope="module")
def loaded(database: Database) -> Database:
    database.execute(SQL)
    return database


PARSE_ALL = {
    "Service:CommentsMode": "ParseAll",
    "Service:KebabCaseUrls": "false",
    "Service:CamelCaseNames": "false",
    "Service:UrlPathPrefix": "/My_Prefix/",
    "Service:QueryStringNullHandling": "EmptyString",
    "Service:TextResponseNullHandling": "NoContent",
    "Service:RequestHeadersMode": "Ignore",
    "Service:RoutineOptions:NestedJsonForCompositeTypes": "true",
    "Service:JsonTimestampsAreUtc": "true",
    "ErrorHandlingOptions:RemoveTypeUrl": "true",
}

PARSE_ALL_CASES: list[Case] = [
    ("GET /My_Prefix/shop/get_order/?_order_id=3", None, '200 json [{"order_id":3,"Full Name":"n"}]'),
    ("GET /my_prefix/shop/get_order?_order_id=3", None, '200 json [{"order_id":3,"Full Name":"n"}]'),
    ("POST /My_Prefix/no_words", None, "200 text no words"),
    ("POST /My_Prefix/some_words/", None, "200 text some words"),
    ("POST /only-path", None, "200 text only path"),
    ("POST /My_Prefix/only_modifier", None, "200 json 1"),
    ("GET /http-path", None, "200 text http path"),
    ("GET /My_Prefix/give?_a_b=", None, "200 text NULL|1"),
    ("GET /My_Prefix/give?_a_b=null", None, "200 text null|1"),
    ("GET /My_Prefix/give_own?_a_b=", None, "200 text |1"),
    ("GET /My_Prefix/give_null", None, "204"),
    ("GET /My_Prefix/give_null_own", None, "200 text "),
    ("GET /My_Prefix/give_headers", None, "200 text none"),
    ("POST /My_Prefix/post_it", {"_a_b": 1, "_b": "x"}, "200 text 1x"),
    ("GET /My_Prefix/two_words?_box_size_cm=4", None, '200 json [{"x_y":4}]'),
    ("GET /My_Prefix/boxes", None, '200 json [{"n":1,"c":{"id":7,"label":"x"}}]'),
]

IGNORE = {
    "Service:CommentsMode": "Ignore",
    "Service:UrlPathPrefix": "",
    "Service:QueryStringNullHandling": "NullLiteral",
    "Service:TextResponseNullHandling": "NullLiteral",
    "Service:RequestHeadersMode": "Context",
    "Service:RequestHeadersContextKey": "app.headers",
    "Service:NameNotSimilarTo": "%no_words",
}

IGNORE_CASES: list[Case] = [
    ("GET /shop/get-order?orderId=3", None, '200 json [{"orderId":3,"Full Name":"n"}]'),
    ("POST /some-words", None, "200 text some words"),
    ("POST /no-words", None, "404 "),
    ("POST /only-path", None, "200 text only path"),
    ("POST /only-modifier", None, "200 json [1,2]"),
    ("POST /only-authorize", None, "200 text closed"),
    ("POST /switched-off", None, "200 text off"),
    ("POST /http-path", None, "200 text http path"),
    ("GET /give?aB=NULL&b=null", None, "200 text NULL|NULL"),
    ("GET /give?aB=", None, "200 text |1"),
    ("GET /give-own?aB=null", None, "200 text NULL|1"),
    ("GET /give-null", None, "200 text NULL"),
    ("GET /give-null-own", None, "200 text NULL"),
    ("GET /checked?a=", None, "200 text ok"),
]

POLICIES = "ErrorHandlingOptions:ErrorCodePolicies:"
RULES = "ValidationOptions:Rules:"
OTHERS = {
    "Service:SchemaSimilarTo": "sh_p|public",
    "Service:ExcludeNames:0": "no_words",
    "Service:ExcludeNames:1": "give_own",
    f"{POLICIES}0:Name": "Default",
    f"{POLICIES}0:ErrorCodes:22012:StatusCode": "422",
    f"{POLICIES}0:ErrorCodes:22012:Title": "Not a divisor",
    f"{POLICIES}0:ErrorCodes:P0001:StatusCode": "409",
    f"{POLICIES}0:ErrorCodes:P0001:Details": "ours",
    f"{POLICIES}1:Name": "named",
    f"{POLICIES}1:ErrorCodes:23505:StatusCode": "409",
    "ValidationOptions:Enabled": "true",
    f"{RULES}short:Type": "MaxLength",
    f"{RULES}short:MaxLength": "3",
    f"{RULES}short:Message": "{1} of {0} breaks {2}",
    f"{RULES}digits:Type": "Regex",
    f"{RULES}digits:Pattern": "^[0-9]+$",
    f"{RULES}digits:StatusCode": "422",
    "Service:RequestHeadersParameterName": "_a_b",
}

OTHERS_CASES: list[Case] = [
    ("GET /api/raise-it?code=22012", None, "422 Not a divisor|22012"),
    ("GET /api/raise-it?code=P0001", None, "409 said|ours"),
    ("GET /api/raise-it?code=42501", None, "500 42501: said|42501"),
    ("GET /api/raise-named?code=23505", None, "409 said|23505"),
    ("GET /api/raise-named?code=P0001", None, "500 P0001: said|P0001"),
    ("GET /api/checked?a=12", None, "200 text ok"),
    ("GET /api/checked?a=1234", None, "400 a of _a breaks short"),
    ("GET /api/checked?a=x", None, "422 Validation failed for parameter 'a'"),
    ("GET /api/checked-built-in?a=", None, "400 Parameter 'a' is required"),
    ("GET /api/shop/get-order?orderId=3", None, '200 json [{"orderId":3,"Full Name":"n"}]'),
    ("GET /api/give-own?aB=x", None, "404 "),
    ("GET /api/give-headers", None, "200 text none"),
    ("POST /api/only-modifier", None, "404 "),
    ("GET /api/moment?at=2024-01-01T10:00:00%2B02:00", None, "200 text 2024-01-01 08:00:00"),
]


@pytest.fixture(scope="module")
def parse_all(loaded: Database, serve: Serve) -> Service:
    return serve(loaded, settings=PARSE_ALL)


@pytest.fixture(scope="module")
def ignore(loaded: Database, serve: Serve) -> Service:
    return serve(loaded, settings=IGNORE)


@pytest.fixture(scope="module")
def others(loaded: Database, serve: Serve) -> Service:
    return serve(loaded, settings=OTHERS)


@pytest.mark.parametrize(("request_line", "body", "expected"), PARSE_ALL_CASES, ids=names(PARSE_ALL_CASES))
def test_everything_is_served_as_its_comment_says(
    parse_all: Service, request_line: str, body: Any, expected: str
) -> None:
    check(parse_all, request_line, body, expected)


@pytest.mark.parametrize(("request_line", "body", "expected"), IGNORE_CASES, ids=names(IGNORE_CASES))
def test_everything_is_served_whatever_its_comment_says(
    ignore: Service, request_line: str, body: Any, expected: str
) -> None:
    check(ignore, request_line, body, expected)


@pytest.mark.parametrize(("request_line", "body", "expected"), OTHERS_CASES, ids=names(OTHERS_CASES))
def test_policies_rules_and_filters(others: Service, request_line: str, body: Any, expected: str) -> None:
    check(others, request_line, body, expected)


def test_all_but_what_is_disabled(parse_all: Service) -> None:
    assert ask(parse_all, "POST /My_Prefix/switched_off").status_code == 404
    closed = ask(parse_all, "POST /My_Prefix/only_authorize")
    assert closed.status_code == 401
    assert "type" not in closed.json()


def test_headers_in_a_setting_of_another_name(ignore: Service) -> None:
    assert ask(ignore, "GET /give-context", headers={"X-One": "one"}).text == "one"
