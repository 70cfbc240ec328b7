"""Responses for some callers only are never stored by a shared cache (RFC 9111, 3 and 4.1)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.upstream import Upstream, answer
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens

DEFAULT = "private, no-cache"
CREDENTIALS = "Cookie, Authorization"

SQL = """
create table papers (id int primary key, title text);
insert into papers values (1, 'x');
comment on table papers is 'HTTP GET
authorize';
create function scalar(_a int default 1) returns int language sql as 'select 1 / _a';
comment on function scalar(int) is 'HTTP GET
authorize';
create function set_of_rows() returns table (a int) language sql as 'select 1';
comment on function set_of_rows() is 'HTTP GET
authorize';
create function nothing() returns void language sql as '';
comment on function nothing() is 'HTTP GET
authorize';
create function by_claim(_user_id text default null) returns text language sql as 'select _user_id';
comment on function by_claim(text) is 'HTTP GET
allow_anonymous
user_parameters';
create function in_zone() returns timestamptz language sql stable as $$ select timestamptz '2024-01-01 00:00Z' $$;
comment on function in_zone() is 'HTTP GET
allow_anonymous
timezone_from claim tz';
create function stored_once(_a int default 1) returns int language sql as 'select 1 / _a';
comment on function stored_once(int) is 'HTTP GET
authorize
cache_control no-store';
create function in_browsers(_a int default 1) returns int language sql as 'select 1 / _a';
comment on function in_browsers(int) is 'HTTP GET
authorize
cache_control public, max-age=60';
create function from_sql() returns text language plpgsql as $$
begin perform set_config('response.headers', '{"Cache-Control": "public, max-age=9"}', true); return 'x'; end $$;
comment on function from_sql() is 'HTTP GET
authorize';
create function kept_result(_a int default 1) returns int language sql as 'select _a';
comment on function kept_result(int) is 'HTTP GET
authorize
cached';
create function proxied() returns void language sql as '';
comment on function proxied() is 'HTTP GET
authorize
proxy';
create function proxied_public() returns void language sql as '';
comment on function proxied_public() is 'HTTP GET
authorize
proxy';
create function proxied_unstored() returns void language sql as '';
comment on function proxied_unstored() is 'HTTP GET
authorize
proxy';
create function sent_on() returns text language sql as $$ select 'x' $$;
comment on function sent_on() is 'HTTP GET
authorize
proxy_out POST';
create function open_to_all() returns int language sql as 'select 1';
comment on function open_to_all() is 'HTTP GET
allow_anonymous';
"""
KINDS = (
    "papers",
    "scalar",
    "set-of-rows",
    "nothing",
    "by-claim",
    "in-zone",
    "kept-result",
    "proxied",
    "sent-on",
    "one",
)
FILES = {"one.sql": "-- HTTP GET\n-- authorize\nselect 1 as a;"}


@pytest.fixture(scope="module")
def upstream() -> Iterator[Upstream]:
    server = Upstream()
    server.on("*", answer("said"))
    server.on(
        "/api/proxied-public", answer("said", headers=[("Cache-Control", "public, max-age=9"), ("Vary", "X-Till")])
    )
    server.on("/api/proxied-unstored", answer("said", headers=[("Cache-Control", "no-store")]))
    yield server
    server.close()


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    options = {
        "Service:CrudSource:Enabled": "true",
        "CacheOptions:Enabled": "true",
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": upstream.url,
    }
    return serve(database, member_sql() + SQL, {**EVERY_SCHEME, **options, **file_settings(folder)})


@pytest.fixture(scope="module")
def caller(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken")["accessToken"])


def ask(service: Service, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return service.request_once("GET", f"/api/{path}", headers=headers or {})


def caching(response: httpx.Response) -> tuple[str | None, list[str]]:
    return response.headers.get("cache-control"), response.headers.get_list("vary")


@pytest.mark.parametrize("path", KINDS)
def test_private_by_default(service: Service, caller: dict[str, str], path: str) -> None:
    for _ in range(2):
        result = ask(service, path, caller)
        assert result.status_code in (200, 204)
        assert caching(result) == (DEFAULT, [CREDENTIALS])
    if path not in ("by-claim", "in-zone"):
        refused = ask(service, path)
        assert (refused.status_code, *caching(refused)) == (401, DEFAULT, [CREDENTIALS])


def test_cache_control_of_the_comment_is_used(service: Service, caller: dict[str, str]) -> None:
    assert caching(ask(service, "stored-once", caller)) == ("no-store", [])
    assert caching(ask(service, "in-browsers", caller)) == ("private, max-age=60", [CREDENTIALS])


def test_cache_headers_set_by_sql_are_private(service: Service, caller: dict[str, str]) -> None:
    assert caching(ask(service, "from-sql", caller)) == ("private, max-age=9", [CREDENTIALS])


def test_cache_headers_of_proxied_responses_are_private(service: Service, caller: dict[str, str]) -> None:
    result = caching(ask(service, "proxied-public", caller))
    assert (result[0], set(result[1])) == ("private, max-age=9", {CREDENTIALS, "X-Till"})
    assert ask(service, "proxied-unstored", caller).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "expected"), [("scalar", DEFAULT), ("stored-once", "no-store"), ("in-browsers", DEFAULT)]
)
def test_errors_are_private(service: Service, caller: dict[str, str], path: str, expected: str) -> None:
    for query in ("a=0", "a=x"):
        failed = ask(service, f"{path}?{query}", caller)
        assert failed.status_code >= 400
        assert failed.headers["cache-control"] in (expected, DEFAULT)


def test_open_endpoints_send_no_cache_control_header(service: Service, caller: dict[str, str]) -> None:
    for headers in ({}, caller):
        assert caching(ask(service, "open-to-all", headers)) == (None, [])
