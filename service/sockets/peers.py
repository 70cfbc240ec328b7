"""The connections of this process by who is at the other end, which the HTTP server tells nothing of."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
from collections.abc import Iterator

_ZONE = re.compile(r"%[^\]]*")


def own_sockets() -> Iterator[socket.socket]:
    """Every socket of this process, as another descriptor of it. Empty when there is none left for that."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError, ValueError):
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    yield socket.socket(fileno=os.dup(int(name)))


def is_with(connection: socket.socket, client: str) -> bool:
    """client: `host:port`. Raises OSError for a socket that listens."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    host, port = connection.getpeername()[:2]
    # The interface of a link-local address is a name here, and a number there (RFC 4007, 11).
    host, client = host.partition("%")[0], _ZONE.sub("", client)
    return client in (f"{host}:{port}", f"[{host}]:{port}")


class Presence:
    """Whether a client is there still: the HTTP server closes the connection of one that has left, whatever it was
    sending. Where that cannot be known, as over a Unix socket, everybody is there."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._descriptor = -1

    def ended(self) -> bool:
        if ":" not in self._client:
            return False
        if self._descriptor >= 0 and self._is_at(self._descriptor):
            return False
        # Its number, for the next time: looking at all of them takes milliseconds where there are thousands.
        self._descriptor = self._find()
        return self._descriptor < 0

    def _find(self) -> int:
        try:
            numbers = [int(name) for name in os.listdir("/dev/fd")]
        except OSError:
            return 0  # there is no descriptor left to look with: another time
        return next((number for number in numbers if self._is_at(number)), -1)

    def _is_at(self, number: int) -> bool:
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                return False
            connection = socket.socket(fileno=number)
        except OSError:
            return False
        try:
            return is_with(connection, self._client)
        except OSError:
            return False
        finally:
            connection.detach()
