"""Tokens, roles, settings, schemas, origins and reloads of PostgREST's interface.

Source: PostgREST's documentation, Authentication; Transactions; Schemas; CORS; Schema Cache.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import httpx
import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, SECRET, Case, create_roles, error, token
from tests.harness.service import ENGINE, Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

values = st.text(st.sampled_from('ab "\\\\\t/{}:,~'), max_size=8).map(str.strip)
"""Values of headers, with the characters that JSON escapes."""
SQL = """
create schema api; create schema second; create schema internal; create schema "Träume"; create table "Träume".over (id int);
create table api.note (id int primary key, tenant text);
create table second.other (id int); create table api.shown (id int); comment on schema api is E'My API\\n\\nIts text';
insert into api.note values (1, 'a'), (2, 'b');
alter table api.note enable row level security;
create policy own on api.note using (tenant = current_setting('request.jwt.claims', true)::json ->> 'tenant');
create function api.whoami() returns json stable language sql as
  $$ select json_build_object('role', current_user, 'claims', current_setting('request.jwt.claims', true)::json,
       'timeout', current_setting('statement_timeout'), 'agent', current_setting('request.headers', true)::json ->> 'x-agent') $$;
create function api.headers() returns json stable language sql as
  $$ select current_setting('request.headers', true)::json $$;
create function api.cookies() returns json stable language sql as
  $$ select current_setting('request.cookies', true)::json $$;
create domain api."application/octet-stream" as bytea; create function api.octets() returns api."application/octet-stream"
  stable language sql as $$ select '\\x00ff'::bytea $$;
create function api.agent_in(setting text) returns text stable language sql as
  $$ select current_setting(setting, true)::json ->> 'x-agent' $$;
create function internal.before() returns void language plpgsql as $$ begin
  if current_setting('request.headers', true)::json ->> 'x-blocked' is not null then
    raise sqlstate 'PT403' using message = 'blocked'; end if;
  if current_setting('request.headers', true)::json ->> 'x-cache' is not null then
    perform set_config('response.headers', '[{"Cache-Control":"no-store"}]', true); end if; end $$;
"""  # noqa: E501 (each line is one object)


@pytest.fixture(scope="module")
def roles(database: Database) -> tuple[str, ...]:
    database.execute(SQL)
    roles = create_roles(database, "anon", "member", "outsider")
    anonymous, member, _ = roles
    database.execute(
        f'grant usage on schema api, second, internal, "Träume" to {anonymous}, {member};'
        f'grant select on all tables in schema api, second, "Träume" to {anonymous}, {member};'
        f"alter role {member} set statement_timeout = '7s'; "
        f"alter role {member} set bytea_output = 'escape'; grant {anonymous}, {member} to current_user"
    )
    return roles


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database, roles: tuple[str, ...]) -> Service:
    settings = {
        **PLAIN,
        "PostgRest:Schemas": "api, second, Träume",
        "PostgRest:AnonymousRole": roles[0],
        "PostgRest:PreRequest": "internal.before",
        "PostgRest:JwtAudience": "us",
        "PostgRest:ServerTraceHeader": "X-Request-Id",
    }
    return serve(database, settings=settings, workers=2)


def test_claims_and_settings_of_the_role(service: Service, roles: tuple[str, ...]) -> None:
    anonymous, member, _ = roles
    assert service.get("/rpc/whoami").json() == {
        "role": anonymous,
        "claims": {"role": anonymous},
        "timeout": "0",
        "agent": None,
    }
    body = service.get("/rpc/whoami", headers={**token(role=member, tenant="a"), "x-agent": "t"}).json()
    assert body == {"role": member, "claims": {"role": member, "tenant": "a"}, "timeout": "7s", "agent": "t"}
    large = service.get("/rpc/whoami", headers=token(number=2**64)).json()
    assert large["claims"] == {"role": anonymous, "number": 2**64}


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(["x-a", "X-B", "x-long-name"]), values), max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_headers_are_a_json_object_with_the_last_of_repeated_ones(
    service: Service, headers: list[tuple[str, str]]
) -> None:
    response = service.client.request("GET", "/rpc/headers", headers=headers)
    expected = {name.lower(): value for name, value in headers}
    assert {name: value for name, value in response.json().items() if name.startswith("x-")} == expected


def test_headers_and_cookies_beyond_ascii(service: Service) -> None:
    """Values are UTF-8; bytes that are not are replaced, as JSON of PostgreSQL cannot contain them. granian leaves such
    headers out."""
    left_out = ENGINE.get("HttpServer:Engine") == "Granian"
    for name, sent, setting, expected in (
        (b"X-Agent", "Zoë".encode(), "headers", "Zoë"),
        (b"X-Agent", b"Zo\xeb", "headers", "Zo\ufffd"),
        (b"Cookie", "x-agent=Zoë".encode(), "cookies", "Zoë"),
    ):
        head = b"GET /rpc/agent_in?setting=%s HTTP/1.1\r\nHost: x\r\n%s: %s\r\n\r\n"
        response = service.raw(head % (f"request.{setting}".encode(), name, sent))
        assert response is not None
        assert (response.status, json.loads(response.body)) == (200, None if left_out else expected)


BEYOND_ASCII: list[tuple[str, str, int, Any]] = [
    ("GET /over", "Accept-Profile: Träume", 200, []),
    ("POST /over", "Content-Profile: Träume", 401, error("42501")),
    ("GET /shown", "Accept-Profile: تست", 406, error("PGRST106", "Invalid schema: تست")),
    ("GET /shown", "Authorization: Bearer é.a.b", 401, error("PGRST301", "JWT cryptographic operation failed")),
    ("GET /shown", "Prefer: é", 200, []),
    ("GET /shown", "Range: é", 200, []),
]
"""Method and path, header, status and body of the response to a request that the event loop has read."""


@pytest.mark.parametrize("http2", [False, True])
def test_schemas_and_tokens_beyond_ascii(service: Service, *, http2: bool) -> None:
    """Such a header is not taken for an absent one, so nothing is written to the default schema instead."""
    passed_on = ENGINE.get("HttpServer:Engine") != "Granian" and not http2
    with httpx.Client(base_url=service.url, http1=not http2, http2=http2, trust_env=False, timeout=30) as client:
        for request, header, status, expected in BEYOND_ASCII:
            name, _, value = header.partition(": ")
            method, _, path = request.partition(" ")
            headers = httpx.Headers({name: value}, encoding="utf-8")
            response = client.request(method, path, headers=headers, json=None if method == "GET" else {})
            if passed_on:
                assert (response.status_code, response.json()) == (status, expected)
                assert status != 200 or not name.endswith("Profile") or read_back(response, "content-profile") == value
            else:
                detail = f"the value of the header {name} is not ASCII: send it in ASCII or omit the header"
                assert (response.status_code, response.json()) == (400, error("PGRST102", detail))


@pytest.mark.parametrize("http2", [False, True])
def test_headers_of_little_effect_may_be_beyond_ascii(service: Service, *, http2: bool) -> None:
    with httpx.Client(base_url=service.url, http1=not http2, http2=http2, trust_env=False, timeout=30) as client:
        names = ("X-Request-Id", "User-Agent", "Referer")
        response = client.get("/shown", headers=httpx.Headers(dict.fromkeys(names, "é"), encoding="utf-8"))
    assert (response.status_code, response.json()) == (200, [])
    passed_on = ENGINE.get("HttpServer:Engine") != "Granian" and not http2
    assert read_back(response, "x-request-id") == ("é" if passed_on else None)


def read_back(response: httpx.Response, name: str) -> str | None:
    """Return the value of a response header, read as UTF-8; None without it."""
    return next((value.decode() for header, value in response.headers.raw if header.lower() == name.encode()), None)


def test_bytes_do_not_depend_on_settings_of_the_role(service: Service, roles: tuple[str, ...]) -> None:
    for headers in ({}, token(role=roles[1])):
        response = service.get("/rpc/octets", headers={**headers, "accept": "application/octet-stream"})
        assert (response.status_code, response.content) == (200, b"\x00\xff")


def test_policies_see_claims_and_nothing_leaks(service: Service, roles: tuple[str, ...]) -> None:
    for tenant, number in (("a", 1), ("b", 2), ("c", None)) * 5:
        rows = service.get("/note?select=id", headers=token(role=roles[1], tenant=tenant)).json()
        assert rows == ([] if number is None else [{"id": number}])
        assert service.get("/note").json() == []


def refused(header: str) -> dict[str, str]:
    return {"authorization": header}


def signed(secret: str = SECRET, algorithm: str | None = "HS256", **claims: object) -> dict[str, str]:
    return refused(f"Bearer {jwt.encode(claims, secret, algorithm)}")


NOW = int(time.time())


@pytest.mark.parametrize(
    ("header", "code", "message"),
    [
        (refused("Bearer"), "PGRST301", "Empty JWT is sent in Authorization header"),
        (refused("Bearer a.b"), "PGRST301", "Expected 3 parts in JWT; got 2"),
        (refused("Bearer a.b.c.d.e"), "PGRST301", "Expected 3 parts in JWT; got 5"),
        (refused(f"Bearer {'W1tb' * 1_000}.e30.e30"), "PGRST301", "JWT cryptographic operation failed"),
        (signed(name="\ud800"), "PGRST303", "Parsing claims failed"),
        (signed("another secret that has more than 32 bytes"), "PGRST301", "No suitable key or wrong key type"),
        (refused("Bearer a.b.c"), "PGRST301", "JWT cryptographic operation failed"),
        (refused("Bearer .."), "PGRST301", "JWT cryptographic operation failed"),
        (refused(signed(role="x")["authorization"] + "!"), "PGRST301", "No suitable key or wrong key type"),
        (signed("", None), "PGRST301", "Wrong or unsupported encoding algorithm"),
        (signed(exp=NOW - 600), "PGRST303", "JWT expired"),
        (signed(nbf=NOW + 6000), "PGRST303", "JWT not yet valid"),
        (signed(iat=NOW + 6000), "PGRST303", "JWT issued at future"),
        (signed(aud="them"), "PGRST303", "JWT not in audience"),
        (signed(exp="soon"), "PGRST303", "The JWT 'exp' claim must be a number"),
        (signed(aud=5), "PGRST303", "The JWT 'aud' claim must be a string or an array of strings"),
        (signed(exp=NOW - 600, nbf=NOW + 6000, iat="x", aud=5), "PGRST303", "JWT expired"),
        (signed(nbf=NOW + 6000, iat="x", aud=5), "PGRST303", "JWT not yet valid"),
        (signed(iat="x", aud=5), "PGRST303", "The JWT 'iat' claim must be a number"),
    ],
)
def test_refused_tokens(service: Service, header: dict[str, str], code: str, message: str) -> None:
    expected = f'Bearer error="invalid_token", error_description="{message}"'
    Case("GET /shown", 401, error(code, message), headers=header, has={"www-authenticate": expected}).check(
        service.client
    )


def test_accepted_tokens(service: Service, roles: tuple[str, ...]) -> None:
    now = int(time.time())
    claims: dict[str, Any]
    for claims in (
        {"exp": now + 600},
        {"exp": now - 5},
        {"aud": "us"},
        {"aud": ["x", "us"]},
        {"aud": []},
        {"role": None},
    ):
        Case("GET /shown", json=[], headers=token(**claims)).check(service.client)
    basic = base64.b64encode(b"a:b").decode()
    Case("GET /shown", json=[], headers=refused(f"Basic {basic}")).check(service.client)
    Case(
        "GET /shown",
        json=[],
        headers={"authorization": token(role=roles[1])["authorization"].replace("Bearer", "bearer")},
    ).check(service.client)


def test_a_token_is_checked_before_anything_else(service: Service) -> None:
    for request in ("GET /a/b", "FOO /shown", "OPTIONS /shown", "POST /rpc/nothing"):
        Case(request, 401, error("PGRST301"), headers=refused("Bearer a.b")).check(service.client)


def test_tokens_of_cookies_and_query_strings_are_not_read(service: Service, roles: tuple[str, ...]) -> None:
    text = token(role=roles[1])["authorization"].removeprefix("Bearer ")
    for path, headers in ((f"/rpc/whoami?access_token=eq.{text}", {}), ("/rpc/whoami", {"cookie": f"jwt={text}"})):
        body = service.get(path, headers=headers).json()
        assert body.get("role", body.get("code")) in (roles[0], "42703")


def test_roles_that_cannot_be_used(service: Service, roles: tuple[str, ...]) -> None:
    Case(
        "GET /shown",
        401,
        error("22023", 'role "missing" does not exist'),
        headers=token(role="missing"),
        has={"www-authenticate": "Bearer"},
    ).check(service.client)
    Case("GET /shown", 403, error("42501"), headers=token(role=roles[2])).check(service.client)


def test_the_function_before_each_request(service: Service) -> None:
    Case("GET /shown", 403, error("PT403", "blocked"), headers={"x-blocked": "1"}).check(service.client)
    Case("GET /shown", json=[], headers={"x-cache": "1"}, has={"cache-control": "no-store"}).check(service.client)
    for request in ("GET /rpc/whoami", "GET /", "DELETE /shown", "POST /shown"):
        body = "{}" if request.startswith("POST") else None
        Case(request, 403, error("PT403"), body=body, headers={"x-blocked": "1"}).check(service.client)


@pytest.mark.parametrize(
    "case",
    [
        Case("GET /other", json=[], headers={"accept-profile": "second"}, has={"content-profile": "second"}),
        Case("GET /shown", json=[], has={"content-profile": "api"}),
        Case("GET /other", 404, error("PGRST205")),
        Case(
            "POST /other",
            401,
            error("42501"),
            body="{}",
            headers={"content-profile": "second", "accept-profile": "api"},
        ),
        Case(
            "GET /shown",
            406,
            error(
                "PGRST106",
                "Invalid schema: internal",
                hint="Only the following schemas are exposed: api, second, Träume",
            ),
            headers={"accept-profile": "internal"},
        ),
        *(
            Case(f"{method} /other", 401, error("42501"), body='{"id":1}', headers={"content-profile": "second"})
            for method in ("PATCH", "DELETE")
        ),
        Case("PUT /other?id=eq.1", 405, error("PGRST105"), body='{"id":1}', headers={"content-profile": "second"}),
        Case("PUT /other?id=eq.1", 404, error("PGRST205"), body='{"id":1}', headers={"accept-profile": "second"}),
        Case("POST /rpc/whoami", headers={"content-profile": "api"}, body="{}", has={"content-profile": "api"}),
        Case("HEAD /other", headers={"accept-profile": "second"}, has={"content-profile": "second"}),
        Case("POST /shown", 406, error("PGRST106"), body="{}", headers={"content-profile": "internal"}),
        Case("GET /nope", 404, headers={"x-request-id": "7"}, has={"x-request-id": "7", "content-profile": None}),
        Case(
            "OPTIONS /other", headers={"accept-profile": "second"}, has={"allow": "OPTIONS,GET,HEAD,POST,PATCH,DELETE"}
        ),
        Case("GET /shown", headers={"x-request-id": "7"}, has={"x-request-id": "7"}),
        Case("GET /shown", has={"x-request-id": ""}),
        Case(
            "OPTIONS /shown",
            headers={"origin": "http://a", "access-control-request-method": "FOO"},
            has={"allow": "OPTIONS,GET,HEAD,POST,PATCH,DELETE", "access-control-allow-methods": None},
        ),
        Case(
            "OPTIONS /anything",
            headers={
                "origin": "http://a",
                "access-control-request-method": "POST",
                "access-control-request-headers": "Foo,Bar",
            },
            text="",
            has={
                "access-control-allow-origin": "*",
                "access-control-allow-methods": "GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD",
                "access-control-allow-headers": "Authorization, Foo, Bar, Accept, Accept-Language, Content-Language",
                "access-control-max-age": "86400",
            },
        ),
        Case(
            "GET /shown",
            headers={"origin": "http://a"},
            has={
                "access-control-allow-origin": "*",
                "access-control-expose-headers": "Content-Encoding, Content-Location, Content-Range, Content-Type, "
                "Date, Location, Server, Transfer-Encoding, Range-Unit",
                "vary": "Accept, Prefer, Range",
            },
        ),
        Case("GET /shown", has={"access-control-allow-origin": None}),
        Case(
            "OPTIONS /shown",
            headers={
                "origin": "http://a",
                "access-control-request-method": "PUT",
                "access-control-request-headers": "accept, X-One,authorization",
            },
            has={
                "access-control-allow-headers": "Authorization, accept, X-One, authorization, Accept-Language, "
                "Content-Language"
            },
        ),
        Case(
            "OPTIONS /shown",
            headers={"origin": "http://a", "access-control-request-method": "CONNECT"},
            has={"access-control-allow-methods": None, "allow": "OPTIONS,GET,HEAD,POST,PATCH,DELETE"},
        ),
        *(
            Case(
                f"{method} /rpc/",
                404,
                error("PGRST202", "Could not find the function api. without parameters in the schema cache"),
                body=body,
            )
            for method, body in (("GET", None), ("POST", "{}"), ("OPTIONS", None))
        ),
        Case("OPTIONS /shown", headers={"origin": "http://a"}, has={"access-control-allow-origin": "*"}),
    ],
    ids=str,
)
def test_schemas_and_origins(service: Service, case: Case) -> None:
    case.check(service.client)


def test_the_description_shows_what_the_role_may_access(
    service: Service, roles: tuple[str, ...], database: Database
) -> None:
    document = service.get("/").json()
    assert document["swagger"] == "2.0"
    assert document["info"]["title"] == "My API"
    assert document["info"]["description"] == "Its text"
    assert {"/", "/note", "/shown", "/rpc/whoami"} <= document["paths"].keys()
    definition = document["definitions"]["note"]
    assert definition["required"] == ["id"]
    assert definition["properties"]["id"] == {
        "format": "int32",
        "type": "integer",
        "description": "Note:\nThis is a Primary Key.<pk/>",
    }
    database.execute("create table api.secret (id int)")
    database.execute("notify pgrst, 'reload schema'")
    wait_until(lambda: service.get("/secret").status_code == 401, "the new table")
    assert "/secret" not in service.get("/").json()["paths"]


@pytest.mark.slow
def test_notify_reloads_schema_and_configuration_in_all_workers(serve_once: Serve, own_database: Database) -> None:
    own_database.execute("create schema api")
    (anonymous,) = create_roles(own_database, "anon")
    own_database.execute(
        f"grant usage on schema api to {anonymous}; alter default privileges grant select on tables to {anonymous}"
    )
    service = serve_once(own_database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous}, workers=2)
    Case("GET /late", 404, error("PGRST205")).check(service.client)
    own_database.execute("create table api.late as select generate_series(1, 3) as id")
    own_database.execute("notify pgrst, 'reload schema'")
    wait_until(lambda: all(service.request_once("GET", "/late").status_code == 200 for _ in range(8)), "the new table")
    own_database.execute(f"alter role current_user in database {own_database.name} set pgrst.db_max_rows = '2'")
    own_database.execute("notify pgrst, 'reload config'")
    wait_until(lambda: all(len(service.request_once("GET", "/late").json()) == 2 for _ in range(8)), "the new limit")


def test_without_an_anonymous_role_a_token_is_needed(serve_once: Serve, own_database: Database) -> None:
    own_database.execute("create schema api; create table api.note (id int)")
    (member,) = create_roles(own_database, "member")
    own_database.execute(f"grant usage on schema api to {member}; grant select on api.note to {member}")
    service = serve_once(
        own_database,
        settings={
            **PLAIN,
            "PostgRest:JwtRoleClaimKey": "$.app.roles[0]",
            "PostgRest:ClientErrorVerbosity": "minimal",
            "PostgRest:CorsAllowedOrigins": "http://good",
        },
    )
    refused = service.get("/note")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert refused.json() == {"code": "PGRST302", "message": "Anonymous access is disabled"}
    headers = token(app={"roles": [member]})
    good = service.get("/note", headers={**headers, "origin": "http://good"})
    assert (
        good.json(),
        good.headers["access-control-allow-origin"],
        good.headers["access-control-allow-credentials"],
    ) == ([], "http://good", "true")
    assert (
        "access-control-allow-origin" not in service.get("/note", headers={**headers, "origin": "http://bad"}).headers
    )
    asked = {"access-control-request-method": "GET", "access-control-request-headers": "Foo"}
    preflight = service.request("OPTIONS", "/note", headers={"origin": "http://good", **asked}).headers
    assert (
        preflight["access-control-allow-origin"],
        preflight["access-control-allow-credentials"],
        preflight["access-control-allow-headers"],
        preflight["access-control-max-age"],
    ) == ("http://good", "true", "Authorization, Foo, Accept, Accept-Language, Content-Language", "86400")
    other = service.request("OPTIONS", "/note", headers={**headers, "origin": "http://bad", **asked}).headers
    assert (other["access-control-allow-origin"], other["allow"]) == ("*", "OPTIONS,GET,HEAD,POST,PATCH,DELETE")
    assert "access-control-allow-methods" not in other


@pytest.mark.parametrize(
    ("sent", "cookies"),
    [
        (b"a=b; c=d", {"a": "b", "c": "d"}),
        (b"a; b=; c=1=2; a=x;", {"a": "x", "b": "", "c": "1=2"}),
        (b'a="q x" ;  b= 1', {"a": '"q x" ', "b": " 1"}),
        (b"", {}),
    ],
)
def test_cookies_of_the_request(service: Service, sent: bytes, cookies: dict[str, str]) -> None:
    response = service.raw(b"GET /rpc/cookies HTTP/1.1\r\nHost: x\r\nCookie: %s\r\n\r\n" % sent)
    assert response is not None
    assert (response.status, json.loads(response.body)) == (200, cookies)


def test_headers_of_the_request_have_no_cookies(service: Service, roles: tuple[str, ...]) -> None:
    member = token(role=roles[1])
    headers = service.get("/rpc/headers", headers={**member, "cookie": "a=b", "X-One": "1"}).json()
    assert (headers["authorization"], headers["x-one"]) == (member["authorization"], "1")
    assert "cookie" not in headers


def test_isolation_is_that_of_the_role(serve_once: Serve, own_database: Database) -> None:
    own_database.execute(
        "create schema api; create function api.isolation() returns text stable language sql as"
        " $$ select current_setting('transaction_isolation') $$;"
    )
    anonymous, member = create_roles(own_database, "anon", "member")
    own_database.execute(
        f"grant usage on schema api to {anonymous}, {member}; grant {member} to current_user;"
        f"alter role {member} set default_transaction_isolation = 'repeatable read'"
    )
    service = serve_once(own_database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous})
    assert service.get("/rpc/isolation").json() == "read committed"
    assert service.get("/rpc/isolation", headers=token(role=member)).json() == "repeatable read"


@pytest.mark.slow
def test_new_columns_are_read_at_once_and_written_after_a_reload(serve_once: Serve, own_database: Database) -> None:
    own_database.execute("create schema api; create table api.note (id int)")
    (anonymous,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {anonymous}; grant all on api.note to {anonymous}")
    service = serve_once(own_database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous})
    own_database.execute("alter table api.note add text text default 'x'")
    Case("GET /note?select=text&text=eq.x", json=[]).check(service.client)
    message = "Could not find the 'text' column of 'note' in the schema cache"
    Case("POST /note", 400, error("PGRST204", message), body='{"text":"y"}').check(service.client)
    own_database.execute("notify pgrst")
    wait_until(lambda: service.post("/note", json={"text": "y"}).status_code == 201, "the new column")


@pytest.mark.slow
def test_a_lost_listener_reads_the_schema_again(serve_once: Serve, own_database: Database) -> None:
    own_database.execute("create schema api")
    (anonymous,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {anonymous}")
    service = serve_once(own_database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous})
    own_database.execute(f"create table api.late (id int); grant select on api.late to {anonymous}")
    Case("GET /late", 404, error("PGRST205")).check(service.client)
    own_database.terminate("query ilike 'listen%'")
    wait_until(lambda: service.get("/late").status_code == 200, "the new table", 60)
