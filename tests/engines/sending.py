"""Sends streams to a service, many at a time, each on a connection of its own.

A stream is over when the service has closed the connection, or has been silent for a time. Every piece is sent after a
pause, so that the service mostly reads it alone.
"""

from __future__ import annotations

import heapq
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.engines.outcomes import Outcome, Outcomes
from tests.engines.streams import Stream

PAUSE = 0.006
"""Between the pieces of a stream, in seconds."""
_RESET = struct.pack("ii", 1, 0)
"""Closing sends a reset, so that no connection stays in TIME_WAIT."""


@dataclass(slots=True)
class _Sending:
    """A stream on its way to one service."""

    stream: Stream
    connection: socket.socket
    deadline: float = 0.0
    sent: int = 0
    received: list[bytes] = field(default_factory=list)
    ended: bool = False


class Sender:
    """Sends to one service. silence: seconds without a byte after which a stream is over; most: streams at a time."""

    def __init__(self, port: int, silence: float, most: int) -> None:
        self._port = port
        self._silence = silence
        self._most = most
        self._poll = select.epoll()
        self._running: dict[int, _Sending] = {}
        self._due: list[tuple[float, int, _Sending]] = []
        self._outcomes = Outcomes()
        self._count = 0
        self.finished: dict[tuple[int, int], Outcome] = {}
        """Outcomes by number and part of the stream; the reader removes them."""

    @property
    def full(self) -> bool:
        return len(self._running) >= self._most

    @property
    def idle(self) -> bool:
        return not self._running

    def start(self, stream: Stream) -> None:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect(("127.0.0.1", self._port))
        connection.setblocking(False)
        sending = _Sending(stream, connection)
        self._running[connection.fileno()] = sending
        self._poll.register(connection.fileno(), select.EPOLLIN)
        self._send(sending)

    def run(self, timeout: float) -> None:
        """Receive what there is, and send what is due. timeout: seconds to wait for something to receive."""
        for descriptor, _ in self._poll.poll(timeout, 512):
            self._receive(self._running[descriptor])
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            sending = heapq.heappop(self._due)[2]
            if sending.ended:
                continue
            if sending.sent < len(sending.stream.pieces):
                self._send(sending)
            elif sending.deadline <= now:
                self._finish(sending)
            else:
                self._schedule(sending.deadline, sending)

    def _schedule(self, moment: float, sending: _Sending) -> None:
        self._count += 1
        heapq.heappush(self._due, (moment, self._count, sending))

    def _send(self, sending: _Sending) -> None:
        piece = sending.stream.pieces[sending.sent]
        sending.sent += 1
        try:
            sending.connection.send(piece)
        except OSError:
            # Closed by the service; what it has sent before is still received.
            sending.sent = len(sending.stream.pieces)
        now = time.monotonic()
        sending.deadline = now + self._silence
        self._schedule(now + PAUSE if sending.sent < len(sending.stream.pieces) else sending.deadline, sending)

    def _receive(self, sending: _Sending) -> None:
        try:
            data = sending.connection.recv(65_536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            sending.received.append(data)
            sending.deadline = time.monotonic() + self._silence
            return
        sending.ended = True
        self._finish(sending)

    def _finish(self, sending: _Sending) -> None:
        descriptor = sending.connection.fileno()
        self._poll.unregister(descriptor)
        del self._running[descriptor]
        sending.connection.close()
        stream = sending.stream
        outcome = self._outcomes.parse(b"".join(sending.received), ended=sending.ended)
        sending.ended = True
        self.finished[stream.number, stream.part] = outcome


def outcomes(
    ports: tuple[int, int], streams: Iterable[Stream], *, silence: float, most: int
) -> Iterator[tuple[Stream, Outcome, Outcome]]:
    """Send each stream to both services and yield it with both outcomes, in the order in which the later one came."""
    senders = tuple(Sender(port, silence, most) for port in ports)
    first, second = senders
    waiting = iter(streams)
    running: dict[tuple[int, int], Stream] = {}
    more = True
    while more or running:
        while more and not first.full and not second.full:
            stream = next(waiting, None)
            if stream is None:
                more = False
                break
            running[stream.number, stream.part] = stream
            for sender in senders:
                sender.start(stream)
        for sender in senders:
            sender.run(0.001)
        for key in [key for key in first.finished if key in second.finished]:
            yield running.pop(key), first.finished.pop(key), second.finished.pop(key)
