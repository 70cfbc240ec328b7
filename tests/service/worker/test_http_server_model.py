"""The HTTP server of a worker against a model: requests arrive once and in order, whatever is announced and stopped.

The server is granian in this process, on a real socket. The model is the list of requests that a client has sent, and
whether their end was announced; docs/internals/http-server.md has the states.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
import uvloop
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from rowcall.core.config.sections.http_server import HttpServer
from rowcall.service.options.worker import HttpOptions
from rowcall.service.sockets.listeners import BACKLOG, Listener
from rowcall.service.worker import http_server
from tests.ext.wire import run, until
from tests.harness.effort import examples
from tests.harness.waiting import wait_until

CLIENTS = st.integers(0, 3)
HOST = "127.0.0.1"


class RecordingDeque(deque[Any]):
    """The requests on their way to the event loop, which also records the threads that they come from."""

    def __init__(self, threads: set[int]) -> None:
        super().__init__()
        self._threads = threads

    def append(self, item: Any) -> None:
        self._threads.add(threading.get_ident())
        super().append(item)


@dataclass
class Client:
    """A connection with at most one request that waits for its response."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    waiting: str | None = None


@dataclass
class Arrived:
    protocol: Any
    closes: bool
    """Whether the end of its connection was announced when it arrived."""


class ServerModel(RuleBasedStateMachine):
    numbers = itertools.count(1)

    def __init__(self) -> None:
        super().__init__()
        self.loop = uvloop.new_event_loop()
        self.socket = socket.socket()
        self.socket.bind((HOST, 0))
        self.socket.listen(BACKLOG)
        self.arrived: dict[str, Arrived] = {}
        self.sent = 0
        self.handled = 0
        self.callers: set[int] = set()
        self.threads: set[int] = set()
        self.clients: dict[int, Client] = {}
        self.announced = False
        self.stopping: asyncio.Task[bool] | None = None
        self.server: http_server.HttpServer = self.run(self._started())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 30))

    async def _started(self) -> http_server.HttpServer:
        http_server.deque = lambda: RecordingDeque(self.callers)  # type: ignore[attr-defined, assignment]
        server = http_server.HttpServer(
            self._handle, Listener(self.socket.dup().detach(), protocols="1"), HttpOptions(HttpServer(threads=3))
        )
        server.start()
        server.start()  # no effect
        return server

    def _handle(self, scope: Any, protocol: Any) -> None:
        self.threads.add(threading.get_ident())
        assert scope.path not in self.arrived, "a request has arrived twice"
        self.arrived[scope.path] = Arrived(protocol, self.announced)
        self.handled += 1

    # Steps

    @rule(number=CLIENTS, count=st.integers(1, 3))
    def send(self, number: int, count: int) -> None:
        """Several clients send at once."""
        numbers = {(number + place) % 4 for place in range(count)}
        free = [item for item in numbers if item not in self.clients or self.clients[item].waiting is None]
        if self.stopping is None:
            self.run(self._sent(free))

    async def _sent(self, numbers: list[int]) -> None:
        before = self.handled
        for number in numbers:
            if number not in self.clients:
                self.clients[number] = Client(*await asyncio.open_connection(*self.socket.getsockname()))
        for number in numbers:
            client = self.clients[number]
            client.waiting = f"/{next(self.numbers)}"
            client.writer.write(f"GET {client.waiting} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
        self.sent += len(numbers)
        await until(lambda: self.handled == before + len(numbers))

    @rule(number=CLIENTS)
    def answer(self, number: int) -> None:
        client = self.clients.get(number)
        if client is not None and client.waiting is not None:
            self.run(self._answered(number, client))

    async def _answered(self, number: int, client: Client) -> None:
        assert client.waiting is not None
        path, client.waiting = client.waiting, None
        item = self.arrived[path]
        item.protocol.response_bytes(200, [("content-type", "text/plain")], path.encode())
        head = (await client.reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert await client.reader.readexactly(len(path)) == path.encode(), "the response of another request"
        assert ("connection: close" in head) >= item.closes
        if item.closes or self.stopping is not None:
            assert await client.reader.read() == b""
            client.writer.close()
            del self.clients[number]

    @rule(chance=st.integers(0, 3))
    def announce_close(self, chance: int) -> None:
        """From the next request on."""
        if not chance and not self.announced:
            self.server.announce_close()
            self.announced = True

    @rule(chance=st.integers(0, 7))
    def stop(self, chance: int) -> None:
        if chance or self.stopping is not None:
            return
        self.stopping = self.loop.create_task(self.server.stop(30))
        self.run(self._idle_closed())

    async def _idle_closed(self) -> None:
        """Idle connections are closed at once, the others behind their response."""
        for number, client in list(self.clients.items()):
            if client.waiting is None:
                assert await client.reader.read() == b""
                client.writer.close()
                del self.clients[number]

    # What holds after each step

    @invariant()
    def requests_arrive_once_and_in_one_thread(self) -> None:
        assert self.handled == self.sent
        assert self.threads <= {threading.get_ident()}
        assert len(self.callers) <= 1, "two threads pass requests to the loop, so that a wake-up may be lost"

    @invariant()
    def a_server_that_stops_waits_for_its_requests(self) -> None:
        if self.stopping is not None and any(client.waiting is not None for client in self.clients.values()):
            assert not self.stopping.done()

    def teardown(self) -> None:
        for number, client in list(self.clients.items()):
            if client.waiting is not None:
                self.run(self._answered(number, client))
        if self.stopping is None:
            self.stopping = self.loop.create_task(self.server.stop(30))
            self.run(self._idle_closed())
        assert self.run(_result(self.stopping))
        self.socket.close()
        with contextlib.suppress(Exception):
            self.run(self.loop.shutdown_default_executor())
        self.loop.close()
        http_server.deque = deque  # type: ignore[attr-defined]


async def _result(task: asyncio.Task[bool]) -> bool:
    return await task


TestServerModel = ServerModel.TestCase
TestServerModel.settings = settings(max_examples=examples(80), stateful_step_count=25, deadline=None)


def test_requests_behind_a_failing_handler_are_started(caplog: pytest.LogCaptureFixture) -> None:
    """Otherwise no later request would wake the loop (docs/internals/http-server.md, http-5)."""
    arrived = RecordingDeque(set())
    paths: list[str] = []
    statuses: list[bytes] = []

    def handle(scope: Any, protocol: Any) -> None:
        paths.append(scope.path)
        if len(paths) == 1:
            raise LookupError("the first request")
        protocol.response_bytes(200, [], scope.path.encode())

    async def work(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(http_server, "deque", lambda: arrived)
            server = http_server.HttpServer(handle, Listener(listening.dup().detach(), protocols="1"), HttpOptions())
        server.start()
        clients = [socket.create_connection(listening.getsockname(), 30) for _ in range(3)]
        for number, client in enumerate(clients):
            client.sendall(b"GET /%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % number)
        wait_until(lambda: len(arrived) == len(clients), "all requests arrive while the loop is busy")
        await until(lambda: len(paths) == len(clients))
        assert await server.stop(30)
        for client in clients:
            statuses.append(client.recv(12)[-3:])
            client.close()

    with socket.create_server((HOST, 0)) as listening, pytest.MonkeyPatch.context() as monkeypatch:
        run(work(listening, monkeypatch))
    assert sorted(paths) == ["/0", "/1", "/2"]
    assert sorted(statuses) == [b"200", b"200", b"500"]
    assert "the first request" in caplog.text
