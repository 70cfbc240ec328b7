"""Closes connections on which nothing happens: one clock for all of them.

granian watches only HTTP/1.1 without TLS, and there only the head of a request. Everything else it waits for without
end: the first bytes, the rest of a preface of HTTP/2, a request after SETTINGS or behind the last answer, the end of
headers in CONTINUATION frames, the rest of a body. All of these count among the open connections, so without this a few
clients could use up all there may be.

A connection is unused when no request of it is being worked on, and nothing has been sent to it for a while. What the
client sends does not count: a byte now and then would keep it open for ever. Where a body is on its way it is the
client's turn, so there only what it sends counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import socket
import struct
import sys
import termios
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rowcall.service.sockets.listeners import Listener
from rowcall.service.sockets.peers import own_sockets

KNOWS = sys.platform == "linux"
"""Elsewhere a socket does not tell when it has sent and received."""

_TCP_INFO = struct.Struct("=44xI4xI")
"""Of Linux' `struct tcp_info`: milliseconds since data was sent and since data came, or since it was opened."""

LOOKS = 8
"""In the time that a connection may be unused."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Whose requests are being worked on, as `host:port`.

    busy: at least one is. sending: all that there are wait for the rest of a body.
    """

    busy: frozenset[str]
    sending: frozenset[str]


async def close_unused(
    listeners: Iterable[Listener], seconds: float, unread: float, clients: Callable[[], Clients]
) -> None:
    """Looks again and again, in a thread, at the connections of `listeners`.

    seconds: how long one may be unused. unread: how long a client may leave unread what it was sent.
    """
    ports = frozenset(port for listener in listeners if (port := _port(listener)) is not None)
    if not KNOWS or not ports:
        await asyncio.Event().wait()  # there will never be anything to close
    loop = asyncio.get_running_loop()
    looks = _Looks(ports, seconds, unread)
    while True:
        await asyncio.sleep(max(0.1, seconds / LOOKS))
        await loop.run_in_executor(None, looks.look, clients())


def _port(listener: Listener) -> int | None:
    """None for Unix sockets: clients are our own neighbours there."""
    if listener.unix:
        return None
    with socket.socket(fileno=os.dup(listener.fd)) as listening:
        port: int = listening.getsockname()[1]
        return port


class _Looks:
    def __init__(self, ports: frozenset[int], seconds: float, unread: float) -> None:
        self._ports = ports
        self._seconds = seconds
        self._unread = unread
        self._suspects: set[int] = set()
        """Sockets that were unused at the last look. A request may have come in the moment between two questions, so
        only what is unused twice in a row is closed."""

    def look(self, clients: Clients) -> None:
        before, self._suspects = self._suspects, set()
        for connection in own_sockets():
            with connection, contextlib.suppress(OSError):
                if not self._is_unused(connection, clients):
                    continue
                identity = os.fstat(connection.fileno()).st_ino
                if identity in before:
                    connection.shutdown(socket.SHUT_RDWR)
                else:
                    self._suspects.add(identity)

    def _is_unused(self, connection: socket.socket, clients: Clients) -> bool:
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return False
        if connection.getsockname()[1] not in self._ports:
            return False
        host, port = connection.getpeername()[:2]  # raises for those that listen
        names = {f"{host}:{port}", f"[{host}]:{port}"}
        if names & clients.busy:
            return False
        sent, received = _since(connection)
        if names & clients.sending:
            return received > self._seconds
        return sent > (self._unread if _unread(connection) else self._seconds)


def _since(connection: socket.socket) -> tuple[float, float]:
    """Seconds since data was sent, and since data came."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    sent, received = _TCP_INFO.unpack(info)
    return sent / 1000, received / 1000


def _unread(connection: socket.socket) -> int:
    """Bytes that the client has not taken yet."""
    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"), sys.byteorder)
