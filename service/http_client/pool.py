"""The connection pool of the HTTP client of a worker: reuses connections to each host, and limits their number."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from rowcall.core.outgoing.address import Origin
from rowcall.core.outgoing.guard import Guard
from rowcall.core.outgoing.options import ClientOptions
from rowcall.service.http_client.connecting import Connection, ConnectionOpener
from rowcall.service.http_client.errors import NotReachedError, QueueFullError
from rowcall.service.http_client.http1 import Http1Connection
from rowcall.service.http_client.http2 import Http2Connection

_LEAST_PAUSE = 0.1
"""Least seconds between two searches for old connections."""

Key = tuple[Origin, bool]
"""Origin, and whether the operator has named the host. Connections that were opened without the guard are not used for
other requests.
"""


class _Host:
    """The connections to one origin that were opened with the guard, or those that were opened without it."""

    __slots__ = ("idle", "open", "shared", "waiting")

    def __init__(self) -> None:
        self.open = 0
        self.idle: list[Connection] = []
        self.shared: list[Http2Connection] = []
        self.waiting: deque[asyncio.Future[Connection | None]] = deque()
        """Waiting requests. The result None means that they may open a new connection."""


class Pool:
    """The connections of one HTTP client."""

    def __init__(self, options: ClientOptions) -> None:
        self._options = options
        self._dialer = ConnectionOpener(options)
        self._hosts: dict[Key, _Host] = {}
        self._loop = asyncio.get_running_loop()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def open(self) -> int:
        """Number of connections, including those in use."""
        return sum(host.open for host in self._hosts.values())

    async def acquire(self, origin: Origin, guard: Guard | None, *, fresh: bool = False) -> Connection:
        """Return a connection that can take a request.

        guard: None for a host that the operator has named. fresh: open a new connection instead of taking an unused
        one; if the host has too many, wait for one that another request frees.

        Raises:
            NotReachedError: the host cannot be reached.
            QueueFullError: too many requests wait.
            RefusedError: the guard does not allow the host.
        """
        while True:
            host = self._host((origin, guard is None))
            result = None if fresh else self._take(host)
            if result is not None:
                return result
            if host.open < self._options.connections:
                return await self._open_connection(origin, guard, host)
            connection = await self._wait(origin, host)
            if connection is not None and connection.usable:
                return connection

    def _host(self, key: Key) -> _Host:
        """Return the record of a host. A new one stays until `_close_old` finds it without connections and requests."""
        host = self._hosts.get(key)
        if host is None:
            host = self._hosts[key] = _Host()
            if self._sweep is None:
                self._close_old_after(self._options.idle)
        return host

    def take_idle(self, origin: Origin) -> Http1Connection | None:
        """Return an idle connection to a host that the operator has named, or None. Use it immediately."""
        host = self._hosts.get((origin, True))
        if host is None or host.shared or not host.idle:
            return None
        last = host.idle[-1]
        now = self._loop.time()
        options = self._options
        young = now - last.idle_since <= options.idle and now - last.born <= options.lifetime
        result = host.idle.pop() if last.usable and young else self._take(host)
        return result if isinstance(result, Http1Connection) else None

    def _take(self, host: _Host) -> Connection | None:
        """Return a connection to the host that can take a request now, or None. Old ones are closed."""
        for shared in list(host.shared):
            if self._is_old(shared):
                shared.retire()
            elif shared.usable:
                return shared
        while host.idle:
            connection = host.idle.pop()
            if connection.usable and not self._is_old(connection):
                return connection
            connection.close()
        return None

    def _is_old(self, connection: Connection) -> bool:
        """Return whether a connection was unused, or is open, for longer than the options allow."""
        now = self._loop.time()
        unused = connection.spare and now - connection.idle_since > self._options.idle
        return unused or now - connection.born > self._options.lifetime

    async def _open_connection(self, origin: Origin, guard: Guard | None, host: _Host) -> Connection:
        """Open a connection to the host; waiting requests may share it if it is HTTP/2. guard: as for `acquire`. Raises
        as `acquire` does.
        """
        host.open += 1
        registered: list[Connection] = []
        try:
            connection = await self._dialer.open_connection(origin, guard, self._on_free(host, registered))
        except BaseException:
            host.open -= 1
            self._wake(host)
            raise
        if not connection.usable:
            # It was closed before its owner was known.
            host.open -= 1
            self._wake(host)
            raise NotReachedError(f"no connection to {origin.authority}: it was closed at once")
        registered.append(connection)
        if isinstance(connection, Http2Connection):
            host.shared.append(connection)
            # It takes the request that it was opened for, and those that wait for a connection.
            self._share(host, connection, connection.capacity - 1)
        return connection

    def _on_free(self, host: _Host, made: list[Connection]) -> Callable[[Connection], None]:
        """Return the function that a connection calls when it can take a request or is closed. made: contains the
        connection that was opened, from its registration until it is closed; calls for any other connection are
        ignored."""

        def on_free(connection: Connection) -> None:
            if connection not in made:
                # The HTTP/1.1 connection that is replaced after TLS has negotiated HTTP/2, or one that is not in use
                # yet.
                return
            if connection.usable and not self._closed:
                self._give(host, connection)
                return
            made.remove(connection)
            host.open -= 1
            with contextlib.suppress(ValueError):
                if isinstance(connection, Http2Connection):
                    host.shared.remove(connection)
                else:
                    host.idle.remove(connection)
            self._wake(host)
            if self._closed:
                connection.close()

        return on_free

    def _give(self, host: _Host, connection: Connection) -> None:
        """Give a connection to waiting requests, or store it as idle."""
        if isinstance(connection, Http2Connection):
            self._share(host, connection, connection.capacity)
        elif not self._share(host, connection, 1):
            host.idle.append(connection)

    def _share(self, host: _Host, connection: Connection, most: int) -> bool:
        """Give the connection to at most `most` waiting requests; return whether to any.

        Nothing is reserved: a request that finds no free stream then waits again.
        """
        is_shared = False
        while host.waiting and most > 0:
            waiter = host.waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                is_shared = True
                most -= 1
        return is_shared

    def _wake(self, host: _Host) -> None:
        """Let one waiting request open a connection."""
        while host.waiting:
            waiter = host.waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    async def _wait(self, origin: Origin, host: _Host) -> Connection | None:
        """Wait for a connection of another request. None: a new one may be opened. Raises `QueueFullError` if too many
        requests wait.
        """
        if len(host.waiting) >= self._options.queue:
            raise QueueFullError(f"too many requests wait for a connection to {origin.authority}")
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        host.waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                connection = waiter.result()
                if connection is None:
                    self._wake(host)
                elif connection.usable:
                    self._give(host, connection)
            raise

    def _close_old(self) -> None:
        """Close idle connections that are too old, and let shared ones that are too old end with their last request.
        Remove the records of hosts without connections and waiting requests. Repeat this later while there are records.
        """
        self._sweep = None
        for key, host in list(self._hosts.items()):
            for connection in [item for item in (*host.idle, *host.shared) if self._is_old(item)]:
                connection.retire()
            if not host.open and not host.waiting:
                del self._hosts[key]
        if self._hosts:
            self._close_old_after(self._options.idle / 2)

    def _close_old_after(self, seconds: float) -> None:
        """Schedule `_close_old`, unless the pool is closed."""
        if not self._closed:
            self._sweep = self._loop.call_later(max(seconds, _LEAST_PAUSE), self._close_old)

    def close(self) -> None:
        """Close all connections. A connection of HTTP/1.1 with a request in progress is closed when the request has
        ended; requests of HTTP/2 in progress fail."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for host in self._hosts.values():
            for connection in (*host.idle, *host.shared):
                connection.close()
