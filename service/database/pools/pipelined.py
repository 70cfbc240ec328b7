"""The shared lanes: few connections, with many requests in flight on each."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from rowcall.ext.driver.connection import Connection
from rowcall.ext.driver.execution import Execution
from rowcall.ext.driver.pool_selection import stalled, try_submit
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector
from rowcall.service.database.pools.overload import Overload
from rowcall.service.database.pools.pool import (
    REPLACED,
    STOPPING,
    NoticeHandler,
    PoolOptions,
    cancel_safely,
    log_closed,
    queue_time_of,
    queue_timeout_for,
)

log = logging.getLogger("rowcall.database")

WAITED_FROM = 0.000_5
"""Seconds of a call that writes, from which it has probably waited for the disk; or is so long that others had better
run beside it than behind it."""
MANY_WAIT = 0.7
"""Share of calls from which this is how it is: where processors are busy, some are late without it."""
STALLED = 0.05
"""Seconds at the head of each shared connection after which the next request goes to another lane. Much more than what
counts as slow: on busy processors heads look older than they are, as their results wait to be read."""


class RerouteError(Exception):
    """A request has been taken out of the queue of a shared lane, to run on a connection of its own."""


class QueuedTooLongError(RerouteError):
    """The time limit of a request passed while it waited behind another one on a shared connection."""


@dataclass(frozen=True, slots=True)
class Width:
    """How a shared lane grows.

    first: connections at the start. few: how many there are at most while calls are fast, and most: when they wait,
    mostly for the disk that commits go to, since several can wait together (driver-3). depth: requests under
    way on each while calls wait, and deep: while they do not.
    """

    first: int
    few: int
    most: int
    depth: int
    deep: int


class PipelinedPool:
    """Pipelined connections. Requests go to the one with the fewest in flight; more are opened when all are full.

    elsewhere: how many requests could have a connection of their own now. None: none ever.
    """

    def __init__(
        self, name: str, connector: Connector, options: PoolOptions, slow: float, *, width: Width | None = None,
        number: int = 0,
    ) -> None:  # fmt: skip
        count, depth = options.pipelined_connections, options.pipelined_depth
        width = width or Width(count, count, count, depth, depth)
        self.name = name
        self.number = number
        """Its place in `Call.wired`."""
        self._width = width
        self._depth = width.depth
        self._wanted = width.first
        self._waits = 1.0
        """Share of recent calls that took so long that they must have waited; until something is known, all."""
        self._connector = connector
        self._options = options
        self._slow = slow
        self.connections: list[Connection] = []
        """Those that have something to offer. While there is none callers use the exclusive lane."""
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[float, Execution]] = deque()
        self._queue_time = queue_time_of(name, options)
        self._closed = False
        self.away = False
        self.on_notice: NoticeHandler | None = None
        self.elsewhere: Callable[[], int] | None = None
        self.orphaned_sessions = 0
        """Sessions that were given up and that the server may still have: they count (`watchdog.Watchdog`)."""

    def go_away(self) -> None:
        """Nothing waits here any more, until `away` is taken back. Connections are tried all the same."""
        self.away = True
        while self._waiting:
            self._waiting.popleft()[1].refuse(Overload.away())

    @property
    def waiting(self) -> int:
        """Requests that no connection has taken yet."""
        return len(self._waiting)

    def open_missing(self) -> None:
        """Opens what is missing, in the background."""
        there = len(self.connections) + len(self._opening) + self.orphaned_sessions
        missing = self._wanted - there
        for _ in range(missing if not self._closed else 0):
            task = asyncio.get_running_loop().create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._opened)

    def note(self, seconds: float) -> None:
        """A call took this long: decides how deep the pipelines are, and how many."""
        self._waits += ((seconds > WAITED_FROM) - self._waits) / 64
        waits = self._waits > MANY_WAIT
        self._depth = self._width.depth if waits else self._width.deep
        if waits and self._wanted < self._width.most and all(item.in_flight for item in self.connections):
            self._grow(self._width.most)

    def _grow(self, most: int) -> None:
        if self._wanted < most and not self._opening:
            self._wanted += 1
            self.open_missing()

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        if not task.cancelled() and task.exception() is None:
            # A connection lost before this moment still counted as being opened.
            self.open_missing()

    async def _open(self) -> None:
        attempt = 0
        while not self._closed:
            try:
                connection = await self._connector.open()
            except Exception as error:  # whatever it is: a lane that stops trying stays without
                level = logging.DEBUG if self.away else logging.WARNING
                log.log(level, "%s lane: cannot connect: %s", self.name, str(error).strip())
                await asyncio.sleep(pause(attempt))
                attempt += 1
                continue
            self._adopt(connection)
            return

    def _adopt(self, connection: Connection) -> None:
        if self._closed:
            connection.close(STOPPING)
            return
        connection.on_closed = self._lost
        connection.on_capacity = self._capacity
        connection.on_notice = self.on_notice
        self.connections.append(connection)
        self._place_waiting()

    def submit(self, execution: Execution) -> bool:
        """Places `request` or lets it wait. False: what runs here holds the connections up, and elsewhere is room.

        Raises `Problem` 503 when there is no room at all.
        """
        if self._closed:
            raise Overload.stopping()
        if self._waiting or not self._offer(execution):
            if (room := self._room_elsewhere()) > 0:
                self._send_elsewhere(room - 1)
                return False
            self._wait(execution)
        return True

    def _room_elsewhere(self) -> int:
        """For how many; 0 while the connections here are not held up."""
        if self.elsewhere is None or not stalled(self.connections, STALLED):
            return 0
        return self.elsewhere()

    def _send_elsewhere(self, most: int) -> None:
        for _ in range(min(most, len(self._waiting))):
            self._waiting.popleft()[1].refuse(RerouteError())

    def _offer(self, execution: Execution) -> bool:
        return try_submit(self.connections, self._depth, self._slow, execution)

    def _wait(self, execution: Execution) -> None:
        if self.away:
            raise Overload.away()
        self._grow(self._width.few)
        if len(self._waiting) >= self._options.queue_limit:
            raise Overload.full()
        now = asyncio.get_running_loop().time()
        self._queue_time.join(now, len(self._waiting))
        self._waiting.append((now, execution))

    def _capacity(self, connection: Connection) -> None:
        if self._waiting:
            self._place_waiting()

    def _place_waiting(self) -> None:
        while self._waiting:
            # Taken out first: placing it may lose a connection, which ends up here again.
            since, execution = self._waiting.popleft()
            if execution.failure is not None:
                continue  # nobody waits for it any more
            if execution.statement.guarded and execution.statement.armed == 0:
                execution.give_back()  # the connections that could run it are gone
                continue
            try:
                placed = self._offer(execution)
            except Exception as error:
                execution.refuse(error)
                continue
            if not placed:
                self._waiting.appendleft((since, execution))
                return

    def _lost(self, connection: Connection) -> None:
        self.connections.remove(connection)
        log_closed(self.name, connection)
        if not self._closed:
            self.open_missing()
            self._place_waiting()

    def sweep(self, now: float) -> None:
        """Called by the watchdog: ends waits that took too long, replaces old connections."""
        self._refuse_late(now)
        if self._waiting:
            self._send_elsewhere(self._room_elsewhere())
        for connection in list(self.connections):
            if now - connection.created > self._options.lifetime or connection.served > self._options.requests:
                connection.drain(REPLACED)
        self._place_waiting()

    def _refuse_late(self, now: float) -> None:
        if not self._waiting:
            return
        if not self.connections:
            self._queue_time.outage(now)
        bound = self._queue_time.bound(now)
        # No longer than its own limit either, which counts from its beginning.
        late = [entry for entry in self._waiting if now - entry[0] > queue_timeout_for(bound, entry[1].timeout)]
        for entry in late:
            self._waiting.remove(entry)
        for _, execution in late:
            seconds = queue_timeout_for(bound, execution.timeout)
            standing = self._queue_time.standing and seconds == bound
            if not self.connections:
                execution.refuse(Overload.away())
            else:
                execution.refuse(Overload.standing(seconds) if standing else Overload.late(seconds))

    async def cancel(self, connection: Connection, execution: Execution) -> None:
        """Cancels `request` if the connection runs it and nothing else is in flight there."""
        if connection.in_flight == 1:
            await cancel_safely(self._connector, connection, execution)

    def close(self) -> None:
        self._closed = True
        for task in self._opening:
            task.cancel()
        while self._waiting:
            self._waiting.popleft()[1].refuse(Overload.stopping())
        for connection in list(self.connections):
            connection.drain(STOPPING)
