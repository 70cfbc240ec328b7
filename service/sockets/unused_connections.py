"""Close unused client connections, with one timer for all of them.

granian has a timeout only for the head of a request of HTTP/1.1 without TLS. It waits without limit for everything
else: the first bytes, the rest of an HTTP/2 preface, a request after SETTINGS or after the last response, the end of
headers in CONTINUATION frames, the rest of a body. These connections count as open, so without this module a few
clients could use up the limit of connections.

A connection is unused if none of its requests is being processed, and nothing has been sent to the client for the
timeout. Data from the client does not count, since a byte now and then would keep the connection open forever. If all
requests wait for the rest of a body, only data from the client counts.
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
from rowcall.service.sockets.peers import client_of, duplicate_sockets, without_zone

KNOWS = sys.platform == "linux"
"""Whether sockets report the time since they sent and received data; only Linux does."""

_TCP_INFO = struct.Struct("=44xI4xI")
"""Part of `struct tcp_info` of Linux: milliseconds since data was sent and since data was received; without data, since
the connection was opened."""

LOOKS = 8
"""Number of checks within the timeout of an unused connection."""


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients with requests in progress, as `host:port`.

    busy: at least one request is being processed. sending: all requests wait for the rest of a body.
    """

    busy: frozenset[str]
    sending: frozenset[str]


async def close_unused(
    listeners: Iterable[Listener], seconds: float, unread: float, clients: Callable[[], Clients]
) -> None:
    """Check the connections of `listeners` periodically in a thread, and close unused ones. Never returns. On other
    systems than Linux, and for Unix sockets, it closes nothing.

    seconds: timeout of an unused connection. unread: timeout of a client that does not read the data sent to it.
    clients: returns the clients with requests in progress.
    """
    ports = frozenset(port for listener in listeners if (port := _port(listener)) is not None)
    if not KNOWS or not ports:
        await asyncio.Event().wait()  # nothing can be checked; wait until cancelled
    loop = asyncio.get_running_loop()
    checks = _Looks(ports, seconds, unread)
    while True:
        await asyncio.sleep(max(0.1, seconds / LOOKS))
        await loop.run_in_executor(None, checks.look, clients())


def _port(listener: Listener) -> int | None:
    """Return the port of a listener; None for Unix sockets, whose clients are on the same machine."""
    if listener.unix:
        return None
    with socket.socket(fileno=os.dup(listener.fd)) as listening:
        port: int = listening.getsockname()[1]
        return port


class _Looks:
    """Repeated checks of the connections on some ports. seconds, unread: as for `close_unused`."""

    def __init__(self, ports: frozenset[int], seconds: float, unread: float) -> None:
        self._ports = ports
        self._seconds = seconds
        self._unread = unread
        self._suspects: set[int] = set()
        """Inodes of sockets that were unused at the last check. A request may arrive while the state is read, so only a
        connection that is unused twice in a row is closed."""

    def look(self, clients: Clients) -> None:
        """Close the connections that are unused and were so at the last check. clients: those with requests in progress
        now.
        """
        previous, self._suspects = self._suspects, set()
        clients = Clients(frozenset(map(without_zone, clients.busy)), frozenset(map(without_zone, clients.sending)))
        for connection in duplicate_sockets():
            with connection, contextlib.suppress(OSError):
                if not self._is_unused(connection, clients):
                    continue
                identity = os.fstat(connection.fileno()).st_ino
                if identity in previous:
                    connection.shutdown(socket.SHUT_RDWR)
                else:
                    self._suspects.add(identity)

    def _is_unused(self, connection: socket.socket, clients: Clients) -> bool:
        """Return whether a connection is unused. False if one of its requests is being processed, and for sockets that
        are no client connections of the ports. Raises `OSError` for a socket that is not connected.

        It is unused if no data was sent to the client for `seconds`, or for `unread` if the client has not acknowledged
        all data. While all requests wait for the rest of a body, it is unused if none was received for `seconds`.

        clients: those with requests in progress now, without their zones.
        """
        if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
            return False
        if connection.getsockname()[1] not in self._ports:
            return False
        client = client_of(connection)  # raises OSError for a listening socket
        if client in clients.busy:
            return False
        sent, received = _since(connection)
        if client in clients.sending:
            return received > self._seconds
        return sent > (self._unread if _unread(connection) else self._seconds)


def _since(connection: socket.socket) -> tuple[float, float]:
    """Return the seconds since data was sent, and since data was received."""
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    sent, received = _TCP_INFO.unpack(info)
    return sent / 1000, received / 1000


def _unread(connection: socket.socket) -> int:
    """Return the number of sent bytes that the client has not acknowledged."""
    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"), sys.byteorder)
