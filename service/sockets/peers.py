"""Find the connections of this process by their client address, since granian does not provide its sockets."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import stat
from collections.abc import Iterator

_ZONE = re.compile(r"%[^\]]*")


def duplicate_sockets() -> Iterator[socket.socket]:
    """Yield a duplicate of every socket of this process. The caller closes it. Ends early if no descriptor is free."""
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError, ValueError):
                if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                    yield socket.socket(fileno=os.dup(int(name)))


def client_of(connection: socket.socket) -> str:
    """Return the client of a TCP connection as `host:port`, in the form of `without_zone`. Raises OSError for a socket
    that is not connected, such as a listening one."""
    host, port = connection.getpeername()[:2]
    return without_zone(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def without_zone(client: str) -> str:
    """Return a client (`host:port`) without the zone of its link-local address, with which granian writes it and Python
    does not (RFC 4007, 11)."""
    return _ZONE.sub("", client) if "%" in client else client


def is_with(connection: socket.socket, client: str) -> bool:
    """Return whether the peer of a connection is `client` (`host:port`). Raises OSError for a socket that is not
    connected, such as a listening one."""
    if connection.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    return client_of(connection) == without_zone(client)


class Presence:
    """Whether one client (`host:port`) is still connected: granian closes the connection of a client that has
    disconnected.

    If the connection cannot be identified, as with Unix sockets, the client counts as connected.
    """

    def __init__(self, client: str) -> None:
        self._client = client
        self._descriptor = -1

    def is_disconnected(self) -> bool:
        """Return whether the connection of the client is closed; False if this cannot be determined."""
        if ":" not in self._client:
            return False
        if self._descriptor >= 0 and self._is_at(self._descriptor):
            return False
        # The descriptor is stored, because a search takes milliseconds with thousands of connections.
        self._descriptor = self._find()
        return self._descriptor < 0

    def _find(self) -> int:
        """Return the descriptor of the client's connection; -1: there is none; 0: this cannot be determined now."""
        try:
            numbers = [int(name) for name in os.listdir("/dev/fd")]
        except OSError:
            return 0  # no descriptor is free for the search; count as connected and search again later
        return next((number for number in numbers if self._is_at(number)), -1)

    def _is_at(self, number: int) -> bool:
        """Return whether the descriptor with this number is the connection of the client."""
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
