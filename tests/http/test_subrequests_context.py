"""What belongs to a request is that of its client too in the requests that the service makes for it: those of batches, the
calls of MCP tools, and calls of its own endpoints.
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
    "Service:RequiresAuthorization": "false",
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
def test_pages_of_the_service_itself_may_post_batches(service: Service, *, transaction: bool) -> None:
    with service.new_client() as client:
        client.post("/enter", json={"name": "ann"})
        origin = str(client.base_url).rstrip("/")
        assert batch(client, {"method": "POST", "path": "/change"}, transaction=transaction, origin=origin) == ["1"]
        foreign = client.post(
            "/batch", json=[{"method": "POST", "path": "/change"}], headers={"origin": "https://evil.example"}
        )
        assert foreign.status_code == 403
