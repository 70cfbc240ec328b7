"""Settings that apply to all endpoints at once: comment modes, names, NULL, headers, filters, error policies,
prefix."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, ask, cases, check
from tests.harness.routines import routines
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
def database_with_routines(database: Database) -> Database:
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

PARSE_ALL_CASES: list[RequestContext] = [
    ("GET /My_Prefix/shop/get_order/?_order_id=3", '200 [{"order_id":3,"Full Name":"n"}]'),
    ("GET /my_prefix/shop/get_order?_order_id=3", '200 [{"order_id":3,"Full Name":"n"}]'),
    ("POST /My_Prefix/no_words", "200T no words"),
    ("POST /My_Prefix/some_words/", "200T some words"),
    ("POST /only-path", "200T only path"),
    ("POST /My_Prefix/only_modifier", "200 1"),
    ("GET /http-path", "200T http path"),
    ("GET /My_Prefix/give?_a_b=", "200T NULL|1"),
    ("GET /My_Prefix/give?_a_b=null", "200T null|1"),
    ("GET /My_Prefix/give_own?_a_b=", "200T |1"),
    ("GET /My_Prefix/give_null", "204"),
    ("GET /My_Prefix/give_null_own", "200T"),
    ("GET /My_Prefix/give_headers", "200T none"),
    ('POST /My_Prefix/post_it {"_a_b":1,"_b":"x"}', "200T 1x"),
    ("GET /My_Prefix/two_words?_box_size_cm=4", '200 [{"x_y":4}]'),
    ("GET /My_Prefix/boxes", '200 [{"n":1,"c":{"id":7,"label":"x"}}]'),
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

IGNORE_CASES: list[RequestContext] = [
    ("GET /shop/get-order?orderId=3", '200 [{"orderId":3,"Full Name":"n"}]'),
    ("POST /some-words", "200T some words"),
    ("POST /no-words", "404 "),
    ("POST /only-path", "200T only path"),
    ("POST /only-modifier", "200 [1,2]"),
    ("POST /only-authorize", "200T closed"),
    ("POST /switched-off", "200T off"),
    ("POST /http-path", "200T http path"),
    ("GET /give?aB=NULL&b=null", "200T NULL|NULL"),
    ("GET /give?aB=", "200T |1"),
    ("GET /give-own?aB=null", "200T NULL|1"),
    ("GET /give-null", "200T NULL"),
    ("GET /give-null-own", "200T NULL"),
    ("GET /checked?a=", "200T ok"),
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

OTHERS_CASES: list[RequestContext] = [
    ("GET /api/raise-it?code=22012", "422 Not a divisor|22012"),
    ("GET /api/raise-it?code=P0001", "409 said|ours"),
    ("GET /api/raise-it?code=42501", "500 42501: said|42501"),
    ("GET /api/raise-named?code=23505", "409 said|23505"),
    ("GET /api/raise-named?code=P0001", "500 P0001: said|P0001"),
    ("GET /api/checked?a=12", "200T ok"),
    ("GET /api/checked?a=1234", "400 a of _a breaks short"),
    ("GET /api/checked?a=x", "422 Validation failed for parameter 'a'"),
    ("GET /api/checked-built-in?a=", "400 Parameter 'a' is required"),
    ("GET /api/shop/get-order?orderId=3", '200 [{"orderId":3,"Full Name":"n"}]'),
    ("GET /api/give-own?aB=x", "404 "),
    ("GET /api/give-headers", "200T none"),
    ("POST /api/only-modifier", "404 "),
    ("GET /api/moment?at=2024-01-01T10:00:00%2B02:00", "200T 2024-01-01 08:00:00"),
]


@pytest.fixture(scope="module")
def parse_all(database_with_routines: Database, serve: Serve) -> Service:
    return serve(database_with_routines, settings=PARSE_ALL)


@pytest.fixture(scope="module")
def ignore(database_with_routines: Database, serve: Serve) -> Service:
    return serve(database_with_routines, settings=IGNORE)


@pytest.fixture(scope="module")
def others(database_with_routines: Database, serve: Serve) -> Service:
    return serve(database_with_routines, settings=OTHERS)


@pytest.mark.parametrize("context", cases(PARSE_ALL_CASES))
def test_parse_all_serves_every_routine_with_its_annotations(parse_all: Service, context: RequestContext) -> None:
    check(parse_all, context)


@pytest.mark.parametrize("context", cases(IGNORE_CASES))
def test_ignore_mode_serves_every_routine_without_annotations(ignore: Service, context: RequestContext) -> None:
    check(ignore, context)


@pytest.mark.parametrize("context", cases(OTHERS_CASES))
def test_error_policies_validation_rules_and_filters_apply(others: Service, context: RequestContext) -> None:
    check(others, context)


def test_disabled_endpoints_are_not_served(parse_all: Service) -> None:
    assert ask(parse_all, "POST /My_Prefix/switched_off").status_code == 404
    closed = ask(parse_all, "POST /My_Prefix/only_authorize")
    assert closed.status_code == 401
    assert "type" not in closed.json()


def test_request_headers_setting_name_is_configurable(ignore: Service) -> None:
    assert ask(ignore, "GET /give-context", headers={"X-One": "one"}).text == "one"
