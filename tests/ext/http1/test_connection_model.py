"""A connection of the HTTP/1.1 server in the event loop against a list of requests and responses.

The client sends requests in parts, reads, stops sending and leaves; the application reads bodies and responds in one
piece or in parts, at once or later; the server announces its end. docs/internals/http-engine.md has the states and
invariants.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import uvloop
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rowcall.ext.http1.connection import Connection, Http1Server, StreamWriter
from rowcall.ext.http1.invariants import invariant_violations
from tests.ext.twins.http1 import Transport
from tests.harness.effort import examples

SIZES = st.sampled_from([0, 1, 700, 66_000, 150_000])
"""Of bodies: less and more than the server reads ahead, and than it copies behind a head."""
RARE = st.integers(0, 7)
"""Steps after which little else happens are taken for 0 only."""


class ClosedError(Exception):
    """The rest of a body will not arrive."""


@dataclass
class Sent:
    """A request of the client. end: where it ends in all that the client sends."""

    method: str
    body: bytes
    end: int
    at_once: bool
    """The application responds before its handler returns."""


@dataclass
class Arrived:
    """A request in the application."""

    sent: Sent
    protocol: Any
    whole: asyncio.Future[bytes] | None = None
    part: asyncio.Future[bytes] | None = None
    read: bytes = b""
    left: asyncio.Future[None] | None = None
    writer: StreamWriter | None = None
    stated: int | None = None
    response: bytes = b""
    answered: bool = False


class ConnectionModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = uvloop.new_event_loop()
        ours, self.client = socket.socketpair()
        self.client.setblocking(False)
        self.sent: list[Sent] = []
        self.arrived: list[Arrived] = []
        self.unsent = bytearray()
        self.pushed = 0
        self.received = b""
        self.half_closed = self.gone = self.cut = self.may_close = False
        self.ended: list[Connection] = []
        self.server = Http1Server(
            self.loop,
            self._handle,
            lambda status, detail: f"{status} {detail}".encode(),
            lambda *_: None,
            None,
            ClosedError,
            self.ended.append,
            head_limit=4096,
            line_limit=0,
            body_buffer=65_536,
            keep_alive=True,
            idle_seconds=60,
            unread_seconds=60,
            gather_seconds=60,
            gather_from=1,
        )
        self.connection = Connection(self.server)
        connection: Any = self.connection  # has what uvloop calls of a protocol, and is no subclass
        self.loop.run_until_complete(self.loop.connect_accepted_socket(lambda: connection, ours))
        self.other = Connection(self.server)
        self.other.connection_made(Transport())

    def turn(self) -> None:
        for _ in range(4):
            self.loop.run_until_complete(asyncio.sleep(0))
        if self.running is not None:
            self._take_body(self.running)

    @rule()
    def answer_another_client(self) -> None:
        """Let the next complete response be sent at the end of its turn, as that of another connection is recent."""
        self.other.data_received(b"GET /other HTTP/1.1\r\nHost: x\r\n\r\n")

    # The application

    @property
    def running(self) -> Arrived | None:
        """The request that waits for its response, or None."""
        return self.arrived[-1] if self.arrived and not self.arrived[-1].answered else None

    def _handle(self, scope: Any, protocol: Any) -> None:
        if scope.path == "/other":
            protocol.response_bytes(200, [], b"")
            return
        number = len(self.arrived)
        assert scope.path == f"/{number}", "requests arrive once, in the order in which they were sent"
        assert scope.method == self.sent[number].method
        assert self.running is None, "a request has arrived before the one in front was answered"
        self.arrived.append(Arrived(self.sent[number], protocol))
        if self.sent[number].at_once:
            self._answer(self.arrived[-1], b"at once")

    def _answer(self, item: Arrived, body: bytes) -> None:
        self._note_end(item)
        item.response = body
        item.protocol.response_bytes(200, [("x-number", str(self.arrived.index(item)))], body)

    def _note_end(self, item: Arrived) -> None:
        item.answered = True
        self._note_head(item)

    def _note_head(self, item: Arrived) -> None:
        """Note that the response begins or ends. Ahead of the body of its request, it may end the connection."""
        unread = item.sent.method == "POST" and (item.sent.at_once or item.read != item.sent.body)
        self.may_close = self.may_close or unread or self.pushed < item.sent.end

    def _take_body(self, item: Arrived) -> None:
        """Compare what the application has read with what the client has sent."""
        try:
            if item.whole is not None and item.whole.done():
                future, item.whole = item.whole, None
                assert future.result() == item.sent.body[len(item.read) :]
                item.read = item.sent.body
            if item.part is not None and item.part.done():
                future, item.part = item.part, None
                item.read += future.result()
                assert item.sent.body.startswith(item.read)
        except ClosedError:
            assert self.half_closed or self.gone or self.cut
        except StopAsyncIteration:
            assert item.read == item.sent.body

    @precondition(lambda self: self.running is not None)
    @rule(whole=st.booleans(), received=st.booleans())
    def read(self, whole: bool, received: bool = False) -> None:
        """Read the whole body or its next part; received: the whole one only if it is there already."""
        item = self.running
        assert item is not None
        if item.whole is None and item.part is None:
            try:
                body = item.protocol.received_body() if whole and not item.read and received else None
                if body is not None:
                    assert body == item.sent.body
                    item.read = body
                elif whole and not item.read:
                    item.whole = item.protocol()
                elif not whole:
                    item.part = item.protocol.__anext__()
            except StopAsyncIteration:
                assert item.read == item.sent.body
        self.turn()

    @precondition(lambda self: self.running is not None)
    @rule()
    def watch(self) -> None:
        item = self.running
        assert item is not None
        if item.left is None:
            item.left = item.protocol.client_disconnect()
        self.turn()

    @precondition(lambda self: self.running is not None and self.running.writer is None)
    @rule(size=SIZES, turned=st.booleans())
    def answer(self, size: int, turned: bool = True) -> None:
        """Answer the request; turned: the turn of the event loop ends before the next step."""
        assert self.running is not None
        self._answer(self.running, b"a" * size)
        if turned:
            self.turn()

    @precondition(lambda self: self.running is not None and self.running.writer is None)
    @rule(stated=st.none() | SIZES)
    def begin_response(self, stated: int | None) -> None:
        item = self.running
        assert item is not None
        item.stated = stated
        self._note_head(item)
        length = [] if stated is None else [("content-length", str(stated))]
        item.writer = item.protocol.response_stream(200, [("x-number", str(self.arrived.index(item))), *length])
        self.turn()

    @precondition(lambda self: self.running is not None and self.running.writer is not None)
    @rule(size=SIZES)
    def send_part(self, size: int) -> None:
        item = self.running
        assert item is not None
        assert item.writer is not None
        part = b"p" * (size if item.stated is None else min(size, item.stated - len(item.response)))
        if item.writer.send_bytes(part):
            item.response += part
        else:
            assert self.gone or self.cut
        self.turn()

    @precondition(lambda self: self.running is not None and self.running.writer is not None)
    @rule(aborted=RARE)
    def end_response(self, aborted: int) -> None:
        item = self.running
        assert item is not None
        assert item.writer is not None
        short = item.stated is not None and len(item.response) < item.stated and item.sent.method != "HEAD"
        self.cut = self.cut or short or aborted == 0
        self._note_end(item)
        (item.writer.abort if aborted == 0 else item.writer.close)()
        self.turn()

    # The client

    @precondition(lambda self: not self.half_closed and not self.gone)
    @rule(method=st.sampled_from(["GET", "HEAD", "POST"]), size=SIZES, chunked=st.booleans(), at_once=st.booleans())
    def request(self, method: str, size: int, chunked: bool, at_once: bool) -> None:
        """Prepare a request, which `push` sends."""
        body = b"b" * size if method == "POST" else b""
        head = f"{method} /{len(self.sent)} HTTP/1.1\r\nHost: here\r\n"
        if method == "POST" and chunked:
            parts = [body[at : at + 50_000] for at in range(0, size, 50_000)]
            framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            head += "Transfer-Encoding: chunked\r\n"
        else:
            framed = body
            head += f"Content-Length: {size}\r\n" if method == "POST" else ""
        self.unsent += head.encode() + b"\r\n" + framed
        self.sent.append(Sent(method, body, self.pushed + len(self.unsent), at_once))

    @precondition(lambda self: self.unsent and not self.half_closed and not self.gone)
    @rule(most=st.sampled_from([1, 60, 40_000, 1_000_000]))
    def push(self, most: int) -> None:
        try:
            count = self.client.send(self.unsent[:most])
        except BlockingIOError:
            count = 0
        except (BrokenPipeError, ConnectionResetError):
            self._lose()
            return
        del self.unsent[:count]
        self.pushed += count
        self.turn()

    @precondition(lambda self: not self.gone)
    @rule(most=st.sampled_from([100, 1_000_000]))
    def receive(self, most: int) -> None:
        with suppress(BlockingIOError, ConnectionResetError):
            self.received += self.client.recv(most)
        self.turn()

    @precondition(lambda self: not self.half_closed and not self.gone)
    @rule(chance=RARE)
    def stop_sending(self, chance: int) -> None:
        if chance == 0:
            self.half_closed = self.may_close = True
            with suppress(OSError):
                self.client.shutdown(socket.SHUT_WR)
            self.turn()

    @rule(chance=RARE)
    def leave(self, chance: int) -> None:
        if chance == 0:
            self.gone = self.may_close = True
            self.client.close()
            self.turn()

    def _lose(self) -> None:
        """Note that the server has closed the connection, which needs a reason."""
        assert self.may_close or self.cut
        self.half_closed = True

    # The server

    @rule(chance=RARE)
    def announce_end(self, chance: int) -> None:
        if chance == 0:
            self.server.closing = self.may_close = True

    @rule(chance=RARE)
    def end_idle(self, chance: int) -> None:
        if chance == 0:
            self.may_close = True
            self.server.end_idle()
            self.turn()

    @rule()
    def check(self) -> None:
        self.server.check()
        self.turn()

    # What holds after each step

    @invariant()
    def invariants_hold(self) -> None:
        assert invariant_violations(self.connection) == []

    def teardown(self) -> None:
        try:
            if self.gone:
                self._notice_client_gone()
            else:
                self._finish()
        finally:
            self.client.close()
            self.server.abort()
            self._settle(lambda: bool(self.ended))
            self.loop.close()

    def _settle(self, done: Callable[[], bool]) -> None:
        """Turn the loop until `done` holds, for at most ten seconds."""
        end = self.loop.time() + 10
        while not done():
            assert self.loop.time() < end, "nothing happens any more"
            self.turn()

    def _notice_client_gone(self) -> None:
        """Wait until the connection has ended because its client has left."""
        item = self.running
        # Reading is paused if a body is not read, or if there is much behind the request.
        if item is not None and item.left is not None and item.sent.method != "POST":
            left = item.left
            if self.pushed - item.sent.end < 60_000:
                self._settle(left.done)

        def has_ended() -> bool:
            self._end_response()
            return bool(self.ended)

        self._settle(has_ended)

    def _end_response(self) -> None:
        """Complete the response that the client waits for, if there is one."""
        if self.running is not None:
            if self.running.writer is None:
                self.answer(5)
            else:
                self.end_response(1)

    def _finish(self) -> None:
        """Send, answer and receive everything; then compare what the client has received with what was sent."""

        def is_over() -> bool:
            if self.unsent and not self.half_closed:
                self.push(1_000_000)
            self._end_response()
            self.receive(1_000_000)
            responses, rest = self._responses()
            everything = all(item.answered for item in self.arrived) and len(responses) == len(self.arrived)
            sent = len(self.arrived) == len(self.sent) or self.may_close
            return (everything and sent and not rest) or self.cut

        self._settle(is_over)
        responses, rest = self._responses()
        for item, response in zip(self.arrived, responses, strict=False):
            assert response == (b"" if item.sent.method == "HEAD" else item.response)
        if not self.cut:
            assert rest == b""

    def _responses(self) -> tuple[list[bytes], bytes]:
        """Return the bodies of the complete responses that the client has received, and the bytes behind them."""
        bodies: list[bytes] = []
        rest = self.received
        while len(bodies) < len(self.arrived):
            head, end, behind = rest.partition(b"\r\n\r\n")
            if not end:
                break
            assert head.startswith(b"HTTP/1.1 200 ")
            headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
            assert int(headers[b"x-number"]) == len(bodies), "responses come in the order of the requests"
            body: bytes | None = b""
            if self.arrived[len(bodies)].sent.method != "HEAD":
                if b"content-length" in headers:
                    length = int(headers[b"content-length"])
                    body, behind = (behind[:length], behind[length:]) if len(behind) >= length else (None, b"")
                else:
                    body, behind = _unchunked(behind)
            if body is None:
                break
            bodies.append(body)
            rest = behind
        return bodies, rest


def _unchunked(data: bytes) -> tuple[bytes | None, bytes]:
    """Return the body in chunks at the beginning of `data`, or None if it is incomplete, and the bytes behind it."""
    body = b""
    while True:
        line, end, data = data.partition(b"\r\n")
        size = int(line, 16) if end else 0
        if not end or len(data) < size + 2:
            return None, b""
        body += data[:size]
        data = data[size + 2 :]
        if size == 0:
            return body, data


TestConnectionModel = ConnectionModel.TestCase
TestConnectionModel.settings = settings(max_examples=examples(400), stateful_step_count=40, deadline=None)


def test_an_incomplete_body_ends_the_read_of_a_delayed_request() -> None:
    model = ConnectionModel()
    model.request("GET", 0, False, False)
    model.request("POST", 700, False, False)
    model.push(len(model.unsent) - 1)
    model.stop_sending(0)
    model.answer(1)
    model.read(True)
    assert model.arrived[1].whole is None, "the read waits for a client that sends nothing any more"
    assert invariant_violations(model.connection) == []
    model.teardown()


def test_an_early_response_announces_the_end_of_the_connection() -> None:
    model = ConnectionModel()
    model.request("POST", 0, True, False)
    model.request("GET", 0, False, False)
    model.push(model.sent[0].end - len(b"0\r\n\r\n"))
    model.begin_response(None)
    model.push(len(model.unsent))
    model.end_response(1)
    model.receive(1_000_000)
    assert b"\r\nconnection: close\r\n" in model.received
    assert len(model.arrived) == 1
    assert model.client.recv(1) == b""
    model.teardown()
