"""The annotation `status`: the status of successful responses, for every kind of endpoint and response."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.expect import answer
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SQL = """
create table item (id int generated always as identity primary key, name text);
comment on table item is 'HTTP
status 203';
create function text_of(_a text default 'x') returns text language sql stable as 'select _a';
comment on function text_of(text) is 'HTTP GET
status 201';
create function items() returns table (n int, name text) language sql stable as
'select n, ''i'' || n from generate_series(1, 2) n';
comment on function items() is 'HTTP GET
status 202';
create function stored() returns int language sql stable as 'select 7';
comment on function stored() is 'HTTP GET
cached
status 203';
create function stream() returns table (n int) language sql stable as 'select generate_series(1, 200000)';
comment on function stream() is 'HTTP GET
status 206';
create function nothing(_a int default 0) returns void language sql as 'select';
comment on function nothing(int) is 'HTTP POST
status 201';
create function dropped() returns int language sql as 'select 1';
comment on function dropped() is 'HTTP POST
void
status 202';
create function bodiless() returns int language sql as 'select 1';
comment on function bodiless() is 'HTTP POST
status 205';
create procedure work(_a int) language sql as 'select';
comment on procedure work(int) is 'HTTP POST
status 202';
create function chooses(_status text default null) returns text language plpgsql as $$
begin
  if _status is not null then perform set_config('response.status', _status, true); end if;
  return 'x';
end $$;
comment on function chooses(text) is 'HTTP POST
status 201';
create function chooses_void(_status text default null) returns void language plpgsql as $$
begin
  if _status is not null then perform set_config('response.status', _status, true); end if;
end $$;
comment on function chooses_void(text) is 'HTTP POST
status 201';
create function strict_one(_a int) returns int language sql stable strict as 'select _a';
comment on function strict_one(int) is 'HTTP POST
status 201';
create function null_text() returns text language sql stable as 'select null::text';
comment on function null_text() is 'HTTP GET
status 201';
create function no_content() returns text language sql stable as 'select null::text';
comment on function no_content() is 'HTTP GET
null_handling no_content
status 201';
create function no_row() returns table (n int) language sql stable as 'select 1 where false';
comment on function no_row() is 'HTTP GET
single
status 203';
create function as_table(_format text default 'html') returns table (n int) language sql stable as 'select 1';
comment on function as_table(text) is 'HTTP GET
table_format = {_format}
status 201';
create function failing() returns int language plpgsql as $$ begin raise exception 'no'; end $$;
comment on function failing() is 'HTTP POST
status 201';
create function refused_low() returns int language sql stable as 'select 1';
comment on function refused_low() is 'HTTP GET
status 199';
create function refused_high() returns int language sql stable as 'select 1';
comment on function refused_high() is 'HTTP GET
status 300';
create function refused_word() returns int language sql stable as 'select 1';
comment on function refused_word() is 'HTTP GET
status created';
create function prose() returns int language sql stable as 'select 1';
comment on function prose() is 'HTTP GET
Status of the orders of today, status 201 among them.';
create function tool_void() returns void language sql as 'select';
comment on function tool_void() is 'HTTP POST
status 201
mcp Nothing.';
create function tool_value() returns int language sql as 'select 7';
comment on function tool_value() is 'HTTP POST
status 201
mcp Seven.';
create function sign_in() returns table (name text) language sql as 'select ''a''';
comment on function sign_in() is 'HTTP POST
login
status 201';
"""
FILES = {
    "file_rows.sql": "-- HTTP GET\n-- status 202\nselect 1 as n, 2 as m",
    "file_nothing.sql": "-- HTTP POST\n-- status 201\ninsert into item (name) values ('x')",
    "file_two.sql": "-- HTTP POST\n-- status 201\nselect 1 as n; select 2 as m",
}
SETTINGS = {
    "Service:CrudSource:Enabled": "true",
    "Service:OpenApiOptions:Enabled": "true",
    "Service:McpOptions:Enabled": "true",
    "Service:TableFormatOptions:Enabled": "true",
    "Service:TableFormatOptions:HtmlEnabled": "true",
    "Service:TableFormatOptions:ExcelEnabled": "true",
    "Service:CacheOptions:Enabled": "true",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(database, SQL, {**file_settings(folder), **SETTINGS})


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "text-of", 201, "x"),
        ("HEAD", "text-of", 201, ""),
        ("GET", "items", 202, '[{"n":1,"name":"i1"},{"n":2,"name":"i2"}]'),
        ("HEAD", "items", 202, ""),
        ("HEAD", "stream", 206, ""),
        ("POST", "nothing", 201, ""),
        ("POST", "dropped", 202, ""),
        ("POST", "bodiless", 205, ""),
        ("POST", "chooses", 201, "x"),
        ("POST", "chooses-void", 201, ""),
        ("GET", "null-text", 201, ""),
        ("GET", "no-content", 204, ""),
        ("GET", "no-row", 203, "null"),
        ("GET", "item", 203, "[]"),
        ("GET", "file-rows", 202, '[{"n":1,"m":2}]'),
        ("POST", "file-nothing", 201, ""),
        ("GET", "refused-low", 200, "1"),
        ("GET", "refused-high", 200, "1"),
        ("GET", "refused-word", 200, "1"),
        ("GET", "prose", 200, "1"),
    ],
)
def test_success_has_the_declared_status(service: Service, method: str, path: str, status: int, body: str) -> None:
    response = service.request(method, f"/api/{path}")
    assert (response.status_code, response.text) == (status, body)


def test_empty_response_has_content_length_zero(service: Service) -> None:
    assert answer(service.post("/api/work", json={"a": 1})) == (202, None, "")
    assert service.post("/api/work", json={"a": 1}).headers["content-length"] == "0"


def test_result_of_several_statements_has_the_declared_status(service: Service) -> None:
    response = service.post("/api/file-two")
    assert (response.status_code, len(response.json())) == (201, 2)


def test_streamed_response_has_the_declared_status(service: Service) -> None:
    response = service.get("/api/stream")
    assert (response.status_code, len(response.json())) == (206, 200_000)


def test_cached_responses_have_the_declared_status(service: Service) -> None:
    response = [service.get("/api/stored") for _ in range(3)]
    assert [(item.status_code, item.text) for item in response] == [(203, "7")] * 3
    assert response[2].headers.get("x-cache", "hit").lower() == "hit"
    assert service.request("HEAD", "/api/stored").status_code == 203


@pytest.mark.parametrize("path", ["chooses", "chooses-void"])
def test_status_set_by_sql_takes_precedence(service: Service, path: str) -> None:
    assert service.post(f"/api/{path}", json={"status": "202"}).status_code == 202


def test_strict_routine_that_is_not_run_gets_204(service: Service) -> None:
    assert service.post("/api/strict-one", json={"a": 1}).status_code == 201
    assert service.post("/api/strict-one", json={"a": None}).status_code == 204


def test_errors_are_not_affected_by_the_declared_status(service: Service) -> None:
    assert service.post("/api/failing").status_code == 400


@pytest.mark.parametrize("kind", ["html", "excel", "none"])
def test_table_formats_have_the_declared_status(service: Service, kind: str) -> None:
    assert service.get("/api/as-table", params={"format": kind}).status_code == 201


@pytest.mark.parametrize("value", ["199", "300", "created"])
def test_invalid_status_logs_a_warning(service: Service, value: str) -> None:
    service.wait_for_log(f"'{value}' is not a status of success")


def test_status_beside_login_logs_a_warning(service: Service) -> None:
    service.wait_for_log("status has no effect: the response is that of login")


def test_openapi_has_the_status(service: Service) -> None:
    paths: dict[str, Any] = service.get("/openapi.json").json()["paths"]

    def statuses(method: str, path: str) -> set[str]:
        return set(paths[f"/api/{path}"][method]["responses"]) - {"default"}

    assert statuses("get", "text-of") == {"201"}
    assert statuses("post", "nothing") == {"201"}
    assert "content" not in paths["/api/nothing"]["post"]["responses"]["201"]
    assert statuses("post", "bodiless") == {"205"}
    assert statuses("post", "strict-one") == {"201", "204"}
    assert statuses("get", "refused-low") == {"200"}
    assert statuses("get", "file-rows") == {"202"}


def test_mcp_tools_succeed_with_a_declared_status(service: Service) -> None:
    def call(name: str) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
        headers = {"accept": "application/json, text/event-stream"}
        result: dict[str, Any] = service.post("/mcp", json=message, headers=headers).json()["result"]
        return result

    assert not call("tool_void")["isError"]
    assert call("tool_value")["structuredContent"] == {"value": 7}
