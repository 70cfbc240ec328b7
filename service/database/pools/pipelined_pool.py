"""The pipelined pools: few connections, with many executions in flight on each."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.ext.driver.pool_selection import are_stalled, try_submit
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector
from rowcall.service.database.pools.overload import Overload
from rowcall.service.database.pools.pool import (
    REPLACED,
    STOPPING,
    NoticeHandler,
    cancel_safely,
    log_closed,
    queue_time_of,
    queue_timeout_for,
)

log = logging.getLogger("rowcall.database")

WAITED_FROM = 0.000_5
"""Seconds of a write from which it has probably waited for the disk, or is so long that others should run on another
connection and not behind it.
"""
MANY_WAIT = 0.7
"""Share of such calls from which waiting is considered normal: on busy processors, some calls are late without it."""
STALLED = 0.05
"""Age in seconds of the oldest execution on each pipelined connection from which the next execution goes to another
pool. Much more than the limit for a slow call: on busy processors executions look older than they are, as their results
wait to be read.
"""


class RerouteError(Exception):
    """An execution was removed from the queue of a pipelined pool, to run on a dedicated connection."""


class QueuedTooLongError(RerouteError):
    """The time limit of an execution passed while it waited behind another one on a pipelined connection."""


@dataclass(frozen=True, slots=True)
class Width:
    """How a pipelined pool grows: connections, and executions in flight on each.

    first: connections at the start. few: maximum of connections while calls are fast. most: maximum of connections
    while calls wait, mostly for the disk of the write-ahead log, since several can wait at the same time (driver-3).
    depth: executions in flight on each connection while calls wait. deep: executions in flight on each connection while
    calls do not wait.
    """

    first: int
    few: int
    most: int
    depth: int
    deep: int


class PipelinedPool:
    """A pool of pipelined connections. An execution goes to the one with the fewest in flight; while processors are
    scarce (`crowded`), to the first one where its wait is short. If all are full, more are opened.

    slow: seconds of server time from which a call is slow. width: how the pool grows; None: it has the size of the
    options from the start.

    elsewhere: attribute, set by the database: returns how many executions could get a dedicated connection now. None:
    no execution can be sent to the dedicated pool.
    """

    def __init__(
        self, name: str, connector: Connector, options: PoolOptions, slow: float, *, width: Width | None = None,
        number: int = 0,
    ) -> None:  # fmt: skip
        count, depth = options.pipelined_connections, options.pipelined_depth
        width = width or Width(count, count, count, depth, depth)
        self.name = name
        self.number = number
        """Index of the pool in `Call.guarded`."""
        self._width = width
        self._depth = width.depth
        self._target_size = width.first
        self._waits = 1.0
        """Moving share of recent calls that took so long that they must have waited; 1 until durations are known."""
        self._connector = connector
        self._options = options
        self._slow = slow
        self.connections: list[Connection] = []
        """Open connections. While there are none, callers use the dedicated pool."""
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[float, Execution]] = deque()
        self._queue_time = queue_time_of(name, options)
        self._closed = False
        self.away = False
        """The server cannot be reached, so executions that would have to wait are refused."""
        self.crowded = False
        """Processors are scarce (`Contention`)."""
        self.on_notice: NoticeHandler | None = None
        self.elsewhere: Callable[[], int] | None = None
        self.orphaned_sessions = 0
        """Sessions whose connection was closed and that may still exist on the server: they count as connections
        (`watchdog.Watchdog`).
        """

    def go_away(self) -> None:
        """Refuse all waiting executions, and new ones that would wait, until `away` is reset. Connections are still
        opened.
        """
        self.away = True
        while self._waiting:
            self._waiting.popleft()[1].refuse(Overload.unreachable_problem())

    @property
    def waiting(self) -> int:
        """Executions that no connection has accepted yet."""
        return len(self._waiting)

    def open_missing(self) -> None:
        """Open missing connections in the background."""
        there = len(self.connections) + len(self._opening) + self.orphaned_sessions
        missing = self._target_size - there
        for _ in range(missing if not self._closed else 0):
            task = asyncio.get_running_loop().create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._on_connection_opened)

    def note(self, seconds: float) -> None:
        """Record the duration of a call in seconds, which determines the depth of the pipelines and the number of
        connections.
        """
        self._waits += ((seconds > WAITED_FROM) - self._waits) / 64
        waits = self._waits > MANY_WAIT
        self._depth = self._width.depth if waits else self._width.deep
        if waits and self._target_size < self._width.most and all(item.in_flight for item in self.connections):
            self._grow(self._width.most)

    def _grow(self, most: int) -> None:
        """Open one more connection in the background, if there are less than `most` and none is being opened."""
        if self._target_size < most and not self._opening:
            self._target_size += 1
            self.open_missing()

    def _on_connection_opened(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        if not task.cancelled() and task.exception() is None:
            # A connection lost before this moment still counted as being opened.
            self.open_missing()

    async def _open(self) -> None:
        """Try to connect until it succeeds or the pool is closed."""
        attempt = 0
        while not self._closed:
            try:
                connection = await self._connector.open()
            except Exception as error:  # every error: a pool that stops trying has no connections
                level = logging.DEBUG if self.away else logging.WARNING
                log.log(level, "connection pool %s: cannot connect: %s", self.name, str(error).strip())
                await asyncio.sleep(pause(attempt))
                attempt += 1
                continue
            self._adopt(connection)
            return

    def _adopt(self, connection: Connection) -> None:
        """Add a new connection to the pool, and submit waiting executions to it; close it if the pool is closed."""
        if self._closed:
            connection.close(STOPPING)
            return
        connection.on_closed = self._on_connection_lost
        connection.on_capacity = self._capacity
        connection.on_notice = self.on_notice
        self.connections.append(connection)
        self._place_waiting()

    def submit(self, execution: Execution) -> bool:
        """Submit `execution` to a connection, or queue it. False: the connections are blocked by a long execution, and
        another pool has room; other executions of the queue are sent there, too.

        Raises `Problem` 503 if the queue is full, the database away, or the service stopping.
        """
        if self._closed:
            raise Overload.stopping_problem()
        if self._waiting or not self._try_submit(execution):
            if (room := self._room_elsewhere()) > 0:
                self._send_elsewhere(room - 1)
                return False
            self._wait(execution)
        return True

    def _room_elsewhere(self) -> int:
        """Return how many executions the dedicated pool can accept; 0 while the connections of this pool are not
        blocked.
        """
        if self.elsewhere is None or not are_stalled(self.connections, STALLED):
            return 0
        return self.elsewhere()

    def _send_elsewhere(self, most: int) -> None:
        """Send up to `most` waiting executions to the dedicated pool."""
        for _ in range(min(most, len(self._waiting))):
            self._waiting.popleft()[1].refuse(RerouteError())

    def _try_submit(self, execution: Execution) -> bool:
        """Submit the execution to a connection that has room. False: none has."""
        return try_submit(self.connections, self._depth, self._slow, self.crowded, execution)

    def _wait(self, execution: Execution) -> None:
        """Append the execution to the queue, and let the pool grow. Raises `Problem` 503 if the server is away or the
        queue is full.
        """
        if self.away:
            raise Overload.unreachable_problem()
        self._grow(self._width.few)
        if len(self._waiting) >= self._options.queue_limit:
            raise Overload.full_problem()
        now = asyncio.get_running_loop().time()
        self._queue_time.join(now, len(self._waiting))
        self._waiting.append((now, execution))

    def _capacity(self, connection: Connection) -> None:
        """Submit waiting executions, as the connection has room again. Called by the driver."""
        if self._waiting:
            self._place_waiting()

    def _place_waiting(self) -> None:
        """Submit waiting executions as long as connections have room. Those whose request no longer waits are dropped;
        those whose guarded statement no connection has any more are given back, to run again.
        """
        while self._waiting:
            # Removed from the queue first: submitting may lose a connection, and its loss calls this method again.
            since, execution = self._waiting.popleft()
            if execution.failure is not None:
                continue  # its request no longer waits for it
            if execution.statement.guarded and execution.statement.admissions == 0:
                execution.give_back()  # the connections that could run it are gone
                continue
            try:
                placed = self._try_submit(execution)
            except Exception as error:
                execution.refuse(error)
                continue
            if not placed:
                self._waiting.appendleft((since, execution))
                return

    def _on_connection_lost(self, connection: Connection) -> None:
        """Remove a closed connection, open another one, and submit waiting executions to the others."""
        self.connections.remove(connection)
        log_closed(self.name, connection)
        if not self._closed:
            self.open_missing()
            self._place_waiting()

    def sweep(self, now: float) -> None:
        """Refuse executions that have waited too long, send waiting ones to the dedicated pool if it has room, and
        replace connections that are too old or have run too many executions. Called by the watchdog. now: time of the
        event loop."""
        self._refuse_late(now)
        if self._waiting:
            self._send_elsewhere(self._room_elsewhere())
        for connection in list(self.connections):
            if now - connection.created > self._options.lifetime or connection.served > self._options.requests:
                connection.drain(REPLACED)
        self._place_waiting()

    def _refuse_late(self, now: float) -> None:
        """Refuse executions that have waited longer than the limit of the queue, or than their own. now: time of the
        event loop.
        """
        if not self._waiting:
            return
        if not self.connections:
            self._queue_time.outage(now)
        bound = self._queue_time.current_limit(now)
        # The wait also ends with the limit of the execution, which counts from its start.
        late = [entry for entry in self._waiting if now - entry[0] > queue_timeout_for(bound, entry[1].timeout)]
        for entry in late:
            self._waiting.remove(entry)
        for _, execution in late:
            seconds = queue_timeout_for(bound, execution.timeout)
            standing = self._queue_time.standing and seconds == bound
            if not self.connections:
                execution.refuse(Overload.unreachable_problem())
            else:
                execution.refuse(
                    Overload.standing_queue_problem(seconds) if standing else Overload.late_problem(seconds)
                )

    async def cancel(self, connection: Connection, execution: Execution) -> None:
        """Cancel `execution` if the connection runs it and no other execution is in flight there."""
        if connection.in_flight == 1:
            await cancel_safely(self._connector, connection, execution)

    def close(self) -> None:
        self._closed = True
        for task in self._opening:
            task.cancel()
        while self._waiting:
            self._waiting.popleft()[1].refuse(Overload.stopping_problem())
        for connection in list(self.connections):
            connection.drain(STOPPING)
