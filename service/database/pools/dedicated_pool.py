"""The dedicated pool: a connection belongs to one request until it is released."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Statement
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector
from rowcall.service.database.pools.overload import Overload
from rowcall.service.database.pools.pool import (
    REPLACED,
    STOPPING,
    UNUSED,
    NoticeHandler,
    cancel_safely,
    log_closed,
    queue_time_of,
    queue_timeout_for,
)

log = logging.getLogger("rowcall.database")

STILL_BUSY = "its request has been answered, and still runs"
RESET_SECONDS = 10.0
"""Seconds. A reset that takes longer than this (and the watchdog's grace) means that the server no longer answers."""


_AFTER_DEADLINE = 0.005
"""Seconds added to the limit of a wait: if it is that of the deadline of a request, the deadline ends the request."""


class _Turn:
    """Waits for a connection without a task; has the methods of a future that the pool uses.

    ready: called from the event loop with the connection. refused: called from the event loop instead, with the error.
    seconds: limit of the wait. until: the end of the limit, in time of the event loop.
    """

    __slots__ = ("_loop", "_over", "_ready", "_refused", "seconds", "until")

    def __init__(
        self, ready: Callable[[Connection], None], refused: Callable[[Exception], None], seconds: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ready = ready
        self._refused = refused
        self._over = False
        self.seconds = seconds
        self.until = self._loop.time() + seconds + _AFTER_DEADLINE

    def done(self) -> bool:
        return self._over

    def set_result(self, connection: Connection) -> None:
        # The caller may be in the middle of reading from the connection.
        self._over = True
        self._loop.call_soon(self._ready, connection)

    def set_exception(self, error: Exception) -> None:
        self._over = True
        self._loop.call_soon(self._refused, error)


class DedicatedPool:
    """A pool whose connections belong to one request until they are released."""

    def __init__(self, connector: Connector, options: PoolOptions) -> None:
        self._connector = connector
        self._options = options
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._held: set[Connection] = set()
        """Connections whose owner uses them for further executions, even after a cancelled one."""
        self._opening: set[asyncio.Task[None]] = set()
        self._warming = 0
        """1 while the connection for the first request is being opened."""
        self._waiting: deque[tuple[float, asyncio.Future[Connection] | _Turn]] = deque()
        self._queue_time = queue_time_of("exclusive", options)
        self._unused: dict[Connection, tuple[int, float]] = {}
        """Idle connections at the last sweep: executions until then, and the time of the sweep that first saw this
        number. Only with a limit of idle time."""
        self._closed = False
        self.away = False
        """The server cannot be reached, so requests that would have to wait are refused."""
        self._failure: str | None = None
        """Why the last attempt to connect has failed: only one connection is opened at a time until an attempt
        succeeds. None: it has not failed.
        """
        self.on_notice: NoticeHandler | None = None
        self.orphaned_sessions = 0
        """Sessions whose connection was closed and that may still exist on the server: they count as connections
        (`watchdog.Watchdog`).
        """

    @property
    def connections(self) -> set[Connection]:
        return self._all

    @property
    def waiting(self) -> int:
        """Requests that have no connection yet."""
        return sum(1 for _, waiter in self._waiting if not waiter.done())

    @property
    def busy(self) -> int:
        """Connections that belong to a request now."""
        return len(self._all) - len(self._idle)

    def try_acquire(self) -> Connection | None:
        """Return an idle connection, most recently used first, or None."""
        while self._idle:
            connection = self._idle.pop()
            if connection.state == ConnectionState.READY:
                return connection
        return None

    def go_away(self) -> None:
        """Refuse all waiting requests, and new ones that would have to wait, until `away` is reset."""
        self.away = True
        while self._waiting:
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_exception(Overload.unreachable_problem())

    def room(self) -> int:
        """Return how many more requests could get a connection now, or as soon as it is opened."""
        return max(0, self._options.dedicated_connections - self.busy - self.orphaned_sessions - len(self._waiting))

    async def acquire(self, limit: float = 0.0) -> Connection:
        """Return a connection for one request. limit: the remaining time of the request in seconds; 0: no limit.

        Raises `Problem` 503 if the queue is full, the wait too long, the database away, or the service stopping.
        """
        connection = self.try_acquire()
        if connection is not None:
            return connection
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection] = loop.create_future()
        self._join(waiter)
        seconds = queue_timeout_for(self._options.queue_timeout, limit)
        timer = loop.call_later(seconds + _AFTER_DEADLINE, self._late, waiter, seconds)
        try:
            return await waiter
        except asyncio.CancelledError:
            # Delivered and cancelled in the same turn of the event loop: the connection must not be lost.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            raise
        finally:
            timer.cancel()

    def take_turn(
        self, ready: Callable[[Connection], None], refused: Callable[[Exception], None], limit: float = 0.0
    ) -> Connection | None:
        """Like `acquire`, but without a task: return an idle connection or None. If None, `ready` or `refused` is
        called later from the event loop, with a connection or the error. limit: as for `acquire`.

        Raises `Problem` 503 if the queue is full, the database away, or the service stopping.
        """
        connection = self.try_acquire()
        if connection is None:
            self._join(_Turn(ready, refused, queue_timeout_for(self._options.queue_timeout, limit)))
        return connection

    def _join(self, waiter: asyncio.Future[Connection] | _Turn) -> None:
        """Append to the queue, and open a connection if one is missing. Raises `Problem` if the pool is closed, the
        server is away, or the queue is full.
        """
        if self._closed:
            raise Overload.stopping_problem()
        if self.away:
            raise Overload.unreachable_problem()
        if len(self._waiting) >= self._options.queue_limit:
            raise Overload.full_problem()
        self._forget_finished()
        now = asyncio.get_running_loop().time()
        self._queue_time.join(now, len(self._waiting))
        self._waiting.append((now, waiter))
        self._grow()

    def _late(self, waiter: asyncio.Future[Connection] | _Turn, seconds: float) -> None:
        """Refuse a request that has waited for `seconds`, unless it has got a connection."""
        if not waiter.done():
            waiter.set_exception(self._refusal(seconds))
        self._forget_finished()

    def _refusal(self, seconds: float) -> Problem:
        """Return the problem of a request without a connection after `seconds`: the pool is exhausted, or the server is
        away.
        """
        return Overload.late_problem(seconds) if self._all else Overload.unreachable_problem(self._failure)

    def _forget_finished(self) -> None:
        """Remove requests that no longer wait from the head of the queue."""
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()

    def _grow(self) -> None:
        """Open a connection in the background if requests wait for which none is being opened, within the size of the
        pool.
        """
        opening = len(self._opening) + self._warming
        room = self._options.dedicated_connections - len(self._all) - opening - self.orphaned_sessions
        if self._closed or room <= 0 or len(self._opening) >= len(self._waiting):
            return
        if self._failure is not None and self._opening:
            return
        task = asyncio.get_running_loop().create_task(self._open())
        self._opening.add(task)
        task.add_done_callback(self._on_connection_opened)

    def _on_connection_opened(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self.open_missing()

    def open_missing(self) -> None:
        """Open a connection for each waiting request in the background, within the size of the pool."""
        self._forget_finished()
        for _ in range(len(self._waiting)):
            self._grow()

    async def warm(self) -> None:
        """Open one connection in advance for the first request. Raises `psycopg.Error`."""
        self._warming = 1
        try:
            self._adopt(await self._connector.open())
        finally:
            self._warming = 0
            self.open_missing()

    async def _open(self) -> None:
        """Try to connect until it succeeds, no request waits, or the pool is closed. After a failure, only one attempt
        of the pool continues."""
        attempt = 0
        while not self._closed and self._anyone_waits():
            try:
                connection = await self._connector.open()
            except Exception as error:  # every error: a pool that stops trying has no connections
                self._failure = str(error).strip()
                log.warning("connection pool exclusive: cannot connect: %s", self._failure)
                if len(self._opening) > 1:
                    return  # another attempt continues
                await asyncio.sleep(pause(attempt))
                attempt += 1
                continue
            self._failure = None
            self._adopt(connection)
            return

    def _anyone_waits(self) -> bool:
        return any(not waiter.done() for _, waiter in self._waiting)

    def _adopt(self, connection: Connection) -> None:
        """Add a new connection to the pool."""
        if self._closed:
            connection.close(STOPPING)
            return
        connection.on_closed = self._on_connection_lost
        connection.on_notice = self.on_notice
        self._all.add(connection)
        self.release(connection)

    def release(self, connection: Connection) -> None:
        """Hand the connection to the request that has waited longest, or store it as idle. A connection that is closed
        or draining is ignored; if the pool is closed, or the connection still runs an execution, it is drained.
        """
        state = connection.state
        if state == ConnectionState.CANCELLING:
            return  # `cancel` releases it
        if state != ConnectionState.READY:
            return
        if self._closed:
            connection.drain(STOPPING)
            return
        if connection.head is not None:
            # Its request was answered before the server had finished it.
            connection.drain(STILL_BUSY)
            return
        while self._waiting:
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._idle.append(connection)

    def hold(self, connection: Connection) -> None:
        """Reserve an acquired connection for more than one execution, until `let_go`."""
        self._held.add(connection)

    def let_go(self, connection: Connection, *, resets: list[Statement]) -> None:
        """Return a connection that was reserved by `hold`, after these resets."""
        self._held.discard(connection)
        if resets:
            self.finish(connection, resets=resets)
        else:
            self.release(connection)

    def finish(self, connection: Connection, *, resets: list[Statement]) -> None:
        """Send the execution that was just submitted together with its resets, in one write. Behind the resets, the
        connection is released; without any, the caller releases it.
        """
        connection.corked = False
        if not resets:
            connection.flush()
            return
        cleanup = Execution(resets[0], [])
        cleanup.timeout = RESET_SECONDS
        cleanup.on_done = lambda execution: self._on_reset_done(connection, execution)
        connection.submit_all(cleanup, resets)
        connection.flush()

    def _on_reset_done(self, connection: Connection, execution: Execution) -> None:
        """Release the connection behind its resets; close it if one failed. execution: the resets."""
        if connection.state == ConnectionState.CLOSED:
            return
        if execution.error is not None:
            connection.close(f"the session could not be reset: {execution.error.message}")
            return
        self.release(connection)

    async def cancel(self, connection: Connection, execution: Execution) -> None:
        """Cancel `execution` if the connection still runs it; then the connection returns to the pool, unless it is
        held.
        """
        cancelled = await cancel_safely(self._connector, connection, execution)
        if cancelled and connection.head is None and connection not in self._held:
            self.release(connection)

    def _on_connection_lost(self, connection: Connection) -> None:
        """Remove a closed connection, and open another one if requests wait."""
        self._all.discard(connection)
        log_closed("exclusive", connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._grow()

    def sweep(self, now: float) -> None:
        """Refuse requests that have waited too long, and close idle connections that are too old, have run too many
        executions, or have been unused for too long. Called by the watchdog. now: time of the event loop."""
        self._refuse_standing(now)
        for connection in list(self._idle):
            if now - connection.created > self._options.lifetime or connection.served > self._options.requests:
                self._idle.remove(connection)
                connection.drain(REPLACED)
        if self._options.idle_timeout:
            self._close_unused(now, self._options.idle_timeout)

    def _close_unused(self, now: float, seconds: float) -> None:
        """Close the idle connections that have run nothing for this number of seconds. now: time of the event loop."""
        before, self._unused = self._unused, {}
        for connection in list(self._idle):
            served, since = before.get(connection, (-1, now))
            if served != connection.served:
                since = now
            if now - since >= seconds:
                self._idle.remove(connection)
                connection.drain(UNUSED)
            else:
                self._unused[connection] = (connection.served, since)

    def _refuse_standing(self, now: float) -> None:
        """Refuse requests of `take_turn` that have waited longer than their limit. If the queue has not been empty for
        the configured interval, refuse all requests that have waited longer than its target (`QueueTimeBound`). now:
        time of the event loop."""
        for _, waiter in list(self._waiting):
            # Futures have a timer instead.
            if type(waiter) is _Turn and now > waiter.until:
                self._late(waiter, waiter.seconds)
        self._forget_finished()
        if not self._waiting:
            return
        if not self._all:
            self._queue_time.outage(now)
        bound = self._queue_time.current_limit(now)
        while self._queue_time.standing and self._waiting and now - self._waiting[0][0] > bound:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(Overload.standing_queue_problem(bound))

    def close(self) -> None:
        self._closed = True
        for task in self._opening:
            task.cancel()
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(Overload.stopping_problem())
        self._waiting.clear()
        for connection in list(self._all):
            connection.drain(STOPPING)
