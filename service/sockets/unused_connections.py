"""Closes connections that never send anything.

granian finds out by the first bytes which version of HTTP a connection speaks, and waits for them without end. Such
connections count like any other, so without this a client could use up all there may be by opening them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterable, Iterator

from rowcall.service.sockets.listeners import Listener

KNOWS = sys.platform == "linux"
"""Elsewhere a socket does not tell how much it has received."""

_TCP_INFO = struct.Struct("=52xI72xQ")
"""Of Linux' `struct tcp_info`: milliseconds since data came, or since the connection was made, and bytes received."""


async def close_unused(listeners: Iterable[Listener], seconds: float) -> None:
    """Looks again and again, in a thread, for those of `listeners` that have been silent for so long."""
    ports = {port for listener in listeners if (port := _port(listener)) is not None}
    if not KNOWS or not ports:
        await asyncio.Event().wait()  # there will never be anything to close
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(max(0.25, seconds / 2))
        await loop.run_in_executor(None, _close, frozenset(ports), seconds)


def _port(listener: Listener) -> int | None:
    """None where granian watches by itself: HTTP/1.1 alone, without TLS. And where clients are our own neighbours."""
    if listener.unix or (listener.protocols == "1" and not listener.secure):
        return None
    with socket.socket(fileno=os.dup(listener.fd)) as listening:
        port: int = listening.getsockname()[1]
        return port


def _close(ports: frozenset[int], seconds: float) -> None:
    for connection in own_sockets():
        with connection, contextlib.suppress(OSError):
            if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.getsockname()[1] not in ports:
                continue
            connection.getpeername()  # raises for those that listen
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
            silence, received = _TCP_INFO.unpack(info)
            if received == 0 and silence > seconds * 1000:
                connection.shutdown(socket.SHUT_RDWR)


def own_sockets() -> Iterator[socket.socket]:
    """Every socket of this process, as another descriptor of it."""
    for name in os.listdir("/dev/fd"):
        with contextlib.suppress(OSError, ValueError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                yield socket.socket(fileno=os.dup(int(name)))
