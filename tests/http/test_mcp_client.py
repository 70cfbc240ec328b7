"""The server of the Model Context Protocol, tested with the official Python client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

if TYPE_CHECKING:  # a second of imports, which only the tests need
    from mcp import Client

SQL = """
create function bed_notes(_bed_id int, _q text default null) returns table (id int, note text, tags text[])
    language sql stable as $$ select _bed_id, coalesce(_q, '<"&">'), array['a'] $$;
comment on function bed_notes is 'HTTP GET
mcp List notes of one bed.';
create function add_note(_bed_id int, _note text) returns bigint language sql as $$ select _bed_id + length(_note) $$;
comment on function add_note is 'HTTP POST
mcp Adds a note.';
create function fails() returns int language sql stable as 'select 1/0';
comment on function fails is 'HTTP GET
mcp Fails.';
create function for_admins() returns text language sql stable as $$ select 'secret' $$;
comment on function for_admins is 'HTTP GET
authorize admin
mcp Secrets.';
create function no_tool() returns int language sql stable as 'select 1';
comment on function no_tool is 'HTTP GET
Says one.';
create function asked(_text text) returns int language sql stable as 'select 1';
comment on function asked is 'HTTP QUERY
Asks.';
create function sign_in(_name text) returns table (user_id int, user_name text, user_roles text[], aud text)
    language sql as $$ select 7, _name, array[_name], 'garden' $$;
comment on function sign_in is 'HTTP POST
login
openapi hide';
"""
P = "Service:McpOptions:"
A = P + "Authorization:"
BASE = {P + "Enabled": "true", P + "Resources": "true", "Auth:BearerTokenAuth": "true"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {**BASE, P + "Instructions": "Be kind."}, workers=2)


@pytest.fixture(scope="module")
def guarded(database: Database, service: Service, serve: Serve) -> Service:
    settings = {
        **BASE,
        A + "RequireAuthorization": "true",
        A + "AuthorizationServers:0": "https://id.example",
        A + "ScopesSupported:0": "beds",
        A + "FilterToolsByRole": "true",
    }
    return serve(database, settings=settings)


def within(service: Service, use: Callable[[Client], Awaitable[Any]], **headers: str) -> Any:
    """Return the result of `use` for an initialized client."""
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    async def run() -> Any:
        async with httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http:
            transport = streamable_http_client(f"{service.url}/mcp", http_client=http)
            async with Client(transport) as client:
                return await use(client)

    return asyncio.run(run())


def _mcp_error() -> type[Exception]:
    from mcp.shared.exceptions import MCPError

    return MCPError


@pytest.mark.slow
def test_tools_are_listed_and_called(service: Service) -> None:
    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["add_note", "bed_notes", "fails", "for_admins"]
        assert tools["bed_notes"].annotations is not None
        assert tools["bed_notes"].annotations.read_only_hint is True
        rows = await client.call_tool("bed_notes", {"bedId": 3})
        assert rows.structured_content == {"items": [{"id": 3, "note": '<"&">', "tags": ["a"]}]}
        assert (await client.call_tool("add_note", {"bedId": 3, "note": "ab"})).structured_content == {"value": 5}
        failed = await client.call_tool("fails", {})
        assert failed.is_error
        assert json.loads(failed.content[0].text)["status"] == 500  # type: ignore[union-attr]
        with pytest.raises(_mcp_error(), match="Unknown tool: none"):
            await client.call_tool("none", {})

    within(service, use)


def test_the_catalogue_can_be_read(service: Service) -> None:
    async def use(client: Client) -> None:
        rows = {item.name: str(item.uri) for item in (await client.list_resources()).resources}
        assert sorted(rows) == ["endpoints", "openapi"]
        assert (await client.list_resource_templates()).resource_templates == []
        result = await client.read_resource(rows["endpoints"])
        lines = {item["path"]: item for item in json.loads(result.contents[0].text)}  # type: ignore[union-attr]
        names = ("add-note", "asked", "bed-notes", "fails", "for-admins", "no-tool")
        assert sorted(lines) == [f"/api/{name}" for name in names]
        assert lines["/api/no-tool"] == {
            "method": "GET",
            "path": "/api/no-tool",
            "routine": "public.no_tool()",
            "about": "Says one.",
            "access": "anyone",
        }
        assert lines["/api/for-admins"]["access"] == ["admin"]
        document = json.loads((await client.read_resource(rows["openapi"])).contents[0].text)  # type: ignore[union-attr]
        assert "/api/bed-notes" in document["paths"]
        assert "/api/asked" not in document["paths"], "OpenAPI has no method QUERY"
        with pytest.raises(_mcp_error(), match="Resource not found"):
            await client.read_resource("rowcall://catalogue/none")

    within(service, use)


def test_resources_are_not_served_if_disabled(database: Database, service: Service, serve_once: Serve) -> None:
    response = serve_once(database, settings={**BASE, P + "Resources": "false"}).post(
        "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "resources/list"}
    )
    assert response.json()["error"] == {"code": -32601, "message": "Method not found: resources/list"}


def test_a_client_discovers_the_authorization_server(guarded: Service) -> None:
    """By the client's own OAuth steps: the challenge, then the metadata of the resource."""
    from mcp.client.auth.utils import (
        build_protected_resource_metadata_discovery_urls,
        extract_resource_metadata_from_www_auth,
        extract_scope_from_www_auth,
        handle_protected_resource_response,
    )

    async def find() -> None:
        async with httpx2.AsyncClient(timeout=60, trust_env=False) as http:
            refused = await http.post(f"{guarded.url}/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
            assert refused.status_code == 401
            assert extract_scope_from_www_auth(refused) == "beds"
            named = extract_resource_metadata_from_www_auth(refused)
            assert named in build_protected_resource_metadata_discovery_urls(named, f"{guarded.url}/mcp")
            metadata = await handle_protected_resource_response(await http.get(named or ""))
            assert metadata is not None
            assert str(metadata.resource) == f"{guarded.url}/mcp"
            assert [str(item).rstrip("/") for item in metadata.authorization_servers] == ["https://id.example"]

    asyncio.run(find())


@pytest.mark.parametrize(("name", "sees"), [("admin", True), ("clerk", False)])
def test_a_signed_in_client_sees_only_permitted_tools_and_endpoints(guarded: Service, name: str, sees: bool) -> None:
    token = guarded.post("/api/sign-in", json={"name": name}).json()["accessToken"]

    async def use(client: Client) -> tuple[bool, bool]:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.read_resource("rowcall://catalogue/endpoints")
        return "for_admins" in tools, "/api/for-admins" in result.contents[0].text  # type: ignore[union-attr]

    assert within(guarded, use, authorization=f"Bearer {token}") == (sees, sees)
