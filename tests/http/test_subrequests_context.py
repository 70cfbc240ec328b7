"""Client, headers and trace of requests that the service makes for a client: those of batches and of MCP tools, and
calls of its own endpoints.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function of_host() returns text language sql stable as $$ select current_setting('request.tenant', true) $$;
comment on function of_host() is 'HTTP GET /of-host
tenant from host *.shop.example
mcp';
create function of_header() returns text language sql stable as $$ select current_setting('request.tenant', true) $$;
comment on function of_header() is 'HTTP GET /of-header
tenant from header Tenant-Id
mcp';
create function of_zone() returns text language sql stable as $$ select current_setting('TimeZone') $$;
comment on function of_zone() is 'HTTP GET /of-zone
timezone_from header X-Zone';
create function api_key(_key text) returns table (status int, user_id text) language sql stable as
$$ select 200, 'ann' where _key = encode(sha256('secret'), 'hex') $$;
create function who() returns text language sql stable as $$ select current_setting('request.user_id', true) $$;
comment on function who() is 'HTTP GET /who
authorize
user_context
mcp';
create function fails() returns int language plpgsql as $$ begin raise 'no' using errcode = 'P0007'; end $$;
comment on function fails() is 'HTTP GET /fails
mcp';
create type of_self as (body text);
comment on type of_self is 'GET /fails';
create function calls_itself(_r of_self) returns text language sql as $$ select (_r).body $$;
comment on function calls_itself(of_self) is 'HTTP GET /calls-itself';
create function change() returns int language sql as 'select 1';
comment on function change() is 'HTTP POST /change
authorize
mcp';
create function enter(_name text) returns table (status int, user_id text) language sql as $$ select 200, _name $$;
comment on function enter(text) is 'HTTP POST /enter
login';
"""
SETTINGS = {
    "Batch:Enabled": "true",
    "Service:McpOptions:Enabled": "true",
    "Auth:CookieAuth": "true",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Header": "Api-Key",
    "Service:RequiresAuthorization": "false",
    "Service:HttpClientOptions:Enabled": "true",
    "Log:CorrelationIdHeader": "X-Request-ID",
    "ErrorHandlingOptions:RemoveTraceId": "false",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


def batch(client: Any, *requests: dict[str, Any], transaction: bool = True, **headers: str) -> list[Any]:
    """Return the bodies of the responses."""
    path = "/batch" if transaction else "/batch?transaction=false"
    response = client.post(path, json=list(requests), headers=headers)
    assert response.status_code == 200, response.text
    return [item["body"] for item in response.json()]


def tool(client: Any, name: str, **headers: str) -> Any:
    """Return the result of a tool as text."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    return client.post("/mcp", json=call, headers=headers).json()["result"]["content"][0]["text"]


@pytest.mark.parametrize("transaction", [True, False])
def test_requests_of_a_batch_have_the_host_of_the_client(service: Service, *, transaction: bool) -> None:
    assert batch(service, {"path": "/of-host"}, transaction=transaction, host="red.shop.example") == ["red"]


def test_calls_of_tools_have_the_host_of_the_client(service: Service) -> None:
    assert tool(service, "of_host", host="red.shop.example") == '{"value":"red"}'


@pytest.mark.parametrize("transaction", [True, False])
def test_pages_of_the_same_origin_may_post_batches(service: Service, *, transaction: bool) -> None:
    with service.new_client() as client:
        client.post("/enter", json={"name": "ann"})
        origin = str(client.base_url).rstrip("/")
        assert batch(client, {"method": "POST", "path": "/change"}, transaction=transaction, origin=origin) == ["1"]
        foreign = client.post(
            "/batch", json=[{"method": "POST", "path": "/change"}], headers={"origin": "https://evil.example"}
        )
        assert foreign.status_code == 403


def test_calls_of_tools_have_all_headers_of_the_client(service: Service) -> None:
    assert tool(service, "of_header", **{"Tenant-Id": "red"}) == '{"value":"red"}'
    assert tool(service, "who", **{"Api-Key": "secret"}) == '{"value":"ann"}'


@pytest.mark.parametrize("transaction", [True, False])
def test_headers_of_a_request_replace_those_of_its_batch(service: Service, *, transaction: bool) -> None:
    own = {"path": "/of-zone", "headers": {"x-zone": "Asia/Tokyo"}}
    results = batch(service, {"path": "/of-zone"}, own, transaction=transaction, **{"X-Zone": "Europe/Berlin"})
    assert results == ["Europe/Berlin", "Asia/Tokyo"]


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site", "X-Forwarded-For", "Cookie", "Api-Key", "tenant-id"])
def test_requests_of_a_batch_cannot_set_headers_that_name_site_caller_or_tenant(service: Service, name: str) -> None:
    refused = service.post("/batch", json=[{"path": "/who", "headers": {name: "same-origin"}}])
    assert (refused.status_code, refused.json()["item"]) == (400, 1)


def test_errors_have_the_correlation_id_of_the_request_of_the_client(service: Service) -> None:
    for path in ("/batch", "/batch?transaction=false", "/mcp", "/calls-itself"):
        headers = {"X-Request-ID": f"id-of{path.partition('?')[0][1:]}", "Mcp-Session-Id": "1"}
        if path == "/calls-itself":
            text = service.get(path, headers=headers).text
        else:
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "fails", "arguments": {}}}
            text = service.post(path, json=call if path == "/mcp" else [{"path": "/fails"}], headers=headers).text
        assert headers["X-Request-ID"] in text
