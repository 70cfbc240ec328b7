"""Headers whose values are not ASCII: refused where they decide what is executed or who is authorized."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import ENGINE, Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, member_sql, with_cookie

SQL = """
create function for_all_or_me(_user_id text default null) returns text language sql stable as $$
  select coalesce(_user_id, 'anonymous') $$;
comment on function for_all_or_me(text) is 'HTTP GET /for-all-or-me
allow_anonymous
user_parameters';
create function of_tenant() returns text language sql stable as $$ select current_setting('app.tenant', true) $$;
comment on function of_tenant() is 'HTTP GET /of-tenant
allow_anonymous
tenant from header X-Tenant as setting app.tenant';
create function in_zone() returns text language sql stable as $$ select current_setting('timezone') $$;
comment on function in_zone() is 'HTTP GET /in-zone
allow_anonymous
timezone_from prefer';
create function by_command() returns text language sql stable as $$ select current_setting('app.word', true) $$;
comment on function by_command() is 'HTTP GET /by-command
allow_anonymous';
create function write_word(_word text) returns text language sql as $$ select _word $$;
comment on function write_word(text) is 'HTTP POST /write-word
allow_anonymous';
create function address(_ip_address text default null) returns text language sql stable as $$ select _ip_address $$;
comment on function address(text) is 'HTTP GET /address
allow_anonymous
user_parameters';
create table note (id int primary key, text text, version int not null default 1);
insert into note values (1, 'first');
comment on table note is 'HTTP
version_column version
allow_anonymous
disabled
enabled update
for update
HTTP PUT /notes/{id}';
"""
BEFORE = "Service:BeforeRoutineCommands:0:"
SETTINGS = {
    "Batch:Enabled": "true",
    **EVERY_SCHEME,
    "Service:CrudSource:Enabled": "true",
    BEFORE + "Sql": "select set_config('app.word', $1, true)",
    BEFORE + "Enabled": "true",
    BEFORE + "Parameters:0:Source": "RequestHeader",
    BEFORE + "Parameters:0:Name": "X-Word",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS)


def utf8(headers: list[tuple[str, str]]) -> httpx.Headers:
    """Return headers whose values are sent in UTF-8."""
    return httpx.Headers(headers, encoding="utf-8")


def client_of(service: Service, *, http2: bool) -> httpx.Client:
    return service.new_client(http1=not http2, http2=http2)


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize(
    ("request_line", "name"),
    [
        ("GET /of-tenant", "X-Tenant"),
        ("GET /in-zone", "Prefer"),
        ("GET /by-command", "X-Word"),
        ("POST /write-word", "Content-Type"),
        ("POST /write-word", "Content-Encoding"),
        ("PUT /notes/1", "If-Match"),
    ],
)
def test_header_that_decides_is_refused(service: Service, request_line: str, name: str, *, http2: bool) -> None:
    method, _, path = request_line.partition(" ")
    body = b'{"text": "x"}' if method == "PUT" else b"word=x" if name == "Content-Type" else b'{"word": "x"}'
    options: dict[str, Any] = {} if method == "GET" else {"content": body}
    with client_of(service, http2=http2) as client:
        detail = problem(client.request(method, path, headers=utf8([(name, "é")]), **options), 400)["detail"]
    assert detail == f"the value of the header {name} is not ASCII: send it in ASCII or omit the header"


@pytest.mark.parametrize("http2", [False, True])
def test_header_that_decides_nothing_may_have_any_value(service: Service, *, http2: bool) -> None:
    names = ("User-Agent", "Referer", "Accept-Language", "X-City", "Traceparent", "Accept", "Range")
    with client_of(service, http2=http2) as client:
        response = client.get("/for-all-or-me", headers=utf8([(name, "é") for name in names]))
        assert (response.status_code, response.text) == (200, "anonymous")
        # That endpoint does not need to know who calls, so credentials decide nothing.
        response = client.get("/api/opened", headers=utf8([("Cookie", "city=Zürich"), ("Authorization", "é")]))
        assert (response.status_code, response.text) == (200, "open")


@pytest.mark.parametrize("http2", [False, True])
def test_token_that_is_not_ascii_is_a_malformed_token(service: Service, *, http2: bool) -> None:
    session = with_cookie(service)["Cookie"]
    with client_of(service, http2=http2) as client:
        for token in ("Bearer é", "Bearer x"):
            headers = utf8([("Authorization", token), ("Cookie", session)])
            assert client.get("/for-all-or-me", headers=headers).text == "anonymous", token


def test_cookie_of_another_application_does_not_hide_the_session(service: Service) -> None:
    session = with_cookie(service)["Cookie"]
    with service.new_client() as client:
        response = client.get("/for-all-or-me", headers=utf8([("Cookie", f"city=Zürich; {session}")]))
        if ENGINE.get("HttpServer:Engine") == "Granian":
            assert "the header Cookie is not ASCII" in problem(response, 400)["detail"]
        else:
            assert (response.status_code, response.text) == (200, "41")
    with client_of(service, http2=True) as client:
        refused = client.get("/for-all-or-me", headers=utf8([("Cookie", f"city=Zürich; {session}")]))
        assert "the header Cookie is not ASCII" in problem(refused, 400)["detail"]
        apart = utf8([("Cookie", "city=Zürich"), ("Cookie", session)])
        response = client.get("/for-all-or-me", headers=apart)
        assert (response.status_code, response.text) == (200, "41")


def test_parts_of_a_batch_have_the_cookies_of_all_lines(service: Service) -> None:
    session = with_cookie(service)["Cookie"]
    lines = [("Cookie", "a=1"), ("Cookie", f"city=Zürich; {session}"), ("Content-Type", "application/json")]
    with service.new_client() as client:
        requests = [{"method": "GET", "path": "/for-all-or-me"}]
        response = client.post("/batch", json=requests, headers=utf8(lines))
    # With granian, only the first line arrives.
    caller = "anonymous" if ENGINE.get("HttpServer:Engine") == "Granian" else "41"
    assert [item["body"] for item in response.json()] == [caller]


def test_client_cannot_hide_behind_its_trusted_proxy(database: Database, serve_once: Serve) -> None:
    """A proxy adds the address of the client to the line that the client has sent."""
    behind = serve_once(database, settings={"ForwardedHeaders:Enabled": "true"})
    for http2, value in ((False, "é, 9.9.9.9"), (True, "é, 9.9.9.9"), (False, "9.9.9.9"), (True, "9.9.9.9")):
        with client_of(behind, http2=http2) as client:
            response = client.get("/address", headers=utf8([("X-Forwarded-For", value)]))
        read = value.isascii() or (ENGINE.get("HttpServer:Engine") != "Granian" and not http2)
        if read:
            assert (response.status_code, response.text) == (200, "9.9.9.9")
        else:
            assert "the header X-Forwarded-For is not ASCII" in problem(response, 400)["detail"]
