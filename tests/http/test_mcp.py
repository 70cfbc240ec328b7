"""Endpoints as tools: the server of the Model Context Protocol (mcp-1 to mcp-7, mcp-9)."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function bed_notes(_bed_id int, _q text default null) returns table (id int, note text, tags text[])
    language sql stable as $$ select _bed_id, coalesce(_q, '<"&">'), array['a'] $$;
comment on function bed_notes is 'HTTP GET
mcp List notes of one bed.';
create function add_note(_bed_id int, _note jsonb) returns bigint language sql as
    $$ select _bed_id + (_note->>'n')::bigint $$;
comment on function add_note is 'HTTP POST /beds/{_bed_id}/notes
mcp
mcp_name write_note
Adds a note.
To one bed.';
create function is_wet(_marks int[] default null) returns boolean language sql stable as 'select _marks[2] > 1';
comment on function is_wet is 'HTTP GET
mcp_description Returns whether it is wet.
mcp Not this.';
create function names(_path text) returns setof text language sql stable as $$ select _path union all select null $$;
comment on function names is 'HTTP GET /names/{_path}
mcp Names.';
create function one_bed() returns table (id int, note text) language sql stable as $$ select 1, 'x' $$;
comment on function one_bed is 'HTTP GET
single
mcp One.';
create function clear_all() returns void language sql as '';
comment on function clear_all is 'HTTP DELETE
mcp Clears.';
create function only_tool(_a text) returns text language sql stable as 'select _a';
comment on function only_tool is 'mcp Says it again.';
create function undescribed() returns int language sql stable as 'select 1/0';
comment on function undescribed is 'HTTP GET
mcp';
create function twice() returns int language sql stable as 'select 1';
comment on function twice is 'HTTP GET
mcp Second
mcp_name names';
create function not_a_tool() returns int language sql stable as 'select 1';
comment on function not_a_tool is 'HTTP GET';
create function who(_user_id text default null, _x int default 1) returns text language sql stable as
    $$ select coalesce(_user_id, '-') $$;
comment on function who is 'HTTP GET
authorize
user_params
mcp Who am I.';
create function for_admins() returns text language sql stable as $$ select 'secret' $$;
comment on function for_admins is 'HTTP GET
authorize admin
mcp Secrets.';
create function same(_n numeric, _t text) returns table (n numeric, t text, j json) language sql stable as
    $$ select _n, _t, ('{"a":1e400,"b":' || _n || '}')::json $$;
comment on function same is 'HTTP GET
mcp Same.';
create function deep(_n int) returns json language sql stable as
    $$ select (repeat('[', _n) || repeat(']', _n))::json $$;
comment on function deep is 'HTTP GET
mcp Deep.';
create function hidden() returns int language sql stable as 'select 1';
comment on function hidden is 'HTTP GET /mcp';
create function echo_to_admins(_name text) returns text language sql stable as 'select _name';
comment on function echo_to_admins is 'HTTP GET /echo-to-admins/{_name}
authorize admin
mcp Returns the name.';
create function sign_in(_name text) returns table (user_id int, user_name text, user_roles text[], aud text)
    language sql as $$ select 7, _name, array['clerk'], case when _name = 'kiri' then 'garden' end $$;
comment on function sign_in is 'HTTP POST
login';
"""
P = "Service:McpOptions:"
A = P + "Authorization:"
BASE = {
    P + "Enabled": "true",
    "Auth:BearerTokenAuth": "true",
    "Service:AuthenticationOptions:ParameterNameClaimsMapping:_user_id": "user_id",
}
VERSION = "2025-11-25"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {**BASE, P + "Instructions": "Be kind.", P + "AllowedOrigins:0": "https://chat.example"}
    settings |= {P + "AllowedOrigins:1": "*", P + "AllowedOrigins:2": "https://desk.example:443/"}
    return serve(database, SQL, settings, workers=2)


@pytest.fixture(scope="module")
def guarded(database: Database, service: Service, serve: Serve) -> Service:
    """The parameter `service` only ensures that the functions are loaded."""
    settings = {
        **BASE,
        P + "UrlPath": "/ai",
        P + "ServerName": "garden",
        P + "ServerVersion": " ",
        P + "ToolDescriptionSuffix": "Mind the bees.",
        A + "RequireAuthorization": "true",
        A + "AuthorizationServers:0": "https://id.example",
        A + "ScopesSupported:0": "a",
        A + "ScopesSupported:1": "b",
        A + "Audience": "garden",
        A + "FilterToolsByRole": "true",
    }
    return serve(database, settings=settings)


def ask(service: Service, method: str, params: Any = None, *, path: str = "/mcp", **options: Any) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method}
    return service.post(path, json=message if params is None else {**message, "params": params}, **options)


def reply(response: httpx.Response) -> Any:
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    assert response.headers["mcp-protocol-version"] == VERSION
    return response.json()


def call(service: Service, name: str, **arguments: Any) -> Any:
    response = reply(ask(service, "tools/call", {"name": name, "arguments": arguments}))
    assert (response["jsonrpc"], response["id"]) == ("2.0", 1)
    return response["result"]


def token(service: Service, name: str) -> dict[str, str]:
    response = service.post("/api/sign-in", json={"name": name})
    return {"Authorization": f"Bearer {response.json()['accessToken']}"}


def test_tools_are_described(service: Service) -> None:
    tools = {tool["name"]: tool for tool in reply(ask(service, "tools/list"))["result"]["tools"]}
    assert sorted(tools) == [
        "bed_notes", "clear_all", "deep", "echo_to_admins", "for_admins", "is_wet", "names", "one_bed", "only_tool",
        "same", "undescribed", "who", "write_note",
    ]  # fmt: skip
    number = {"type": ["integer", "null"], "format": "int32"}
    text = {"type": ["string", "null"]}
    tags = {"type": ["array", "null"], "items": {"anyOf": [text, {"type": "array"}]}}
    row = {"type": "object", "properties": {"id": number, "note": text, "tags": tags}}
    assert tools["bed_notes"] == {
        "name": "bed_notes",
        "description": "List notes of one bed.",
        "inputSchema": {
            "type": "object",
            "properties": {"bedId": {"type": "integer", "format": "int32"}, "q": {"type": "string"}},
            "required": ["bedId"],
        },
        "annotations": {"readOnlyHint": True},
        "outputSchema": {
            "type": "object",
            "properties": {"items": {"type": "array", "items": row}},
            "required": ["items"],
        },
    }
    assert tools["write_note"]["description"] == "Adds a note.\nTo one bed."
    assert tools["write_note"]["annotations"] == {"readOnlyHint": False}
    assert tools["write_note"]["inputSchema"]["properties"]["note"] == {}
    value = {"type": ["integer", "null"], "format": "int64"}
    assert tools["write_note"]["outputSchema"] == {
        "type": "object",
        "properties": {"value": value},
        "required": ["value"],
    }
    assert tools["is_wet"]["description"] == "Returns whether it is wet."
    assert tools["names"]["outputSchema"]["properties"] == {
        "items": {"type": "array", "items": {"type": ["string", "null"]}}
    }
    assert tools["one_bed"]["inputSchema"] == {"type": "object", "properties": {}}
    assert tools["one_bed"]["outputSchema"]["properties"] == {"id": number, "note": {"type": ["string", "null"]}}
    assert tools["clear_all"]["annotations"] == {"readOnlyHint": False, "destructiveHint": True}
    assert "outputSchema" not in tools["clear_all"]
    assert tools["undescribed"]["description"] == "undescribed"
    assert list(tools["who"]["inputSchema"]["properties"]) == ["x"]


def test_tools_that_cannot_be_offered_are_logged_at_the_start(service: Service) -> None:
    assert "is no tool: the name names belongs to the tool" in service.log
    assert "GET /api/undescribed: the tool has no description" in service.log
    assert service.log.count("MCP: 13 tools: ") == 1
    assert "AllowedOrigins: '*' is no origin such as https://shop.example:8443; the entry is ignored" in service.log
    assert "GET /mcp is not reached: Service:McpOptions:UrlPath answers there" in service.log


@pytest.mark.parametrize(
    ("name", "arguments", "structured"),
    [
        ("bed_notes", {"bedId": 4}, {"items": [{"id": 4, "note": '<"&">', "tags": ["a"]}]}),
        ("bed_notes", {"bedId": 4, "q": "a&b=c"}, {"items": [{"id": 4, "note": "a&b=c", "tags": ["a"]}]}),
        ("write_note", {"bedId": 4, "note": {"n": 5}}, {"value": 9}),
        ("is_wet", {"marks": [1, 2]}, {"value": True}),
        ("is_wet", {"marks": [1, 1]}, {"value": False}),
        ("is_wet", {"marks": [1]}, {"value": None}),
        ("only_tool", {"a": ""}, {"value": ""}),
        ("names", {"path": "a b?ü"}, {"items": ["a b?ü", None]}),
        ("names", {"path": "a/b%2Fc/.."}, {"items": ["a/b%2Fc/..", None]}),
        ("one_bed", {}, {"id": 1, "note": "x"}),
        ("only_tool", {"a": "5"}, {"value": "5"}),
    ],
)
def test_a_tool_is_called(service: Service, name: str, arguments: dict[str, Any], structured: Any) -> None:
    result = call(service, name, **arguments)
    assert result["structuredContent"] == structured
    assert result["isError"] is False
    text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    assert result["content"] == [{"type": "text", "text": text}]


def test_numbers_of_tool_arguments_are_passed_unchanged(service: Service) -> None:
    call = (
        b'{"id":12345678901234567890123,"method":"tools/call","params":{"name":"same","arguments":{"n":%s,"t":1.10}}}'
    )
    written = "-12345678901234567890.10"
    response = service.post("/mcp", content=call % written.encode(), headers=JSON).text
    row = f'"n":{written},"t":"1.10","j":{{"a":1e400,"b":{written}}}'
    assert f'"structuredContent":{{"items":[{{{row}}}]}}' in response
    assert json.loads(json.loads(response)["result"]["content"][0]["text"])["items"][0]["t"] == "1.10"
    assert row.replace('"', '\\"') in response
    assert '"id":12345678901234567890123' in response


@pytest.mark.parametrize(
    ("name", "arguments", "status", "detail"),
    [
        ("names", {}, 404, "parameter 'path' (text) is required"),
        ("names", {"path": None}, 404, "parameter 'path' (text) is required"),
        ("is_wet", {"marks": []}, 400, "parameter 'marks' (integer[]): an empty array has no form in a query"),
        ("is_wet", {"marks": ["x"]}, 400, "'x' is not an integer"),
    ],
)
def test_missing_and_invalid_arguments_are_named_in_the_error(
    service: Service, name: str, arguments: dict[str, Any], status: int, detail: str
) -> None:
    result = call(service, name, **arguments)
    body = json.loads(result["content"][0]["text"])
    assert (result["isError"], body["status"]) == (True, status)
    assert detail in body["detail"]


def test_errors_of_arguments_are_not_shown_to_anonymous_callers(service: Service) -> None:
    for headers, status in (({}, 401), (token(service, "kiri"), 403)):
        result = reply(ask(service, "tools/call", {"name": "echo_to_admins"}, headers=headers))["result"]
        body = json.loads(result["content"][0]["text"])
        assert (result["isError"], body["status"]) == (True, status)
        assert "'name'" not in body["detail"]


def test_a_tool_of_a_void_routine_returns_empty_text(service: Service) -> None:
    assert call(service, "clear_all") == {"content": [{"type": "text", "text": ""}], "isError": False}


def test_a_result_that_is_nested_too_deeply_is_an_error(service: Service) -> None:
    assert call(service, "deep", n=200)["isError"] is False
    result = call(service, "deep", n=300)
    assert (result["isError"], "structuredContent" in result) == (True, False)


@pytest.mark.parametrize("name", ["undescribed", "bed_notes"])
def test_a_failure_is_a_problem_in_the_result(service: Service, name: str) -> None:
    result = call(service, name)
    assert (result["isError"], "structuredContent" in result) == (True, False)
    assert json.loads(result["content"][0]["text"])["status"] == {"undescribed": 500, "bed_notes": 404}[name]


def test_a_routine_exposed_only_as_tool_has_no_endpoint(service: Service) -> None:
    assert service.get("/api/only-tool?a=1").status_code == 404
    assert service.get("/api/names").status_code == 404
    assert service.get("/api/one-bed").status_code == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", {"id": None, "error": {"code": -32700, "message": "Parse error"}}),
        (
            b'{"method":"ping","id":' + b"[" * 300 + b"]" * 300 + b"}",
            {"id": None, "error": {"code": -32700, "message": "Parse error"}},
        ),
        (b"[]", {"id": None, "error": {"code": -32600, "message": "Invalid Request"}}),
        (b"", {"id": None, "error": {"code": -32601, "message": "Method not found: "}}),
        (b'{"id":"a","method":"x"}', {"id": "a", "error": {"code": -32601, "message": "Method not found: x"}}),
        (b'{"id":7,"method":"ping"}', {"id": 7, "result": {}}),
        (
            b'{"id":1,"method":"tools/call","params":{"name":"not_a_tool"}}',
            {"id": 1, "error": {"code": -32602, "message": "Unknown tool: not_a_tool"}},
        ),
        (
            b'{"id":1,"method":"tools/call","params":{"name":"is_wet","arguments":[1]}}',
            {"id": 1, "error": {"code": -32602, "message": "arguments of is_wet have to be an object"}},
        ),
        (b'{"id":1,"method":"tools/call"}', {"id": 1, "error": {"code": -32602, "message": "Unknown tool: "}}),
    ],
)
def test_messages_get_the_specified_reply(service: Service, body: bytes, expected: dict[str, Any]) -> None:
    assert reply(service.post("/mcp", content=body, headers=JSON)) == {"jsonrpc": "2.0", **expected}


def test_initialize_returns_the_name_and_capabilities_of_the_server(service: Service, database: Database) -> None:
    result = reply(ask(service, "initialize"))["result"]
    name = result["serverInfo"].pop("name")
    assert name == database.name
    assert result == {
        "protocolVersion": VERSION,
        "capabilities": {"tools": {}},
        "serverInfo": {"version": "1.0.0"},
        "instructions": "Be kind.",
    }


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Origin": "https://evil.example"}, 403),
        ("POST", {"Origin": "HTTPS://chat.example"}, 200),
        ("POST", {"Origin": "https://desk.example"}, 200),
        ("POST", {"MCP-Protocol-Version": "2025-03-26"}, 400),
        ("POST", {"MCP-Protocol-Version": VERSION}, 200),
        ("GET", {}, 405),
        ("GET", {"Origin": "https://evil.example"}, 403),
    ],
)
def test_requests_with_invalid_method_headers_or_origin_are_refused(
    service: Service, method: str, headers: dict[str, str], status: int
) -> None:
    response = service.request(method, "/mcp", headers={**JSON, **headers}, content=b'{"method":"ping"}')
    assert response.status_code == status
    if status != 200:
        assert problem(response, status)["detail"]


def test_allow_header_lists_the_supported_methods(service: Service) -> None:
    responses = [service.request(method, "/mcp") for method in ("OPTIONS", "PUT")]
    assert [(item.status_code, item.headers["allow"]) for item in responses] == [
        (204, "OPTIONS, POST"),
        (405, "OPTIONS, POST"),
    ]


def test_requests_with_the_origin_of_the_service_are_accepted(service: Service) -> None:
    assert ask(service, "ping", headers={"Origin": service.url.upper()}).status_code == 200
    port = service.url.rpartition(":")[2]
    for host, status in ((f"localhost:{port}", 200), (f"[::1]:{port}", 200), (f"evil.example:{port}", 403)):
        headers = {"Host": host, "Origin": f"http://{host}"}
        assert ask(service, "ping", headers=headers).status_code == status, host


def test_same_origin_requests_need_an_allowed_host(database: Database, serve_once: Serve) -> None:
    """Otherwise, a page could resolve its own name to this service, and send requests with the browser of a user (DNS
    rebinding)."""
    named = serve_once(database, "", {**BASE, "HttpServer:AllowedHosts:0": "shop.example"})
    headers = {"Host": "shop.example", "Origin": "http://shop.example"}
    assert ask(named, "ping", headers=headers).status_code == 200


def test_notifications_get_202_without_a_body(service: Service) -> None:
    response = ask(service, "notifications/initialized")
    assert (response.status_code, response.content) == (202, b"")


@pytest.mark.parametrize(("name", "signed_in", "status"), [("who", False, 401), ("for_admins", True, 403)])
def test_a_tool_enforces_the_authorization_of_its_endpoint(
    service: Service, name: str, signed_in: bool, status: int
) -> None:
    """The refusal of one tool is a failed result: other tools of the same server may be open."""
    headers = token(service, "kiri") if signed_in else {}
    result = reply(ask(service, "tools/call", {"name": name}, headers=headers))["result"]
    assert (result["isError"], "structuredContent" in result) == (True, False)
    assert json.loads(result["content"][0]["text"])["status"] == status


@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
def test_messages_are_json_by_their_type(service: Service, kind: str | None) -> None:
    """Pages can send other types to any site without a CORS preflight."""
    headers = {} if kind is None else {"Content-Type": kind}
    response = service.post("/mcp", content=b'{"method":"ping"}', headers=headers)
    assert problem(response, 415)["detail"] == "the body of a request to /mcp must be of type application/json"
    response = service.post(
        "/mcp", content=b'{"method":"ping"}', headers={"Content-Type": "Application/JSON; charset=utf-8"}
    )
    assert response.status_code == 200


CROSS = "a page of another site cannot use a session by cookie or HTTP Basic, nor sign in or out"


def test_pages_of_other_sites_cannot_use_a_session(database: Database, service: Service, serve_once: Serve) -> None:
    """`service` loads the functions. The checks of endpoints apply to sessions by cookie."""
    settings = {P + "Enabled": "true", "Auth:CookieAuth": "true", P + "AllowedOrigins:0": "https://chat.example"}
    settings |= {"Antiforgery:Enabled": "true", "Antiforgery:TokenPath": "/token"}
    guarded = serve_once(database, settings={**BASE, **settings})
    with guarded.new_client() as client:
        assert client.post("/api/sign-in", json={"name": "kiri"}).status_code == 200
        issued = client.get("/token").json()
        call = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for headers, status, detail in (
            ({"Sec-Fetch-Site": "cross-site"}, 403, CROSS),
            ({"Origin": "https://chat.example"}, 403, CROSS),
            ({}, 400, "an antiforgery token in the header RequestVerificationToken is missing"),
            ({issued["headerName"]: issued["token"]}, 200, ""),
            ({issued["headerName"]: issued["token"], "Sec-Fetch-Site": "same-origin"}, 200, ""),
        ):
            response = client.post("/mcp", json=call, headers=headers)
            assert response.status_code == status, headers
            assert status == 200 or problem(response, status)["detail"] == detail


SLOW = """
create function nap(_n int, _mark text) returns int language sql as
    $$ select _n from pg_sleep(60) where length(_mark) > 0 $$;
comment on function nap is 'HTTP POST
mcp Sleeps.';
"""
RUNNING = """select count(*) from pg_stat_activity
    where state = 'active' and datname = current_database() and query like '%nap%' and pid <> pg_backend_pid()"""


def test_a_cancelled_call_ends_its_statement(own_database: Database, serve_once: Serve) -> None:
    """Whichever worker receives the notification, and only for the client that has made the call."""
    service = serve_once(own_database, SLOW, {P + "Enabled": "true"}, workers=2)
    session = ask(service, "initialize").headers["mcp-session-id"]
    message = {"jsonrpc": "2.0", "id": 41, "method": "tools/call"}
    message["params"] = {"name": "nap", "arguments": {"n": 1, "mark": "x"}}

    def call() -> httpx.Response:
        with service.new_client() as client:
            return client.post("/mcp", json=message, headers={"Mcp-Session-Id": session}, timeout=60)

    def cancel(request_id: object, **headers: str) -> None:
        with service.new_client() as client:
            body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
            assert client.post("/mcp", json=body, headers=headers).status_code == 202

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call)
        wait_until(lambda: own_database.value(RUNNING) == 1, "the call runs")
        others = ask(service, "initialize").headers["mcp-session-id"]
        cancel(41)
        cancel(41, **{"Mcp-Session-Id": others})
        cancel("41", **{"Mcp-Session-Id": session})
        cancel(42, **{"Mcp-Session-Id": session})
        assert own_database.value(RUNNING) == 1
        assert not running.done()
        cancel(41, **{"Mcp-Session-Id": session})
        response = running.result(30)
        assert (response.status_code, response.content) == (202, b"")
        wait_until(lambda: own_database.value(RUNNING) == 0, "the statement is cancelled")
    assert reply(ask(service, "ping"))["result"] == {}


def test_a_tool_runs_for_its_caller(service: Service) -> None:
    response = reply(ask(service, "tools/call", {"name": "who"}, headers=token(service, "kiri")))
    assert response["result"]["structuredContent"] == {"value": "7"}


def test_anonymous_callers_get_the_address_of_the_sign_in(guarded: Service) -> None:
    response = ask(guarded, "ping", path="/ai")
    metadata = f"{guarded.url}/.well-known/oauth-protected-resource/ai"
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == f'Bearer scope="a b", resource_metadata="{metadata}"'
    assert guarded.get(metadata.removeprefix(guarded.url)).json() == {
        "resource": "garden",
        "authorization_servers": ["https://id.example"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["a", "b"],
    }
    assert guarded.post(metadata.removeprefix(guarded.url)).status_code == 405


def test_a_token_for_another_audience_is_refused(guarded: Service) -> None:
    assert ask(guarded, "ping", path="/ai", headers=token(guarded, "mere")).status_code == 401
    headers = token(guarded, "kiri")
    result = reply(ask(guarded, "initialize", path="/ai", headers=headers))["result"]
    assert result["serverInfo"] == {"name": "garden", "version": "1.0.0"}
    tools = {
        tool["name"]: tool for tool in reply(ask(guarded, "tools/list", path="/ai", headers=headers))["result"]["tools"]
    }
    assert ("who" in tools, "for_admins" in tools) == (True, False)
    assert tools["names"]["description"] == "Names. Mind the bees."


def test_mcp_is_not_served_unless_it_is_enabled(database: Database, service: Service, serve: Serve) -> None:
    plain = serve(database)
    assert plain.get("/mcp").json() == 1
    assert plain.post("/mcp", content=b"{}").status_code == 405
    assert plain.get("/api/only-tool?a=1").status_code == 404
    assert plain.get("/api/one-bed").status_code == 200


@pytest.mark.slow
def test_a_later_routine_does_not_take_over_the_name_of_a_tool(own_database: Database, serve_once: Serve) -> None:
    """A name of a schema that comes first would otherwise be enough to receive the calls of a tool."""
    tool = """create function {0}(_x int default 0) returns text language sql stable as $$ select '{0}' $$;
        comment on function {0}(int) is 'mcp A text.
mcp_name common';"""
    service = serve_once(own_database, tool.format("public.mine"), BASE)
    own_database.execute(f"create schema another; {tool.format('another.theirs')} notify rowcall, 'reload'")
    service.wait_for_log(
        "another.theirs(integer) is no tool: the name common belongs to the tool GET /api/mine of "
        "public.mine(integer); mcp_name gives it another"
    )
    assert service.get("/api/another/theirs").status_code == 404
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "common", "arguments": {}}}
    assert service.post("/mcp", json=sent).json()["result"]["structuredContent"] == {"value": "public.mine"}
    own_database.execute("drop function public.mine; notify rowcall, 'reload'")
    service.wait_for_log("removed GET /api/mine")
    assert service.post("/mcp", json=sent).json()["result"]["structuredContent"] == {"value": "another.theirs"}


def test_a_streamed_result_that_breaks_off_is_a_failed_result(own_database: Database, serve_once: Serve) -> None:
    breaks = (
        "create function breaks() returns table (n int, t text) language sql stable as "
        "$$ select 1 / (50000 - g), repeat('x', 100) from generate_series(1, 50000) g $$; "
        "comment on function breaks() is 'HTTP GET /breaks\nmcp Breaks off.';"
    )
    result = call(serve_once(own_database, breaks, {P + "Enabled": "true"}), "breaks")
    assert (result["isError"], result["content"][0]["text"]) == (True, "the response was cut off")
