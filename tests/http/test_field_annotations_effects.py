"""Effects of annotations in combinations that users of NpgsqlRest write: error policies, validation, retries, timeouts,
connections, renamed parameters, placeholders, raw results (comments-1 to comments-29, execution-6 to execution-21,
errors-12)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.request_tables import RequestContext, cases, check
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function fail(_state text, _text text default 'as raised') returns int language plpgsql as
  $$ begin raise exception '%', _text using errcode = _state; end $$;
create function slow(_seconds float8) returns int language plpgsql as
  $$ begin perform pg_sleep(_seconds); return 1; end $$;
create sequence tries;
create function flaky(_state text, _until int) returns int language plpgsql as $$
  begin
    if nextval('tries') < _until then raise exception 'not yet' using errcode = _state; end if;
    return 1;
  end $$;
create type mood as enum ('calm', 'wild');
create type dims as (w int, h int);
"""

ERRORS = {
    "e_default": ("", "select fail(_a)"),
    "e_named": ("error_code_policy own", "select fail(_a)"),
    "e_named_2": ("error_code = Own", "select fail(_a)"),
    "e_text": ("", "select fail('P0001', _a)"),
    "e_own_text": ("error_code_policy_name own", "select fail('23505', _a)"),
    "e_void": ("void", "select fail(_a)"),
    "e_raw": ("raw", "select fail(_a)"),
    "e_headers": ("X-Error: yes\nContent-Type: text/x", "select fail(_a)"),
    "e_table": ("table_format = html", "select fail(_a)"),
}

ERROR_CASES: list[RequestContext] = [
    ("GET /api/e-default?a=P0001", "400 as raised|P0001"),
    ("GET /api/e-default?a=P0004", "400 as raised|P0004"),
    ("GET /api/e-default?a=42501", "403 Insufficient Privilege|42501"),
    ("GET /api/e-default?a=23505", "500 23505: as raised|23505"),
    ("GET /api/e-default?a=22012", "500 22012: as raised|22012"),
    ("GET /api/e-default?a=P0002", "500 P0002: as raised|P0002"),
    ("GET /api/e-default?a=ABCDE", "500 ABCDE: as raised|ABCDE"),
    ("GET /api/e-named?a=23505", "409 Already there|23505"),
    ("GET /api/e-named?a=23503", "422 as raised|23503"),
    ("GET /api/e-named?a=23502", "400 as raised|not null"),
    ("GET /api/e-named?a=P0001", "500 P0001: as raised|P0001"),
    ("GET /api/e-named?a=42501", "500 42501: as raised|42501"),
    ("GET /api/e-named-2?a=P0001", "500 P0001"),
    ("GET /api/e-text?a=Box%20full", "400 Box full|P0001"),
    ("GET /api/e-text?a=%D0%B6%20%22x%22%0Ay", '400 ж "x"\ny|P0001'),
    ("GET /api/e-text?a=", "400"),
    ("GET /api/e-own-text?a=x", "409 Already there|23505"),
    ("GET /api/e-void?a=P0001", "400 as raised|P0001"),
    ("GET /api/e-raw?a=P0001", "400 as raised|P0001"),
    ("GET /api/e-headers?a=P0001", "400 as raised|P0001", {"x-error": "yes"}),
    ("GET /api/e-headers", "404 'a'", {"x-error": None}),
    ("GET /api/e-table?a=P0001", "400 as raised|P0001"),
]

VALIDATIONS = {
    "v_required": "validate _a using required",
    "v_email": "validate _a using required, email",
    "v_two_lines": "validate _a using not_null\nvalidate _a using email",
    "v_not_empty": "validate a using not_empty",
    "v_not_null": "validation _a using not_null",
    "v_short": "validate _a using short",
    "v_long": "validate _a using long",
    "v_digits": "validate _a using digits",
    "v_own": "validate _a using own",
    "v_renamed": "param _a mail\nvalidate mail using email",
    "v_at": "@validate _a using email",
    "v_null": "query_string_null_handling empty_string\nvalidate _a using not_null",
}

VALIDATION_CASES: list[RequestContext] = [
    ("GET /api/v-required?a=x", "200T x"),
    ("GET /api/v-required?a=", "400 Parameter 'a' is required"),
    ("GET /api/v-required", "404 'a'"),
    ("GET /api/v-email?a=x@y.z", "200T x@y.z"),
    ("GET /api/v-email?a=", "400 Parameter 'a' is required"),
    ("GET /api/v-email?a=xy.z", "400 Parameter 'a' must be a valid email address"),
    ("GET /api/v-email?a=x%20y@z.z", "400 must be a valid email address"),
    ("GET /api/v-two-lines?a=no", "400 must be a valid email address"),
    ("GET /api/v-two-lines?a=", "400 must be a valid email address"),
    ("GET /api/v-not-empty?a=", "400 Parameter 'a' cannot be empty"),
    ("GET /api/v-not-empty?a=%20", "200T  "),
    ("GET /api/v-not-null?a=", "200T "),
    ("GET /api/v-short?a=abc", "200T abc"),
    ("GET /api/v-short?a=abcd", "400 Parameter 'a' must have at most 3 characters"),
    ("GET /api/v-short?a=%D0%B6%D0%B6%D0%B6", "200T жжж"),
    ("GET /api/v-long?a=ab", "422 _a, a and long"),
    ("GET /api/v-long?a=abc", "200T abc"),
    ("GET /api/v-digits?a=x1y", "200T x1y"),
    ("GET /api/v-digits?a=xy", "400 Validation failed"),
    ("GET /api/v-digits?a=", "400 Validation failed"),
    ("GET /api/v-own?a=", "418 teapots only"),
    ("GET /api/v-own?a=x", "200T x"),
    ("GET /api/v-renamed?mail=no", "400 'mail' must be a valid email address"),
    ("GET /api/v-renamed?a=no", "404 'a'"),
    ("GET /api/v-at?a=no", "400 must be a valid email address"),
    ("GET /api/v-null?a=", "400 Parameter 'a' cannot be null"),
]

COMMENTS: dict[str, tuple[str, str, str]] = {
    # Name: lines, parameters, and the result of the function.
    "k_rename": ("param _first_name name\nparam _n is count int", "_first_name text, _n int", "_first_name || _n"),
    "k_default": ("param _a default 'x y'\nparam _n default 7", "_a text, _n int", "_a || _n"),
    "k_default_null": ("param _a = null", "_a text", "coalesce(_a, 'none')"),
    "k_retype": ("param _a type is int", "_a text", "_a"),
    "k_headers": ("X-A: {a}/{_A}/{B}\nX-B: {!_b:none}", "_a text, _b text default null", "_a"),
    "k_braces": ("X-A: {} {a b} {nope} {{_a}}", "_a text", "_a"),
    "k_two_headers": ("X-A: 1\nX-A: 2", "_a text", "_a"),
    "k_joined": ("X-A: 1\nX-A: {a}", "_a text", "_a"),
    "k_type": ("Content-Type: text/html; charset=utf-8", "_a text", "_a"),
    "k_type_value": ("content_type: text/{a}", "_a text", "_a"),
    "k_null_204": ("response_null_handling no_content", "_a text default null", "_a"),
    "k_null_word": ("text_response_null_handling = null_literal", "_a text default null", "_a"),
    "k_null_empty": ("response_null empty", "_a text default null", "_a"),
    "k_void": ("void", "_a text", "_a"),
    "k_query_null": ("query_null null_literal", "_a text", "coalesce(_a, 'none')"),
    "k_query_empty": ("query_string_null_handling empty", "_a text", "coalesce(_a, 'none')"),
    "k_body": ("param_type body", "_a text", "_a"),
    "k_expression": ("_b = select {_a} || '!'\nX-B: {_b}", "_a text, _b text", "_a || _b"),
    "k_expression_at": ("@_b = select upper({a})", "_a text, _b text default 'x'", "_b"),
    "k_expression_none": ("_b = select 'x' where false", "_a text, _b text", "coalesce(_b, 'none')"),
    "k_expression_bad": ("_b = select 1 / 0", "_a text, _b text", "_b"),
    "k_hash": ("param _b is hash of _a", "_a text, _b text", "length(_b)::text"),
    "k_hash_self": ("parameter_hash a", "_a text", "length(_a)::text"),
    "k_timeout": ("timeout 50ms", "_a float8", "slow(_a)::text"),
    "k_timeout_long": ("timeout = 2 minutes", "_a float8", "slow(_a)::text"),
    "k_retry": ("retry_strategy quick", "_a text, _n int", "flaky(_a, _n)::text"),
    "k_connection": ("connection other", "_a text", "current_setting('geqo') || _a"),
    "k_connection_kv": ("connection = Other", "_a text", "current_setting('geqo') || _a"),
    "k_connection_none": ("connection nowhere", "_a text", "_a"),
    "k_enum": ("", "_a mood, _b dims default null", "_a::text || coalesce(_b::text, '')"),
    "k_sensitive": ("sensitive\nX-A: {a}", "_a text", "_a"),
}

COMMENT_CASES: list[RequestContext] = [
    ("GET /api/k-rename?name=x&count=2", "200T x2"),
    ("GET /api/k-rename?firstName=x&count=2", "404 'firstName'"),
    ("GET /api/k-rename?name=x&n=2", "404 'n'"),
    ("GET /api/k-default", "200T x y7"),
    ("GET /api/k-default?n=8&a=", "200T 8"),
    ("GET /api/k-default?n=x", "400 'n' (integer)"),
    ("GET /api/k-default-null", "200T none"),
    ("GET /api/k-default-null?a=x", "200T x"),
    ("GET /api/k-retype?a=12", "200T 12"),
    ("GET /api/k-retype?a=x", "400 'a' (integer)"),
    ("GET /api/k-headers?a=1", "200T 1", {"x-a": "1/1/", "x-b": "none"}),
    ("GET /api/k-headers?a=1&b=2", "200T 1", {"x-a": "1/1/2", "x-b": "2"}),
    ("GET /api/k-braces?a=v", "200T v", {"x-a": "{} {a b} {nope} {v}"}),
    ("GET /api/k-two-headers?a=v", "200T v", {"x-a": "1, 2"}),
    ("GET /api/k-joined?a=v", "200T v", {"x-a": "1, v"}),
    ("GET /api/k-type?a=v", "200 v", {"content-type": "text/html; charset=utf-8"}),
    ("GET /api/k-type-value?a=v", "200 v", {"content-type": "text/v"}),
    ("GET /api/k-null-204", "204"),
    ("GET /api/k-null-204?a=x", "200T x"),
    ("GET /api/k-null-word", "200T NULL"),
    ("GET /api/k-null-empty", "200E"),
    ("GET /api/k-void?a=x", "204"),
    ("GET /api/k-query-null?a=NuLL", "200T none"),
    ("GET /api/k-query-null?a=nul", "200T nul"),
    ("GET /api/k-query-empty?a=", "200T none"),
    ('GET /api/k-body {"a":"x"}', "200T x"),
    ("GET /api/k-body?a=x", "404 'a'"),
    ("GET /api/k-expression?a=x", "200T xx!", {"x-b": "x!"}),
    ("GET /api/k-expression?a=x&b=own", "200T xx!"),
    ("GET /api/k-expression-at?a=x&b=own", "200T X"),
    ("GET /api/k-expression-none?a=x", "200T none"),
    ("GET /api/k-expression-bad?a=x", "500 22012"),
    ("GET /api/k-hash?a=secret", "200T 64"),
    ("GET /api/k-hash?a=secret&b=own", "200T 64"),
    ("GET /api/k-hash?a=", "200E"),
    ("GET /api/k-hash-self?a=secret", "200T 64"),
    ("GET /api/k-timeout?a=20", "504 Command execution timed out"),
    ("GET /api/k-timeout-long?a=0.2", "200T 1"),
    ("GET /api/k-retry?a=55P03&n=3", "200T 1"),
    ("GET /api/k-retry?a=40001&n=1000", "500 40001"),
    ("GET /api/k-retry?a=55P03&n=1000", "500 Internal Server Error|Failed to execute command after 4 attempts"),
    ("GET /api/k-connection?a=!", "200T off!"),
    ("GET /api/k-connection-kv?a=!", "200T off!"),
    ("GET /api/k-connection-none?a=!", "500 nowhere"),
    ("GET /api/k-enum?a=calm", "200T calm(,)"),
    ("GET /api/k-enum?a=calm&bW=1", "200T calm(1,)"),
    ("GET /api/k-enum?a=none", "400 'a' (mood)|enum mood"),
    ("GET /api/k-sensitive?a=x", "200T x", {"x-a": "x"}),
    ("GET /api/k-sensitive?b=x", "404 'b'"),
]

RULES = "ValidationOptions:Rules:"
POLICY = "ErrorHandlingOptions:ErrorCodePolicies:"
SETTINGS = {
    "Service:UseMultipleConnections": "true",
    "Service:TableFormatOptions:Enabled": "true",
    "ValidationOptions:Enabled": "true",
    RULES + "required:Type": "Required",
    RULES + "required:Message": "Parameter '{0}' is required",
    RULES + "not_empty:Type": "NotEmpty",
    RULES + "not_empty:Message": "Parameter '{0}' cannot be empty",
    RULES + "not_null:Type": "NotNull",
    RULES + "not_null:Message": "Parameter '{0}' cannot be null",
    RULES + "email:Type": "Regex",
    RULES + "email:Pattern": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    RULES + "email:Message": "Parameter '{0}' must be a valid email address",
    RULES + "short:Type": "MaxLength",
    RULES + "short:MaxLength": "3",
    RULES + "long:Type": "MinLength",
    RULES + "long:MinLength": "3",
    RULES + "long:Message": "{0}, {1} and {2}",
    RULES + "long:StatusCode": "422",
    RULES + "digits:Type": "Regex",
    RULES + "digits:Pattern": "[0-9]",
    RULES + "own:Type": "NotEmpty",
    RULES + "own:Message": "teapots only",
    RULES + "own:StatusCode": "418",
    POLICY + "0:Name": "Default",
    POLICY + "0:ErrorCodes:42501:StatusCode": "403",
    POLICY + "0:ErrorCodes:42501:Title": "Insufficient Privilege",
    POLICY + "0:ErrorCodes:P0001:StatusCode": "400",
    POLICY + "0:ErrorCodes:P0004:StatusCode": "400",
    POLICY + "1:Name": "own",
    POLICY + "1:ErrorCodes:23505:StatusCode": "409",
    POLICY + "1:ErrorCodes:23505:Title": "Already there",
    POLICY + "1:ErrorCodes:23503:StatusCode": "422",
    POLICY + "1:ErrorCodes:23502:StatusCode": "400",
    POLICY + "1:ErrorCodes:23502:Details": "not null",
    "CommandRetryOptions:Strategies:quick:RetrySequenceSeconds:0": "0",
    "CommandRetryOptions:Strategies:quick:RetrySequenceSeconds:1": "0",
    "CommandRetryOptions:Strategies:quick:RetrySequenceSeconds:2": "0",
    "CommandRetryOptions:Strategies:quick:ErrorCodes:0": "55P03",
}


def _sql() -> str:
    made = [SQL]
    functions = [(name, lines, "_a text", "int", body) for name, (lines, body) in ERRORS.items()]
    functions += [(name, lines, "_a text", "text", "select _a") for name, lines in VALIDATIONS.items()]
    functions += [(name, *row[:2], "text", f"select {row[2]}") for name, row in COMMENTS.items()]
    for name, lines, parameters, returns, body in functions:
        made.append(f"create function {name}({parameters}) returns {returns} language sql as $body${body}$body$;")
        made.append(f"comment on function {name} is $$HTTP GET\n{lines}$$;")
    return "\n".join(made)


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    other = {"ConnectionStrings:Other": f"{database.conninfo}?options=-cgeqo%3Doff"}
    return serve(database, _sql(), SETTINGS | other)


@pytest.mark.parametrize("context", cases(ERROR_CASES))
def test_database_errors_become_problem_responses(service: Service, context: RequestContext) -> None:
    check(service, context)


@pytest.mark.parametrize("context", cases(VALIDATION_CASES))
def test_validation_annotations_check_values(service: Service, context: RequestContext) -> None:
    check(service, context)


@pytest.mark.parametrize("context", cases(COMMENT_CASES))
def test_annotations_have_their_effect(service: Service, context: RequestContext) -> None:
    check(service, context)
