"""Authorization matrix: every kind of endpoint, every access rule, every kind of caller, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.upstream import Upstream, answer
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql

pytestmark = pytest.mark.attack

ACCESS = {
    "anonymous": "allow_anonymous",
    "signed": "authorize",
    "boss": "authorize boss",
    "mo": "authorize user:42",
    "unset": "",
}
ALLOWED: dict[str, set[int | None]] = {
    "anonymous": {None, 41, 42},
    "signed": {41, 42},
    "boss": {41},
    "mo": {42},
    "unset": {41, 42},
}
"""User ids that are admitted; None is an anonymous caller."""

_SQL = """
create function get_{a}() returns text language sql stable as $$ select 'secret' $$;
comment on function get_{a}() is 'HTTP GET
{line}';
create function rows_{a}() returns setof text language sql stable as $$ select 'secret' $$;
comment on function rows_{a}() is 'HTTP GET
{line}';
create function cached_{a}() returns text language sql stable as $$ select 'secret' $$;
comment on function cached_{a}() is 'HTTP GET
{line}
cached';
create function post_{a}(_v int) returns text language sql as $$ select 'secret' $$;
comment on function post_{a}(int) is 'HTTP POST
{line}';
create procedure call_{a}(_v int) language plpgsql as $$ begin null; end $$;
comment on procedure call_{a}(int) is 'HTTP POST
{line}';
create function upload_{a}(_meta json default null) returns text language sql as $$ select 'secret' $$;
comment on function upload_{a}(json) is 'HTTP POST
upload for large_object
param _meta is upload metadata
{line}';
create function stream_{a}() returns text language sql stable as $$ select 'secret' $$;
comment on function stream_{a}() is 'HTTP GET
sse_subscribe news
{line}';
create function tool_{a}() returns text language sql stable as $$ select 'secret' $$;
comment on function tool_{a}() is 'mcp Returns the secret.
{line}';
create function passed_{a}() returns void language sql as '';
comment on function passed_{a}() is 'HTTP GET
proxy
{line}';
create function sent_on_{a}() returns text language sql as $$ select 'secret' $$;
comment on function sent_on_{a}() is 'HTTP GET
proxy_out POST
{line}';
create function leave_{a}(_v int) returns setof text language sql as $$ select 'Cookies' $$;
comment on function leave_{a}(int) is 'HTTP POST
logout
{line}';
create function enter_{a}() returns table (user_id int, scheme text) language sql as $$ select 7, 'BearerToken' $$;
comment on function enter_{a}() is 'HTTP POST
login
{line}';
create table held_{a} (id int primary key, name text);
insert into held_{a} values (1, 'secret');
comment on table held_{a} is 'HTTP
{line}';
"""

FILE = """-- HTTP GET /api/file-{a}
-- {line}
select 'secret';
"""

Send = Callable[[httpx.Client, str, Mapping[str, str]], httpx.Response]


def _get(kind: str) -> Send:
    return lambda client, access, headers: client.get(f"/api/{kind}-{access}", headers=headers)


def _head(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    return client.head(f"/api/get-{access}", headers=headers)


def _post(kind: str) -> Send:
    return lambda client, access, headers: client.post(f"/api/{kind}-{access}", json={"v": 1}, headers=headers)


def _upload(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    return client.post(f"/api/upload-{access}", files=[("file", b"x")], headers=headers)


def _stream(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    with client.stream("GET", f"/api/stream-{access}", headers=headers) as response:
        if response.status_code >= 400:
            response.read()
        return response


def _write(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    return client.post(f"/api/held-{access}/returning", json={"id": 1, "name": "secret"}, headers=headers)


def _insert(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    row = {"id": 1, "name": "inserted"}
    return client.put(f"/api/held-{access}/on-conflict-do-nothing", json=row, headers=headers)


def _delete(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    return client.delete(f"/api/held-{access}?id=2", headers=headers)


def _tool(client: httpx.Client, access: str, headers: Mapping[str, str]) -> httpx.Response:
    """Refusals of tools are results: their status is that of the problem."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": f"tool_{access}"}}
    response = client.post("/mcp", json=message, headers=headers)
    if response.status_code != 200:
        return response
    result = response.json()["result"]
    text = result["content"][0]["text"]
    return httpx.Response(json.loads(text)["status"] if result["isError"] else 200, text=text)


KINDS: dict[str, Send] = {
    "get": _get("get"),
    "head": _head,
    "rows": _get("rows"),
    "cached": _get("cached"),
    "post": _post("post"),
    "procedure": _post("call"),
    "upload": _upload,
    "stream": _stream,
    "table": _get("held"),
    "table update": _write,
    "table insert": _insert,
    "table delete": _delete,
    "file": _get("file"),
    "tool": _tool,
    "proxy": _get("passed"),
    "proxy_out": _get("sent-on"),
    "logout": _post("leave"),
}


@dataclass(frozen=True)
class Caller:
    headers: Mapping[str, str]
    user: int | None


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    server.on("*", answer("secret"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Service:
    files = {f"file_{name}.sql": FILE.format(a=name, line=line) for name, line in ACCESS.items()}
    sql = "".join(_SQL.format(a=name, line=line) for name, line in ACCESS.items())
    settings = {
        **EVERY_SCHEME,
        "Service:RequiresAuthorization": None,
        "Service:CrudSource:Enabled": "true",
        "Service:UploadOptions:Enabled": "true",
        "Service:McpOptions:Enabled": "true",
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": upstream.url,
        **file_settings(write_files(tmp_path_factory.mktemp("files"), files)),
    }
    return serve(database, member_sql() + sql, settings, workers=2)


@pytest.fixture(scope="module")
def callers(service: Service) -> dict[str, Caller]:
    def sign_in(nick: str, scheme: str) -> httpx.Response:
        with service.new_client() as client:
            response = client.post("/api/let-in", json={"nick": nick, "scheme": scheme})
        assert response.status_code == 200, response.text
        return response

    cookie = sign_in("kiri", "Cookies").headers["set-cookie"].partition(";")[0]
    opaque = sign_in("kiri", "BearerToken").json()
    signed = sign_in("kiri", "Bearer").json()
    other = sign_in("mo", "BearerToken").json()
    token = opaque["accessToken"]
    return {
        "anonymous": Caller({}, None),
        "no token": Caller(bearer("x"), None),
        "changed token": Caller(bearer(token[:-6] + "AAAAAA"), None),
        "refresh token": Caller(bearer(opaque["refreshToken"]), None),
        "signed refresh token": Caller(bearer(signed["refreshToken"]), None),
        "cookie as token": Caller(bearer(cookie.partition("=")[2]), None),
        "token as cookie": Caller({"Cookie": f"{cookie.partition('=')[0]}={token}"}, None),
        "basic": Caller({"Authorization": "Basic a2lyaTpvcGVuIHNlc2FtZQ=="}, None),
        "claims in headers": Caller({"X-User-Id": "41", "user_id": "41", "user_roles": "boss"}, None),
        "cookie": Caller({"Cookie": cookie}, 41),
        "token": Caller(bearer(token), 41),
        "signed token": Caller(bearer(signed["accessToken"]), 41),
        "other": Caller(bearer(other["accessToken"]), 42),
    }


@pytest.mark.slow
@pytest.mark.parametrize("http2", [False, True], ids=["http/1.1", "http/2"])
def test_access_rule_decides_for_every_kind_of_caller_and_endpoint(
    service: Service, callers: dict[str, Caller], http2: bool
) -> None:
    wrong: dict[tuple[str, str, str], int] = {}
    for name, caller in callers.items():
        with service.new_client(http1=not http2, http2=http2) as client:
            for kind, send in KINDS.items():
                for access, allowed in ALLOWED.items():
                    response = send(client, access, caller.headers)
                    status = response.status_code
                    expected = 200 if caller.user in allowed else 401 if caller.user is None else 403
                    if status != expected and not (expected == 200 and status == 204):
                        wrong[name, kind, access] = status
                    elif expected != 200:
                        assert "secret" not in response.text
    assert wrong == {}


def test_login_endpoint_is_public_with_any_access_rule(service: Service, callers: dict[str, Caller]) -> None:
    for access in ACCESS:
        for caller in callers.values():
            with service.new_client() as client:
                response = client.post(f"/api/enter-{access}", headers=caller.headers)
            assert response.status_code == 200, response.text
