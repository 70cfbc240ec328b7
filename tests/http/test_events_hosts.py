"""Events over two instances with two workers each, like two hosts: over Redis, and over PostgreSQL."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from rowcall.core.events.position import MOST_ORIGINS
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function publish(_text text) returns text language plpgsql as $$begin
    if _text = 'late' then perform pg_advisory_xact_lock(7); end if;
    raise info '%', _text;
    return 'published';
end$$;
comment on function publish(text) is E'HTTP POST\\nsse';
create function publish_long(_length int) returns void language plpgsql as $$begin
    raise info '%', repeat('ä', _length);
end$$;
comment on function publish_long(int) is E'HTTP POST\\nsse_publish';
create function heard() returns void language sql as '';
comment on function heard() is E'HTTP GET\\nallow_anonymous\\nsse_listen news';
"""
STREAM = "/api/publish/info"

Hosts = tuple[Service, Service]


@pytest.fixture(scope="module", params=["Redis", "Postgres"])
def hosts(request: pytest.FixtureRequest, database: Database, redis: RedisServer, serve: Serve) -> Hosts:
    settings = {
        "Service:ServerSentEvents:BetweenHosts": request.param,
        "Service:ServerSentEvents:Replay": "true",
        "Service:ServerSentEvents:RedisConfiguration": redis.place,
        "Service:ServerSentEvents:Channel": f"events {request.param}",
    }
    database.execute("drop schema public cascade; create schema public;" + SQL)
    return serve(database, "", settings, workers=2), serve(database, "", settings, workers=2)


def publish(service: Service, text: str) -> None:
    assert service.request_once("POST", "/api/publish", json={"text": text}).status_code == 200


def test_every_stream_of_every_host_gets_each_event_once_and_in_order(hosts: Hosts) -> None:
    with ExitStack() as opened:
        streams = [opened.enter_context(EventStream(host, STREAM)) for host in hosts for _ in range(6)]
        for number in range(20):
            for name, host in zip("ab", hosts, strict=True):
                # On one connection, and so by one worker: the order of events of several workers is not guaranteed.
                assert host.post("/api/publish", json={"text": f"{name}{number}"}).status_code == 200
        for stream in streams:
            stream.wait_for_count(40)
            for name in "ab":
                got = [message for message in stream.messages if message.startswith(name)]
                assert got == [f"{name}{number}" for number in range(20)]


def test_client_resumes_its_stream_on_another_host(hosts: Hosts) -> None:
    item, other = hosts
    with EventStream(item, STREAM) as stream, EventStream(other, STREAM) as there:
        publish(item, "first")
        publish(other, "second")
        for each in (stream, there):
            each.wait_for_count(2)
            assert sorted(each.messages) == ["first", "second"]
        last = stream.last_id
    publish(item, "third")
    publish(other, "fourth")
    with EventStream(other, STREAM, {"last-event-id": last}) as again:
        again.wait(lambda: sorted(again.messages) == ["fourth", "third"], "what was missed, and nothing else")


FOREIGN = [
    "{",
    "7",
    "[[]]",
    '[["o","x",[["m"]]]]',
    '[["o",true,[["m"]]]]',
    '[["o",1,[["m",2]]]]',
    '[["o",1,[["m","","all",7]]]]',
    '[["\\n",1,[["m"]]]]',
]


def test_foreign_messages_in_the_redis_stream_are_ignored(hosts: Hosts, database: Database, redis: RedisServer) -> None:
    with ExitStack() as opened:
        streams = [opened.enter_context(EventStream(host, STREAM)) for host in hosts]
        with redis.client() as client:
            for text in FOREIGN:
                client.xadd("events Redis", {"batches": text})
            client.xadd("events Redis", {"other": "x"})
        for text in FOREIGN:
            database.fetch("select pg_notify('events Postgres', %s)", f"x 1/1 {text}")
        for host in hosts:
            publish(host, "event")
        for stream in streams:
            stream.wait_for("event", "event")
    assert not [host for host in hosts if "not received" in host.log or "failed" in host.log or "is gone" in host.log]


@pytest.mark.slow
def test_large_event_is_delivered_between_hosts(hosts: Hosts) -> None:
    with EventStream(hosts[1], STREAM) as stream:
        long = httpx.post(f"{hosts[0].url}/api/publish-long", json={"length": 5_000_000}, trust_env=False, timeout=60)
        assert long.is_success, long.text
        publish(hosts[0], "behind it")
        # Another worker may have published the second one: their order is not guaranteed.
        stream.wait(lambda: len(stream.body) > 10_000_000 and len(stream.messages) == 2, "all of it", 90)
        assert sorted(len(message) for message in stream.messages) == [9, 5_000_000]


def test_notifications_arrive_once_on_each_host(hosts: Hosts, database: Database) -> None:
    with EventStream(hosts[0], "/api/heard/news") as item, EventStream(hosts[1], "/api/heard/news") as other:
        for text in ("once", "end"):
            database.fetch("select pg_notify('news', %s)", text)
        item.wait_for("once", "end")
        other.wait_for("once", "end")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["Redis", "Postgres"])
def test_events_published_during_shutdown_reach_other_hosts(
    own_database: Database, redis: RedisServer, serve_once: Serve, way: str
) -> None:
    settings = {
        "Service:ServerSentEvents:BetweenHosts": way,
        "Service:ServerSentEvents:RedisConfiguration": redis.place,
        "Service:ServerSentEvents:Channel": f"last words {way}",
    }
    item, other = (serve_once(own_database, sql, settings) for sql in (SQL, ""))
    with EventStream(other, STREAM) as stream, ThreadPoolExecutor(1) as threads:
        publish(item, "first")
        stream.wait_for("first", seconds=30)
        with own_database.locked(7):
            requested = threads.submit(httpx.post, f"{item.url}/api/publish", json={"text": "late"}, timeout=60)
            wait_until(own_database.waiting, "it runs")
            item.signal(signal.SIGTERM)
            wait_until(lambda: refuses_connections(item), "only what runs is waited for")
        assert requested.result().status_code == 200
        stream.wait_for("first", "late", seconds=30)


def refuses_connections(service: Service) -> bool:
    try:
        service.connect().close()
    except OSError:
        return True
    return False


@pytest.mark.slow
def test_events_continue_after_a_redis_outage(own_database: Database, redis: RedisServer, serve_once: Serve) -> None:
    settings = {
        "Service:ServerSentEvents:BetweenHosts": "Redis",
        "Service:ServerSentEvents:RedisConfiguration": f"{redis.place},syncTimeout=1000",
        "Service:ServerSentEvents:Channel": "gone and back",
    }
    item, other = (serve_once(own_database, sql, settings, workers=2) for sql in (SQL, ""))
    with EventStream(item, STREAM) as near, EventStream(other, STREAM) as far:
        publish(item, "before")
        near.wait_for("before")
        far.wait_for("before")
        redis.kill()
        publish(item, "meanwhile")
        near.wait_for("before", "meanwhile")
        other.wait_for_log("is gone: events stay on their hosts")
        redis.start()
        far.wait_for("before", "meanwhile", seconds=30)
        publish(other, "after")
        near.wait_for("before", "meanwhile", "after", seconds=30)
        far.wait_for("before", "meanwhile", "after", seconds=30)
    wait_until(lambda: "is back" in item.log or "is back" in other.log, "the log reports that PostgreSQL is back")


@pytest.mark.slow
def test_starting_host_replays_earlier_events(own_database: Database, redis: RedisServer, serve_once: Serve) -> None:
    settings = {
        "Service:ServerSentEvents:BetweenHosts": "Redis",
        "Service:ServerSentEvents:Replay": "true",
        "Service:ServerSentEvents:RedisConfiguration": redis.place,
        "Service:ServerSentEvents:Channel": "a later host",
    }
    item = serve_once(own_database, SQL, settings)
    with EventStream(item, STREAM) as stream:
        publish(item, "seen")
        stream.wait_for("seen")
        last = stream.last_id
    publish(item, "missed")
    wait_until(lambda: _entries(redis) == 2, "both are in Redis")
    later = serve_once(own_database, "", settings)
    with EventStream(later, STREAM, {"last-event-id": last}) as again, EventStream(later, STREAM) as fresh:
        again.wait_for("missed")
        publish(item, "end")
        fresh.wait_for("end")


@pytest.mark.slow
def test_events_of_many_former_hosts_are_delivered_once(
    own_database: Database, redis: RedisServer, serve_once: Serve
) -> None:
    """Each start of a host publishes under another name, and there are more of them than a position names."""
    settings = {
        "Service:ServerSentEvents:BetweenHosts": "Redis",
        "Service:ServerSentEvents:Replay": "true",
        "Service:ServerSentEvents:RedisConfiguration": redis.place,
        "Service:ServerSentEvents:Channel": "many hosts",
    }
    _add_old_events(redis)
    service = serve_once(own_database, SQL, settings)
    with EventStream(service, STREAM) as stream:
        publish(service, "one")
        stream.wait_for("one")
        # As after an interruption, after which the whole stream of Redis is read again.
        _add_old_events(redis)
        publish(service, "two")
        stream.wait_for("one", "two")
        last = stream.last_id
    publish(service, "three")
    with EventStream(service, STREAM, {"last-event-id": last}) as again:
        again.wait_for("three")


def _add_old_events(redis: RedisServer) -> None:
    with redis.client() as client:
        for number in range(MOST_ORIGINS + 6):
            client.xadd("many hosts", {"batches": f'[["former{number}",1,[["old {number}"]]]]'})


def _entries(redis: RedisServer) -> int:
    with redis.client() as client:
        return int(client.xlen("a later host"))
