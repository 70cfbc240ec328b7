"""Every annotation of NpgsqlRest in a separate comment: which are parsed, which warn, how often, and that the endpoint
is served anyway (comments-7 to comments-18)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SILENT = """
authorized_not|X-Note: authorized
timeout|timeout 5s
command_timeout|command_timeout 00:00:05
timeout_assigned|timeout = 5 minutes
headers_mode|request_headers_mode ignore
headers_mode_2|request_headers context
headers_name|request_headers_parameter_name _c
headers_name_2|request_headers_param_name _c
headers_name_3|request-headers-param-name _c
null_text|response_null_handling empty
null_text_2|response_null null
null_text_3|text_response_null_handling 204_no_content
null_text_4|response_null = no_content
query_null|query_string_null_handling empty
query_null_2|query_null_handling null
query_null_3|query_string_null ignore
query_null_4|query_null null_literal
param_type|request_param_type query
param_type_2|param_type query_string
buffer|buffer_rows 10
buffer_2|buffer 1
buffer_3|buffer_rows = 5
raw_false|raw = false
columns_false|columns = false
names_false|names = false
column_names_false|column_names = false
separator|separator ,
raw_separator|raw_separator = ;
new_line|new_line \\n
raw_new_line|raw_new_line = |
sensitive|sensitive
security|security
security_sensitive|security_sensitive
user_context|user_context
user_context_2|user_context = false
user_parameters|user_parameters
user_params|user_params
connection|connection default
connection_2|connection_name = Default
retry|retry_strategy default
retry_2|retry_strategy_name default
retry_3|retry = default
policy|error_code_policy Default
policy_2|error_code_policy_name Default
policy_3|error_code = Default
validate|validate _c using not_null
validation|validation _c using not_null, not_empty
nested|nested
nested_2|nested_json
nested_3|nested_composite
expression|_c = select 'x'
custom|colour = blue
header|X-Colour: blue
empty_key|= 5
empty_name|: x
rename|param _c text
rename_2|parameter _c is text
default|param _a default 5
default_2|param _a = 5
retype|param _c type is varchar
define_param|define_param x
result|result x
skip|skip
no_result|no_result
returns|returns int
excel_file_name|excel_file_name = x.xlsx
excel_sheet|excel_sheet x
enabled|enabled
for_function|for function
prose|Nothing, of any (kind).
sse|sse
sse_path|sse_path events on notice
sse_events_path|sse_events_path = true
sse_publish|sse_publish
sse_events_publish|sse_events_publish on info
sse_subscribe|sse_subscribe
sse_events_subscribe|sse_events_subscribe /x
sse_level|sse_level info
sse_events_level|sse_events_level = warning
sse_scope|sse_scope matching
sse_events_scope|sse_events_scope authorize a, b
cached|cached
cached_names|cached _a, _b
cache_expires|cache_expires 5 minutes
cache_expires_in|@cache_expires_in 1h
cache_profile|cache_profile fast
rate_limiter|rate_limiter fixed
rate_limiter_policy|rate_limiter_policy fixed
rate_limiter_policy_name|rate_limiter_policy_name two words
rate_limiter_assigned|rate_limiter = fixed
encrypt|encrypt
encrypted|encrypted _c
protect|protect
protected|protected = true
decrypt|decrypt
decrypted|decrypted a, b
unprotect|unprotect
unprotected|unprotected b
openapi|openapi
openapi_hide|openapi hide
openapi_hidden|openapi hidden
openapi_ignore|openapi ignore
openapi_tag|openapi tag One
openapi_tags|openapi tags One, Two
export_url|tsclient_export_url
export_url_assigned|tsclient_export_url = true
url_only|tsclient_url_only
url_only_assigned|tsclient_url_only = 1
tsclient|tsclient = false
tsclient_module|tsclient_module = shop
"""

MCP = """
mcp|mcp
mcp_text|mcp Does a thing.
mcp_name|mcp_name thing
mcp_description|mcp_description Does a thing.
mcp_desc|mcp_desc Does a thing.
"""

WRONG = """
tag|disabled unknown|'unknown' matches no object; the tags of routines are function,
tags|for admins only|'admins', 'only' matches no object
tag_none|for|the line has no tag
raw_word|raw = perhaps|'perhaps' is neither true nor false
timeout|timeout soon|'soon' is not an interval
timeout_assigned|timeout = soon|'soon' is not an interval
headers_mode|request_headers_mode some|'some' is none of
headers_mode_alone|request_headers_mode|a value is missing
null_text|response_null some|'some' is none of
null_text_alone|response_null_handling|a value is missing
query_null|query_null some|'some' is none of
query_null_alone|query_string_null_handling|a value is missing
param_type|param_type cookies|'cookies' is none of
path|path|a path is missing
path_absolute|path https://example.com/x|an absolute URL cannot be a path
buffer|buffer_rows many|'many' is not a number of rows
buffer_negative|buffer_rows -1|'-1' is not a number of rows
connection_empty|connection =|a name is missing after the =
cache_expires|cache_expires soon|'soon' is not an interval
cache_profile|cache_profile|exactly one profile name
cache_profiles|cache_profile a b|exactly one profile name
sse_on|sse on loud|'loud' is none of
sse_words|sse a b|'b' is not read
sse_assigned|sse = a on notice|neither true nor false nor a path
sse_publish|sse_publish = maybe|'maybe' is neither
sse_publish_words|sse_publish news|'news' is not read
sse_level|sse_level high|'high' is none of
sse_scope|sse_scope some|the scope is none of
mcp_name|mcp_name|exactly one name
mcp_description|mcp_description|a text is missing
openapi|openapi something|expected: openapi
upload|upload everything|expected: upload
export_url|tsclient_export_url = maybe|'maybe' is neither true nor false
rename|param _nope x|the routine has no parameter _nope
rename_name|param _c 1x|'1x' is not a name
retype|param _c type is nonsense|nonsense is not a known type
retry|retry_strategy nowhere|'nowhere' is none of
policy|error_code_policy nowhere|'nowhere' is none of
connection|connection nowhere|'nowhere' is none of
validate|validate _nope using required|'_nope' names no parameter
validate_rule|validate _c using nonsense|'nonsense' is none of
validate_words|validate _c with not_null please|is expected
placeholder|X-Colour: {nope}|{nope} names no parameter
placeholder_custom|colour = {nope}|{nope} names no parameter
body|body_parameter_name _nope|_nope is no parameter
timeout_none|timeout|it is written `timeout <interval>`
body_none|body_parameter_name|it is written `body_parameter_name <parameter>`
param_type_none|param_type|it is written `request_param_type
validate_none|validate _c|it is written `validate <parameter> using <rule>, ...`
misspelt|cacheed _a|did you mean 'cached'?
near_prose|internals are prose|did you mean 'internal'?
framing|Content-Length: 5|Content-Length is set by the service itself
"""


PROTECTIVE = {"validate", "validate_rule", "validate_none", "sse_scope"}
"""Cases whose line protects the endpoint, so that the endpoint is left out."""


def _rows(text: str) -> list[list[str]]:
    return [line.split("|") for line in text.strip().splitlines()]


def _sql(prefix: str, rows: list[list[str]]) -> str:
    return "".join(
        f"create function {prefix}_{name}(_a int default 1, _b int default 2, _c text default 'c', _d text default 'd')"
        f" returns table (a int, b text) language sql stable as $$select 1, 'x'$$;\n"
        f"comment on function {prefix}_{name} is $$HTTP GET\n{line}$$;\n"
        for name, line, *_ in rows
    )


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    sql = _sql("silent", _rows(SILENT)) + _sql("later", _rows(MCP)) + _sql("wrong", _rows(WRONG))
    switched_on = {"ValidationOptions:Enabled": "true", "Service:UseMultipleConnections": "true"}
    service = serve(database, sql, switched_on)
    service.wait_for_log("Started in")
    return service


def _warnings(service: Service, routine: str) -> list[str]:
    """Return the warnings, except those about capabilities that are switched off."""
    lines = [line for line in service.log.splitlines() if f"public.{routine}(" in line and " WRN] " in line]
    return [line for line in lines if "as it is switched off (" not in line]


ROWS = (200, JSON, '[{"a":1,"b":"x"}]')


@pytest.mark.parametrize("name", [row[0] for row in _rows(SILENT)])
def test_effective_annotation_logs_no_warning(service: Service, name: str) -> None:
    assert _warnings(service, f"silent_{name}") == []
    assert answer(service.get(f"/api/silent-{name.replace('_', '-')}")) == ROWS


@pytest.mark.parametrize("name", [row[0] for row in _rows(MCP)])
def test_tool_annotation_does_not_affect_the_response(service: Service, name: str) -> None:
    assert _warnings(service, f"later_{name}") == []
    assert answer(service.get(f"/api/later-{name.replace('_', '-')}")) == ROWS


@pytest.mark.parametrize(("name", "line", "message"), _rows(WRONG), ids=[row[0] for row in _rows(WRONG)])
def test_invalid_annotation_argument_logs_one_warning(service: Service, name: str, line: str, message: str) -> None:
    warning, *left_out = _warnings(service, f"wrong_{name}")
    assert message in warning
    if name in PROTECTIVE:
        problem(service.get(f"/api/wrong-{name.replace('_', '-')}"), 404)
        return
    assert left_out == []
    expected = ROWS if name != "connection" else (500,)
    assert answer(service.get(f"/api/wrong-{name.replace('_', '-')}"))[: len(expected)] == expected
