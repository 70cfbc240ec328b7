"""A load generator of our own: for machines without wrk, and for what wrk cannot do.

One thread, one epoll, keep-alive HTTP/1.1, and every response compared with the expected body. It counts what it sent
and what came back, so that a lost request shows, and it can hold a given rate: then a latency runs from the moment the
request was due, not from the moment a busy service let it out (no coordinated omission).
"""

from __future__ import annotations

import re
import select
import socket
import time
from array import array
from dataclasses import dataclass, field

READ = 1 << 18
GRACE = 10.0
LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send, what to send as raw bytes, and the body that has to come back."""

    host: str
    port: int
    request: bytes
    expected: bytes


@dataclass(slots=True)
class Tally:
    """What happened. `lost` counts requests whose connection ended or that stayed unanswered after the grace period."""

    sent: int = 0
    answered: int = 0
    wrong: int = 0
    lost: int = 0
    seconds: float = 0.0
    latencies: array[float] = field(default_factory=lambda: array("d"))

    def percentile(self, share: float) -> float:
        """Milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


@dataclass(slots=True)
class Connection:
    """One keep-alive connection; `due` is the moment its request in flight was to be sent, None when it is idle."""

    target: Target
    peer: socket.socket
    due: float | None = None
    received: bytes = b""

    def send(self, due: float) -> None:
        self.due = due
        self.received = b""
        self.peer.sendall(self.target.request)


def raw_request(method: str, path: str, host: str, body: bytes) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n"
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def body_of(received: bytes) -> bytes | None:
    """The body of a whole response, None while bytes are missing. The framing is content-length or chunked.

    Bytes behind the end were never asked for; they stay on the body, which makes it a wrong one.
    """
    head, blank, rest = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    if CHUNKED.search(head):
        return joined_chunks(rest)
    length = LENGTH.search(head)
    size = int(length[1]) if length else 0
    return rest if len(rest) >= size else None


def joined_chunks(rest: bytes) -> bytes | None:
    # Looking at the end first keeps a large body from being parsed again for each packet.
    if not rest.endswith(b"\r\n\r\n"):
        return None
    parts: list[bytes] = []
    position = 0
    while True:
        line_end = rest.find(b"\r\n", position)
        if line_end < 0:
            return None
        size = int(rest[position:line_end].partition(b";")[0], 16)
        if size == 0:
            return b"".join(parts) + rest[line_end + 4 :]
        parts.append(rest[line_end + 2 : line_end + 2 + size])
        position = line_end + 4 + size


class Generator:
    """Drives the connections; `rate` is requests per second over all of them, None for as fast as answers come back."""

    def __init__(self, target: Target, connections: int, rate: float | None = None) -> None:
        self.target = target
        self.interval = 1 / rate if rate else None
        self.tally = Tally()
        self.poller = select.epoll()
        self.connections: dict[int, Connection] = {}
        self.idle: list[Connection] = []
        for _ in range(connections):
            self.open()

    def open(self) -> None:
        peer = socket.create_connection((self.target.host, self.target.port), GRACE)
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(self.target, peer)
        self.connections[peer.fileno()] = connection
        self.poller.register(peer, select.EPOLLIN)
        self.idle.append(connection)

    def run(self, seconds: float) -> Tally:
        start = time.perf_counter()
        deadline = start + seconds
        due = start
        while (now := time.perf_counter()) < deadline:
            due = self.send_what_is_due(now, due)
            # epoll rounds its timeout up to a millisecond, select does not; an epoll is itself selectable.
            wait = min(max(due - now, 0.0), 0.1) if self.interval and self.idle else 0.1
            select.select([self.poller], [], [], wait)
            self.receive(0.0)
        self.tally.seconds = time.perf_counter() - start
        self.drain()
        return self.tally

    def send_what_is_due(self, now: float, due: float) -> float:
        """Send on idle connections; gives back when the next request is due."""
        while self.idle and (self.interval is None or due <= now):
            self.idle.pop().send(now if self.interval is None else due)
            self.tally.sent += 1
            due = due + self.interval if self.interval else due
        return due

    def receive(self, wait: float) -> None:
        for descriptor, _ in self.poller.poll(wait):
            connection = self.connections[descriptor]
            try:
                data = connection.peer.recv(READ)
            except ConnectionError:
                data = b""
            if not data:
                self.replace(descriptor)
                continue
            connection.received = connection.received + data if connection.received else data
            self.finish_if_whole(connection)

    def finish_if_whole(self, connection: Connection) -> None:
        body = body_of(connection.received)
        if body is None:
            return
        if connection.due is None:
            # Bytes nobody asked for: an answer given twice is as wrong as a false one.
            self.tally.wrong += 1
            return
        self.tally.answered += 1
        self.tally.latencies.append(time.perf_counter() - connection.due)
        if body != self.target.expected or not connection.received.startswith(b"HTTP/1.1 200"):
            self.tally.wrong += 1
        connection.due = None
        self.idle.append(connection)

    def replace(self, descriptor: int) -> None:
        """The service closed a connection: with a request in flight that request is lost."""
        connection = self.connections.pop(descriptor)
        self.poller.unregister(descriptor)
        connection.peer.close()
        if connection.due is None:
            self.idle.remove(connection)
        else:
            self.tally.lost += 1
        self.open()

    def drain(self) -> None:
        """Wait for what is in flight; what does not come back is lost."""
        until = time.perf_counter() + GRACE
        while self.in_flight() and time.perf_counter() < until:
            self.receive(0.1)
        self.tally.lost += self.in_flight()
        for connection in self.connections.values():
            connection.peer.close()
        self.poller.close()

    def in_flight(self) -> int:
        return sum(connection.due is not None for connection in self.connections.values())
