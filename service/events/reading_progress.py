"""How much of what was sent a client has taken, as its TCP connection tells.

The HTTP server takes whatever a stream is given and keeps it until the client reads it, so that nothing slows a sender
down. What the client has acknowledged is known to the kernel alone. Where that cannot be asked (other systems than
Linux, clients over a Unix socket), every client counts as one that reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import struct
import sys
import time
import weakref

_TCP_INFO = struct.Struct("=120xQ")
"""Of Linux' `struct tcp_info`: bytes that the other side has acknowledged since the connection was made."""
_RESET = struct.pack("ii", 1, 0)
"""Lingering for no time: what is unsent when the connection is closed is dropped."""
_LOOK_AGAIN = 0.2
"""Seconds between two looks at all sockets of the process."""
_DESCRIPTORS = "/proc/self/fd"
_SLICE = 64
"""Descriptors that are looked at in one turn of the loop."""
MOST_UNREAD = 16_777_216
"""Bytes that may be under way on one connection, whichever of its streams they belong to."""
_FRAME, _LARGEST_FRAME = 9, 16_384
"""Bytes of the head of a frame, and of the largest one (RFC 9113, 4.1 and 4.2)."""


class Connections:
    """The TCP connections of this process, found by the address of the client."""

    def __init__(self) -> None:
        """To be made in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._descriptors: dict[str, int] = {}
        self._looked = 0.0
        self._looking = False
        self._unread: weakref.WeakValueDictionary[str, Unread] = weakref.WeakValueDictionary()

    def unread(self, client: str) -> Unread:
        """What the streams of one connection share."""
        response = self._unread.get(client)
        if response is None:
            response = self._unread[client] = Unread()
        return response

    def acknowledged(self, client: str) -> int | None:
        """Bytes since the connection was made; None where it cannot be known, or is not known yet."""
        if sys.platform != "linux" or not client:
            return None
        result = self._ask(client)
        if result is None and not self._looking and time.monotonic() > self._looked + _LOOK_AGAIN:
            self._look()
            result = self._ask(client)
        return result

    def _ask(self, client: str) -> int | None:
        descriptor = self._descriptors.get(client)
        if descriptor is None:
            return None
        with contextlib.suppress(OSError):
            connection = socket.socket(fileno=descriptor)
            try:
                # The number may be another connection's by now.
                if _address(connection) == client:
                    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
                    acknowledged: int = _TCP_INFO.unpack(info)[0]
                    return acknowledged
            finally:
                connection.detach()
        self._descriptors.pop(client, None)
        return None

    def cut(self, client: str) -> None:
        """Ends the connection at once, with a reset: behind what its reader does not take, no end would arrive."""
        if sys.platform != "linux" or not client:
            return
        if self._ask(client) is None:
            self._note(os.listdir(_DESCRIPTORS))
        with contextlib.suppress(OSError, KeyError), socket.socket(fileno=os.dup(self._descriptors[client])) as end:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.shutdown(socket.SHUT_RDWR)

    def _look(self) -> None:
        """At every socket: whoever asks for one will soon ask for others."""
        self._looking = True
        self._look_on(os.listdir(_DESCRIPTORS), {})

    def _look_on(self, names: list[str], found: dict[str, int]) -> None:
        """A slice of them, and then the next one: with thousands of streams all of them take tens of milliseconds, and
        other requests come between."""
        found.update(self._note(names[:_SLICE]))
        if len(names) > _SLICE:
            self._loop.call_soon(self._look_on, names[_SLICE:], found)
            return
        self._descriptors = found
        self._looked = time.monotonic()
        self._looking = False

    def _note(self, names: list[str]) -> dict[str, int]:
        """Those of them that are connections, by the address of the client."""
        result: dict[str, int] = {}
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                descriptor = int(name)
                if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    continue
                with socket.socket(fileno=os.dup(descriptor)) as connection:
                    if connection.family in (socket.AF_INET, socket.AF_INET6):
                        result[_address(connection)] = descriptor
        self._descriptors.update(result)
        return result


def _address(connection: socket.socket) -> str:
    host, port = connection.getpeername()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Unread:
    """Of one connection: how much is under way to its reader. A stream of HTTP/2 that is not read holds up nothing but
    itself, so that what is acknowledged beside it says nothing of what is kept for it.
    """

    __slots__ = ("__weakref__", "_acknowledged", "size")

    def __init__(self) -> None:
        self._acknowledged: int | None = None
        self.size = 0

    def look(self, sent: int, acknowledged: int) -> None:
        """sent: bytes that one of its streams has sent since it was asked for the last time."""
        taken = 0 if self._acknowledged is None else acknowledged - self._acknowledged
        self._acknowledged = acknowledged
        self.size = max(0, self.size + sent - taken)

    def forget(self, sent: int) -> None:
        """A stream has ended, and with it whatever was kept of the bytes that it had sent."""
        self.size = max(0, self.size - sent)


class Progress:
    """Of one stream: how much is under way to its reader.

    What TLS and the framing of HTTP add is acknowledged too, so that this is rather too little than too much while the
    reader reads; once it stops, nothing is acknowledged any more, and every byte counts.
    """

    __slots__ = ("_acknowledged", "_client", "_connections", "_sent", "_unread", "outstanding", "taken")

    def __init__(self, connections: Connections, client: str, *, shares: bool) -> None:
        """shares: its connection may have other streams beside it."""
        self._connections = connections
        self._client = client
        self._acknowledged: int | None = None
        self._unread = connections.unread(client) if shares else None
        self._sent = 0
        self.outstanding = 0
        """Bytes, as of the last `look`."""
        self.taken = True
        """Something, between the last two looks."""

    @property
    def crowded(self) -> bool:
        """Its connection has more under way than it may, for this stream or for another one."""
        return self._unread is not None and self._unread.size > MOST_UNREAD

    def look(self, sent: int, pieces: int) -> None:
        """sent: bytes, since the last time, in so many pieces."""
        acknowledged = self._connections.acknowledged(self._client)
        if acknowledged is None:
            self.outstanding = 0
            self.taken = True
            return
        # The first look knows nothing of what was acknowledged before: all that has been sent may be under way.
        taken = 0 if self._acknowledged is None else acknowledged - self._acknowledged
        self._acknowledged = acknowledged
        self.outstanding = max(0, self.outstanding + sent - taken)
        self.taken = taken > 0
        if self._unread is not None:
            framed = sent + _FRAME * (pieces + sent // _LARGEST_FRAME)
            self._sent += framed
            self._unread.look(framed, acknowledged)

    def end(self) -> None:
        if self._unread is not None:
            self._unread.forget(self._sent)
            self._unread = None
