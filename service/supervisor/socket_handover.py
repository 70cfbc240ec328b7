"""Socket hand-over for a zero-downtime restart: a new process gets the listening sockets of the running one, over a
Unix socket.

Both then share one queue of connections, so at every moment a process accepts them. Sharing the port instead
(SO_REUSEPORT) gives each process a queue of its own; the connections in that of the old one are reset when it is
closed.

The new process connects, gets the sockets, starts, and reports when it serves. Then the old one closes its hand-over
socket and shuts down gracefully. If the new one fails before that, nothing changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import stat
import struct
from collections.abc import Callable

from rowcall.service.sockets.inherited_sockets import InheritedSockets
from rowcall.service.sockets.listeners import Listeners
from rowcall.service.startup_error import StartupError

log = logging.getLogger("rowcall")

_HELLO = b"rowcall handover 1"
_SERVING = b"serving"
_YOURS = b"yours"
_PART = struct.Struct("!I?")
"""Number of sockets that follow, and whether they stay open elsewhere when all our processes end."""
_MOST_DESCRIPTORS = 250
"""Descriptors in one message (SCM_MAX_FD of Linux is 253)."""
_TIMEOUT = 5.0
"""Seconds to wait for the other process."""
_CREDENTIALS = struct.Struct("3i")


def _owner(connection: socket.socket) -> int:
    """Return the user id of the process at the other end."""
    result = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(result)[1]
    return user


def _is_trusted(connection: socket.socket) -> bool:
    """Return whether the process at the other end belongs to the user of this one, or to root."""
    return _owner(connection) in (os.geteuid(), 0)


class PreviousProcess:
    """The previous process, seen from the one that replaces it."""

    def __init__(self, connection: socket.socket, inherited: InheritedSockets) -> None:
        self._connection = connection
        self.inherited = inherited

    @classmethod
    def at(cls, path: str) -> PreviousProcess | None:
        """Get the sockets of the process whose hand-over socket is at this path; None if there is none. Raises
        `StartupError` if the socket cannot be opened, or the process does not hand over."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(_TIMEOUT)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            return None
        except OSError as error:
            connection.close()
            raise StartupError(
                f"HttpServer:HandoverSocket: {path} cannot be opened: {error.strerror or error}"
            ) from None
        try:
            return cls(connection, _receive_sockets(connection))
        except OSError as error:
            connection.close()
            raise StartupError(
                f"HttpServer:HandoverSocket: the process at {path} does not hand over its sockets "
                f"({error or 'no answer'}); perhaps another process is already taking over"
            ) from None

    async def report_serving(self) -> None:
        """Report to the previous process that this one serves, and wait until it has closed its hand-over socket, at
        most `_TIMEOUT` seconds.
        """
        loop = asyncio.get_running_loop()
        self._connection.setblocking(False)
        with self._connection, contextlib.suppress(OSError):
            async with asyncio.timeout(_TIMEOUT):
                await loop.sock_sendall(self._connection, _SERVING)
                await loop.sock_recv(self._connection, 64)


def _receive_sockets(connection: socket.socket) -> InheritedSockets:
    """Request the sockets and return them. Raises `OSError` if the other process is not trusted (`_is_trusted`), or
    ends."""
    if not _is_trusted(connection):
        raise PermissionError("it belongs to another user")
    connection.sendall(_HELLO)
    sockets: list[socket.socket] = []
    while True:
        packet, descriptors, _, _ = socket.recv_fds(connection, 64, _MOST_DESCRIPTORS)
        if len(packet) != _PART.size:
            raise ConnectionError("it has ended")
        sockets += [socket.socket(fileno=descriptor) for descriptor in descriptors]
        follow, stay = _PART.unpack(packet)
        if not follow:
            return InheritedSockets.of(sockets, stay=stay, required=False)


async def _answer(connection: socket.socket) -> bytes:
    """Return the message of the successor; empty if it has ended. An end with unread packets resets the connection, and
    gives the same result."""
    try:
        return await asyncio.get_running_loop().sock_recv(connection, 64)
    except ConnectionResetError:
        return b""


class SuccessorListener:
    """Hands the sockets to a successor. path: of the Unix socket. on_successor: called once, when it serves."""

    def __init__(self, path: str, listeners: Listeners, on_successor: Callable[[], None]) -> None:
        self._path = path
        self._listeners = listeners
        self._on_successor = on_successor
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Open the Unix socket, in place of one that is at the path already. Raises StartupError."""
        item = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        before = os.umask(0o177)  # for the owner alone, from the first moment
        try:
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISSOCK(os.stat(self._path).st_mode):
                    os.unlink(self._path)  # the process that used it has ended, or has handed over
            item.bind(self._path)
            item.listen()
            item.setblocking(False)
        except OSError as error:
            item.close()
            raise StartupError(
                f"HttpServer:HandoverSocket: {self._path} cannot be created: {error.strerror or error}"
            ) from None
        finally:
            os.umask(before)
        self._socket = item

    def close(self) -> None:
        """Delete the path and close the socket. Has no effect if it is not open."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            self._socket.close()
            self._socket = None

    async def run(self) -> None:
        """Serve one successor at a time, until one has taken over."""
        loop = asyncio.get_running_loop()
        while self._socket is not None:
            connection, _ = await loop.sock_accept(self._socket)
            connection.setblocking(False)
            with connection:
                try:
                    await self._hand_over(connection)
                except OSError as error:
                    log.warning("the listening sockets could not be handed over: %s", error)

    async def _hand_over(self, connection: socket.socket) -> None:
        """Send the sockets to a successor, and wait until it serves or has ended. If it serves, this process closes its
        hand-over socket, gives the listening sockets away, and calls `on_successor`. A process that is not trusted
        (`_is_trusted`) gets nothing, which is logged. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        if not _is_trusted(connection):
            log.warning(
                "a process of user %d has requested the listening sockets and was refused: it belongs to another user",
                _owner(connection),
            )
            return
        if await loop.sock_recv(connection, 64) != _HELLO:
            return
        self._send_sockets(connection)
        log.info("another process takes over: it has the listening sockets and starts")
        if await _answer(connection) != _SERVING:
            log.warning("the successor has ended before it served; this process goes on serving")
            return
        self.close()
        self._listeners.give_away()
        self._on_successor()
        await loop.sock_sendall(connection, _YOURS)

    def _send_sockets(self, connection: socket.socket) -> None:
        """Send all listening sockets in as many messages as needed. Raises `OSError`."""
        rest = [item.fileno() for item in self._listeners.sockets]
        while True:
            part, rest = rest[:_MOST_DESCRIPTORS], rest[_MOST_DESCRIPTORS:]
            socket.send_fds(connection, [_PART.pack(len(rest), self._listeners.stay)], part)
            if not rest:
                return
