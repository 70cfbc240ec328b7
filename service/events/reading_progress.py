"""Progress of readers: how much of the sent data a client has received, according to its TCP connection.

The HTTP server accepts all data of a stream and buffers it until the client reads it, so that nothing slows down a
sender. Only the kernel knows what the client has acknowledged. If that is not available (systems other than Linux,
clients over a Unix socket), only the bytes count that the transport in this event loop could not hand to the system;
where granian serves, every such client counts as one that reads.
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
from collections.abc import Callable, Iterator

from rowcall.service.sockets.peers import client_of, without_zone

_TCP_INFO = struct.Struct("=120xQ")
"""Field of Linux' `struct tcp_info`: bytes that the peer has acknowledged since the connection was opened."""
_RESET = struct.pack("ii", 1, 0)
"""Linger option of 0 seconds: unsent data is dropped when the connection is closed."""
_LOOK_AGAIN = 0.2
"""Seconds between two scans of all sockets of the process."""
_DESCRIPTORS = "/proc/self/fd"
_SLICE = 64
"""Descriptors that are scanned in one turn of the event loop."""
MOST_UNREAD = 16_777_216
"""Maximum number of bytes in flight on one connection, over all of its streams."""
_FRAME, _LARGEST_FRAME = 9, 16_384
"""Bytes of the header of a frame, and of the largest frame (RFC 9113, 4.1 and 4.2)."""


class Connections:
    """The TCP connections of this process, by the address of the client."""

    def __init__(self) -> None:
        """Construct it in the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._descriptors: dict[str, int] = {}
        """File descriptors by address of the client. They may be closed or reused meanwhile."""
        self._scanned_at = 0.0
        self._scanning = False
        """Whether a scan of all sockets has begun and not ended."""
        self._unread: weakref.WeakValueDictionary[str, Unread] = weakref.WeakValueDictionary()

    def unread(self, client: str) -> Unread:
        """Return the counter of unread bytes of a connection, which all its streams share. client: address of its
        client, as `host:port`.
        """
        unread = self._unread.get(client)
        if unread is None:
            unread = self._unread[client] = Unread()
        return unread

    def acknowledged_bytes(self, client: str) -> int | None:
        """Return the number of bytes that a client has acknowledged since its connection was opened; None: unknown. An
        unknown client makes this scan all sockets, at most every 0.2 seconds. client: as for `unread`; may be empty.
        """
        if sys.platform != "linux" or not client:
            return None
        client = without_zone(client)
        result = self._known_acknowledged(client)
        if result is None and not self._scanning and time.monotonic() > self._scanned_at + _LOOK_AGAIN:
            self._scan()
            result = self._known_acknowledged(client)
        return result

    def _known_acknowledged(self, client: str) -> int | None:
        """Return the number of bytes that the client has acknowledged, if the descriptor of its connection is known;
        otherwise None.
        """
        descriptor = self._descriptors.get(client)
        if descriptor is None:
            return None
        with contextlib.suppress(OSError), _borrow_socket(descriptor) as connection:
            # The descriptor may belong to another connection by now.
            if client_of(connection) == client:
                info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
                acknowledged: int = _TCP_INFO.unpack(info)[0]
                return acknowledged
        self._descriptors.pop(client, None)
        return None

    def reset_connection(self, client: str) -> None:
        """Reset the connection of a client at once. An orderly end would wait behind the data that the reader does not
        take. On other systems than Linux, nothing happens. client: as for `unread`.
        """
        if sys.platform != "linux" or not client:
            return
        client = without_zone(client)
        with contextlib.suppress(OSError, KeyError):
            if self._known_acknowledged(client) is None:
                self._connections_among(os.listdir(_DESCRIPTORS))
            with _borrow_socket(self._descriptors[client]) as end:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                end.shutdown(socket.SHUT_RDWR)

    def _scan(self) -> None:
        """Begin to scan all sockets of the process for the addresses of their clients; all of them, because other
        clients than the one asked for will soon be needed too. If there is no free descriptor to list the sockets, a
        later scan tries again."""
        try:
            names = os.listdir(_DESCRIPTORS)
        except OSError:
            self._scanned_at = time.monotonic()
            return
        self._scanning = True
        self._scan_slice(names, {})

    def _scan_slice(self, names: list[str], descriptors: dict[str, int]) -> None:
        """Scan a slice of the descriptors, then the next one: with thousands of streams, all of them take tens of
        milliseconds, and other requests run in between.

        names: of the descriptors that are left to scan. descriptors: those of connections so far, by address of the
        client.
        """
        descriptors.update(self._connections_among(names[:_SLICE]))
        if len(names) > _SLICE:
            self._loop.call_soon(self._scan_slice, names[_SLICE:], descriptors)
            return
        self._descriptors = descriptors
        self._scanned_at = time.monotonic()
        self._scanning = False

    def _connections_among(self, names: list[str]) -> dict[str, int]:
        """Return the TCP connections among these descriptors, as descriptors by address of the client, and add them to
        the known ones. names: numbers of descriptors, as in /proc/self/fd."""
        result: dict[str, int] = {}
        for name in names:
            with contextlib.suppress(OSError, ValueError):
                descriptor = int(name)
                if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    continue
                with _borrow_socket(descriptor) as connection:
                    if connection.family in (socket.AF_INET, socket.AF_INET6):
                        result[client_of(connection)] = descriptor
        self._descriptors.update(result)
        return result


@contextlib.contextmanager
def _borrow_socket(descriptor: int) -> Iterator[socket.socket]:
    """Provide the socket of a descriptor, which stays open. No free descriptor is needed. Raises `OSError` if it is no
    socket.
    """
    borrowed = socket.socket(fileno=descriptor)
    try:
        yield borrowed
    finally:
        borrowed.detach()


class Unread:
    """Bytes in flight to the reader of one connection.

    An HTTP/2 stream that is not read blocks only itself, so acknowledged bytes of other streams do not show what is
    buffered for it. size: an estimate in bytes, over all streams of the connection.
    """

    __slots__ = ("__weakref__", "_acknowledged", "_at_most", "size")

    def __init__(self) -> None:
        self._acknowledged: int | None = None
        self._at_most: dict[object, int] = {}
        """Upper bound of the bytes in flight of each open stream."""
        self.size = 0

    def update(self, stream: object, sent: int, acknowledged: int) -> None:
        """Update the size. stream: any object that stands for the stream. sent: bytes that it has sent since its last
        call. acknowledged: all bytes that the client has acknowledged since the connection was opened.
        """
        received = 0 if self._acknowledged is None else acknowledged - self._acknowledged
        self._acknowledged = acknowledged
        self.size = max(0, self.size + sent - received)
        self._at_most[stream] = self._at_most.get(stream, 0) + sent
        for other, most in self._at_most.items():
            if most > self.size:
                self._at_most[other] = self.size

    def forget(self, stream: object) -> None:
        """Remove the bytes of a stream that has ended, which are not buffered any more, as far as they cannot be those
        of another stream: it is not known which of them the client has acknowledged. What is counted too much becomes
        less with the acknowledged bytes that are not counted, such as those of TLS and of headers.
        """
        self._at_most.pop(stream, None)
        self.size = min(self.size, sum(self._at_most.values()))


class Progress:
    """Bytes in flight to the reader of one stream.

    Bytes that TLS and the framing of HTTP add are acknowledged too, so the number is too small rather than too large
    while the reader reads; when it stops, nothing is acknowledged any more, and every byte counts.
    """

    __slots__ = ("_acknowledged", "_client", "_connections", "_unread", "_unsent", "outstanding", "taken")

    def __init__(
        self, connections: Connections, client: str, *, shares: bool, unsent: Callable[[], int] = lambda: 0
    ) -> None:
        """client: address of the client, as `host:port`. shares: whether its connection may have other streams. unsent:
        returns the bytes that the transport has not handed to the system, if that is known.
        """
        self._connections = connections
        self._client = client
        self._unsent = unsent
        self._acknowledged: int | None = None
        self._unread = connections.unread(client) if shares else None
        self.outstanding = 0
        """Bytes in flight, as of the last `update`."""
        self.taken = True
        """Whether any data was acknowledged between the last two calls of `update`."""

    @property
    def crowded(self) -> bool:
        """Whether its connection has more data in flight than allowed, of this stream or others."""
        return self._unread is not None and self._unread.size > MOST_UNREAD

    def update(self, sent: int, pieces: int) -> None:
        """Update the progress. sent: bytes that the stream has sent since the last call. pieces: number of chunks in
        which they were sent.
        """
        acknowledged = self._connections.acknowledged_bytes(self._client)
        if acknowledged is None:
            unsent = self._unsent()
            self.taken = unsent < self.outstanding + sent or not unsent
            self.outstanding = unsent
            return
        # At the first call, the earlier acknowledgements are unknown: all bytes sent may be in flight.
        received = 0 if self._acknowledged is None else acknowledged - self._acknowledged
        self._acknowledged = acknowledged
        self.outstanding = max(0, self.outstanding + sent - received)
        self.taken = received > 0
        if self._unread is not None:
            framed = sent + _FRAME * (pieces + sent // _LARGEST_FRAME)
            self._unread.update(self, framed, acknowledged)

    def end(self) -> None:
        """End the count, because the stream has ended: its bytes do not count for the connection any more."""
        if self._unread is not None:
            self._unread.forget(self)
            self._unread = None
