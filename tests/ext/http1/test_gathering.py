"""Responses of several connections in one turn of the event loop are sent together, behind the last request handled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rowcall.ext.http1.connection import Connection, Http1Server
from rowcall.ext.http1.invariants import invariant_violations
from tests.ext.twins.http1 import Transport

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LATER = b"GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Recording(Transport):
    def __init__(self, name: str, events: list[str]) -> None:
        super().__init__()
        self.name = name
        self.events = events

    def get_extra_info(self, name: str) -> Any:
        return (self.name, 1) if name == "peername" else super().get_extra_info(name)

    def write(self, data: bytes) -> None:
        self.events.append(f"{self.name} sent")
        super().write(data)

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.events.append(f"{self.name} sent")
        super().writelines(parts)


class Clients:
    """Clients of a server that responds in its handler. events: what was handled and sent, in order."""

    def __init__(self, names: str, gather_seconds: float = 60.0, gather_from: int = 1) -> None:
        self.events: list[str] = []
        self.ended: list[Connection] = []
        self.waiting: list[Any] = []
        self.server = Http1Server(
            asyncio.get_running_loop(),
            self._handle,
            lambda status, detail: b"",
            lambda *_: None,
            None,
            ConnectionError,
            self.ended.append,
            head_limit=4096,
            line_limit=0,
            body_buffer=0,
            keep_alive=True,
            idle_seconds=60,
            unread_seconds=60,
            gather_seconds=gather_seconds,
            gather_from=gather_from,
        )
        self.transports = {name: Recording(name, self.events) for name in names}
        self.connections = {name: Connection(self.server) for name in names}
        for name in names:
            self.connections[name].connection_made(self.transports[name])

    def _handle(self, scope: Any, protocol: Any) -> None:
        self.events.append(f"{scope.client.partition(':')[0]} handled")
        if scope.path == "/later":
            self.waiting.append(protocol)
        else:
            protocol.response_bytes(200, [], b"")

    def send(self, name: str, data: bytes = GET) -> None:
        self.connections[name].data_received(data)
        for connection in self.connections.values():
            assert invariant_violations(connection) == []

    def responses(self, name: str) -> int:
        return self.transports[name].sent.count(b"HTTP/1.1 200 ")


def test_responses_after_the_first_of_a_turn_are_sent_together() -> None:
    async def turn() -> None:
        clients = Clients("abc")
        for name in "abc":
            clients.send(name)
        assert clients.events == ["a handled", "a sent", "b handled", "c handled"]
        await asyncio.sleep(0)
        assert clients.events[4:] == ["b sent", "c sent"]
        assert [clients.responses(name) for name in "abc"] == [1, 1, 1]

    asyncio.run(turn())


def test_the_first_responses_of_a_turn_are_sent_immediately() -> None:
    async def turn() -> None:
        clients = Clients("abcd", gather_from=3)
        for name in "abcd":
            clients.send(name)
        assert [clients.responses(name) for name in "abcd"] == [1, 1, 1, 0]
        await asyncio.sleep(0)
        assert clients.responses("d") == 1

    asyncio.run(turn())


def test_several_responses_of_one_connection_are_sent_together() -> None:
    async def turn() -> None:
        clients = Clients("ab")
        clients.send("a")
        clients.send("b", GET + GET)
        clients.send("b")
        assert clients.responses("b") == 0
        await asyncio.sleep(0)
        assert clients.events == ["a handled", "a sent", *["b handled"] * 3, "b sent"]
        assert clients.responses("b") == 3

    asyncio.run(turn())


def test_responses_of_a_single_connection_are_sent_immediately() -> None:
    async def turn() -> None:
        clients = Clients("a")
        clients.send("a")
        clients.send("a")
        assert clients.events == ["a handled", "a sent"] * 2

    asyncio.run(turn())


def test_with_a_gathering_time_of_zero_responses_are_sent_immediately() -> None:
    async def turn() -> None:
        clients = Clients("ab", gather_seconds=0.0)
        clients.send("a")
        clients.send("b")
        assert clients.events == ["a handled", "a sent", "b handled", "b sent"]

    asyncio.run(turn())


def test_under_many_requests_in_progress_responses_are_gathered_regardless_of_time() -> None:
    async def turn() -> None:
        clients = Clients("abcd", gather_seconds=0.0, gather_from=2)
        for name in "abcd":
            clients.send(name, LATER)
        for protocol in clients.waiting[:3]:
            protocol.response_bytes(200, [], b"")
        assert [clients.responses(name) for name in "abcd"] == [0, 0, 1, 0], "one is in progress behind the third"
        await asyncio.sleep(0)
        assert [clients.responses(name) for name in "abcd"] == [1, 1, 1, 0]
        clients.connections["d"].connection_lost(None)
        clients.send("a", LATER)
        clients.send("b")
        assert clients.responses("b") == 2, "a lost connection has no request in progress"

    asyncio.run(turn())


def test_a_closing_connection_sends_gathered_responses_first() -> None:
    async def turn() -> None:
        clients = Clients("abc")
        clients.send("a")
        clients.send("b")
        clients.send("c")
        clients.send("b", LAST)
        assert clients.responses("b") == 2, "nothing can be sent behind the end"
        assert clients.transports["b"].ended
        clients.connections["c"].connection_lost(None)
        await asyncio.sleep(0)
        assert clients.events.count("b sent") == 1
        assert "c sent" not in clients.events
        assert clients.ended == [clients.connections["c"]]

    asyncio.run(turn())


def test_a_stopping_server_sends_gathered_responses() -> None:
    async def turn() -> None:
        clients = Clients("ab")
        clients.send("a")
        clients.send("b")
        clients.server.end_idle()
        assert clients.responses("b") == 1
        assert clients.transports["b"].ended

    asyncio.run(turn())
