"""Streams during several faults: a worker is killed with hundreds of readers, Redis stops responding, clocks differ."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import httpx
import psutil
import pytest

from tests.harness.clock import WORKS, WallClock
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import bearer

SQL = """
create function publish(_text text) returns text language plpgsql as
    $$begin raise info '%', _text; return 'published'; end$$;
comment on function publish(text) is E'HTTP POST\\nallow_anonymous\\nsse';
create table session (id text primary key);
insert into session values ('one'), ('two');
create function sign_in(_session text) returns table (user_id int, session_id text) language sql
    as $$select 41, _session$$;
comment on function sign_in(text) is E'HTTP POST\\nlogin';
create function holds(_id text, _user text) returns boolean language sql stable
    as $$select exists (select from session where id = _id)$$;
"""
STREAM = "/api/publish/info"
READERS = 500


def publish(service: Service, *texts: str) -> None:
    for text in texts:
        assert service.request_once("POST", "/api/publish", json={"text": text}).status_code == 200


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        "Service:ServerSentEvents:Replay": "true",
        "Auth:BearerTokenAuth": "true",
        "Auth:SessionCheckCommand": "select holds($1, $2)",
        "Auth:SessionCheckInterval": "0",
    }
    return serve(database, SQL, settings, workers=2)


def _has_or_ended(stream: EventStream, last: str) -> bool:
    return last in stream.messages or stream.cut or stream.ended


class Reader:
    """Reads like a browser: after the end of the connection it reconnects with the id of the last event."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self.messages: list[str] = []
        self._last = ""
        self._stream = EventStream(service, STREAM)

    def read_until(self, last: str) -> None:
        """Reconnect as often as necessary."""
        for _ in range(100):
            stream = self._stream
            stream.wait(partial(_has_or_ended, stream, last), last, 60)
            self._last = stream.last_id or self._last
            if last in stream.messages:
                return
            self._disconnect()
            with suppress(OSError, AssertionError, IndexError):
                self._stream = EventStream(self._service, STREAM, {"last-event-id": self._last})
        raise AssertionError(f"{last} never came")

    def _disconnect(self) -> None:
        self.messages += self._stream.messages
        self._stream.socket.close()

    def end(self) -> list[str]:
        self._disconnect()
        return self.messages


@pytest.mark.slow
def test_readers_of_a_killed_worker_reconnect_without_missing_events(service: Service) -> None:
    with ThreadPoolExecutor(32) as pool:
        readers = list(pool.map(lambda _: Reader(service), range(READERS)))
        publish(service, "before")
        list(pool.map(lambda reader: reader.read_until("before"), readers))
        before = service.pids()
        psutil.Process(before[0]).kill()
        wait_until(lambda: before[0] not in service.pids(), "the worker has exited")
        attempts = _publish_until_delivered(service, *(str(number) for number in range(20)), "last")
        list(pool.map(lambda reader: reader.read_until("last"), readers))
    values = [reader.end() for reader in readers]
    wrong = [messages for messages in values if not _are_published(messages, [("before", True), *attempts])]
    assert wrong == [], (len(wrong), wrong[0], attempts)


def _publish_until_delivered(service: Service, *texts: str) -> list[tuple[str, bool]]:
    """Publish each text until there is a response: a connection may still have belonged to the killed worker.

    Returns the attempts, and whether each had a response. Without one, the text may have been published all the same.
    """
    attempts: list[tuple[str, bool]] = []
    for text in texts:
        while not attempts or attempts[-1] != (text, True):
            attempts.append((text, _is_delivered(service, text)))
            assert len(attempts) < 100, attempts
    return attempts


def _is_delivered(service: Service, text: str) -> bool:
    try:
        publish(service, text)
    except httpx.TransportError:
        return False
    return True


def _are_published(messages: list[str], attempts: list[tuple[str, bool]]) -> bool:
    """Whether the messages are those of the attempts, in order and each once; without a response, it may be missing."""
    left = iter(messages)
    following = next(left, None)
    for text, has_response in attempts:
        if following == text:
            following = next(left, None)
        elif has_response:
            return False
    return following is None


def test_bursts_of_short_lived_readers_leak_no_resources(service: Service) -> None:
    with EventStream(service, STREAM) as steady:

        def connect_and_disconnect(number: int) -> None:
            """Some clients read the head of the response, some do not even that."""
            if number % 2:
                EventStream(service, STREAM).socket.close()
            else:
                with service.connect() as connection:
                    connection.sendall(f"GET {STREAM} HTTP/1.1\r\nhost: test\r\n\r\n".encode())

        with ThreadPoolExecutor(32) as pool:
            list(pool.map(connect_and_disconnect, range(600)))
        publish(service, "still here")
        steady.wait_for("still here", seconds=30)
    wait_until(lambda: _open_streams(service) == 0, "the service holds none of their connections", 60)


def _open_streams(service: Service) -> int:
    """Count the streams. The end of a stream is noticed when something is sent to it."""
    publish(service, "any subscriber?")
    return sum(
        1
        for process in service.processes()
        for item in process.net_connections("tcp")
        if item.laddr.port == service.port and item.status == "CLOSE_WAIT"
    )


def test_a_stream_ends_when_the_session_of_its_reader_is_ended(service: Service, database: Database) -> None:
    def stream_of(session: str) -> EventStream:
        token = service.post("/api/sign-in", json={"session": session}).json()["accessToken"]
        return EventStream(service, STREAM, bearer(token))

    with stream_of("one") as item, stream_of("two") as two, EventStream(service, STREAM) as unfiltered:
        database.execute("delete from session where id = 'one'")
        item.wait_for_end(30)
        assert item.ended
        publish(service, "to the others")
        two.wait_for("to the others")
        unfiltered.wait_for("to the others")


# --- between hosts -------------------------------------------------------------------------------------------------


class BlackHole:
    """A proxy that can swallow all data, like a broken network: no response, and no end."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.through = threading.Event()
        self.through.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._open += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if self.through.is_set():
                    target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for item in self._open:
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
            item.close()


@pytest.mark.slow
def test_events_lost_in_the_network_are_delivered_once_later(
    own_database: Database, redis: RedisServer, serve_once: Serve
) -> None:
    hole = BlackHole(redis.port)
    settings = {"Service:ServerSentEvents:BetweenHosts": "Redis", "Service:ServerSentEvents:Channel": "swallowed"}
    key = "Service:ServerSentEvents:RedisConfiguration"
    item = serve_once(own_database, SQL, {**settings, key: f"127.0.0.1:{hole.port},syncTimeout=1000"}, workers=2)
    other = serve_once(own_database, "", {**settings, key: redis.place})
    try:
        with EventStream(item, STREAM) as near, EventStream(other, STREAM) as far:
            publish(item, "before")
            far.wait_for("before")
            hole.through.clear()
            publish(item, "swallowed 1", "swallowed 2")
            near.wait_for("before", "swallowed 1", "swallowed 2")
            item.wait_for_log("is gone: events stay on their hosts")
            publish(other, "from the other")
            hole.through.set()
            far.wait(lambda: "swallowed 2" in far.messages, "what was swallowed", 60)
            near.wait(lambda: "from the other" in near.messages, "the event of the other host", 60)
            publish(item, "after")
            expected = ["before", "swallowed 1", "swallowed 2", "after"]
            for stream in (near, far):
                stream.wait_for_message("after", 60)
                assert [message for message in stream.messages if message != "from the other"] == expected
                assert stream.messages.count("from the other") == 1
    finally:
        hole.close()


@pytest.mark.slow
@pytest.mark.skipif(not WORKS, reason="the clock of a service is set on Linux only")
def test_events_are_ordered_if_clocks_of_hosts_differ(
    own_database: Database, redis: RedisServer, serve_once: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither order nor missed events depend on a clock: one is two hours ahead, the other two behind."""
    settings = {
        "Service:ServerSentEvents:BetweenHosts": "Redis",
        "Service:ServerSentEvents:Replay": "true",
        "Service:ServerSentEvents:RedisConfiguration": redis.place,
        "Service:ServerSentEvents:Channel": "clocks",
    }
    hosts = []
    for name, seconds, sql in (("ahead", 7200, SQL), ("behind", -7200, "")):
        folder = tmp_path / name
        folder.mkdir()
        clock = WallClock(folder)
        clock.move(seconds)
        with monkeypatch.context() as patched:
            for variable, value in clock.environment.items():
                patched.setenv(variable, value)
            hosts.append(serve_once(own_database, sql, settings))
    ahead, behind = hosts
    values = [f"{number}" for number in range(6)]
    with ExitStack() as opened:
        streams = [opened.enter_context(EventStream(host, STREAM)) for host in hosts]
        for number, text in enumerate(values):
            publish(hosts[number % 2], text)
            for stream in streams:
                stream.wait_for_message(text)
        for stream in streams:
            assert stream.messages == values
        last = [stream.last_id for stream in streams]
    publish(ahead, "missed 1")
    publish(behind, "missed 2")
    # Reconnecting clients connect to the other host.
    for host, position in ((behind, last[0]), (ahead, last[1])):
        with EventStream(host, STREAM, {"last-event-id": position}) as again:
            again.wait_for_count(2)
            assert sorted(again.messages) == ["missed 1", "missed 2"]
