"""Shared and exclusive lanes: which connection runs a request, and who waits when there is none.

Shared: few connections, many requests in flight on each. Exclusive: one request at a time on each. Both are bounded:
what does not fit waits in a bounded queue for a bounded time, and what does not fit there is refused at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from rowcall.core.errors.problems import Problem, unavailable
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.lane import offer, stalled
from rowcall.ext.driver.request import Request, Statement
from rowcall.service.background import pause
from rowcall.service.database.connector import Connector
from rowcall.service.database.lanes.queue_time import QueueTime

log = logging.getLogger("rowcall.database")

STOPPING = "stopping"
REPLACED = "replaced after its time"
STILL_BUSY = "its request has been answered, and still runs"

NoticeHandler = Callable[[str | None, str, str, str, str | None, object], None]
"""Label of the call, severity, SQLSTATE, message, context (the stack)."""


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """Sizes and times of the lanes of one worker. Times in seconds."""

    shared_connections: int = 2
    shared_depth: int = 16
    write_connections: int = 16
    """At most; commits wait for the disk, and several connections can wait together."""
    write_depth: int = 4
    exclusive_connections: int = 16
    queue_limit: int = 1000
    queue_timeout: float = 5.0
    queue_target: float | None = 0.5
    queue_interval: float = 5.0
    """These two: see `queue_time`."""
    lifetime: float = 1800.0
    """Age after which a connection is replaced, so that nothing a routine left in its backend stays for ever."""
    requests: int = 1_000_000
    """Requests after which a connection is replaced."""


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """Open connections of a lane, requests under way on them, and those that wait for one."""

    name: str
    connections: int
    in_flight: int
    waiting: int


RESET_SECONDS = 10.0
"""A reset that takes longer than this (and the watchdog's grace) means that the server no longer answers."""
WAITED_FROM = 0.000_5
"""Seconds of a call that writes, from which it has probably waited for the disk; or is so long that others had better
run beside it than behind it."""
MANY_WAIT = 0.7
"""Share of calls from which this is how it is: where processors are busy, some are late without it."""
CANCEL_SECONDS = 5.0
"""How long to wait for the server to take a cancel request."""
STALLED = 0.05
"""Seconds at the head of each shared connection after which the next request goes to another lane. Much more than what
counts as slow: on busy processors heads look older than they are, as their results wait to be read."""


class ElsewhereError(Exception):
    """A request has been taken out of the queue of a shared lane, to run on a connection of its own."""


class Overload:
    """The answers for what does not fit. Made once: refusing must be cheap."""

    @staticmethod
    def full() -> Problem:
        return unavailable("every database connection is busy and the queue of waiting requests is full")

    @staticmethod
    def stopping() -> Problem:
        return unavailable("the service is stopping")

    @staticmethod
    def away() -> Problem:
        return unavailable("the database is not there")

    @staticmethod
    def late(seconds: float) -> Problem:
        return unavailable(f"no database connection became free within {seconds:g} s")

    @staticmethod
    def standing(seconds: float) -> Problem:
        return unavailable(f"more comes than the database can answer; this request has waited for {seconds:g} s")


def log_closed(lane: str, connection: Connection) -> None:
    """One line, whatever libpq wrote; a planned end interests nobody."""
    reason = (connection.close_reason or "").partition("\n")[0]
    planned = reason in (STOPPING, REPLACED)
    log.log(
        logging.DEBUG if planned else logging.INFO, "%s: connection %d closed: %s", lane, connection.backend_pid, reason
    )


async def cancel_safely(connector: Connector, connection: Connection, request: Request) -> bool:
    """Cancels `request` if the connection still runs it, and nothing stands behind it but its own reset. Nobody else
    gets the connection before the cancel request has returned and the Sync was read: a late cancel would hit whoever
    uses it next (reference 08, 5.2). False: there was nothing to cancel."""
    if not connection.begin_cancel(request):
        return False
    try:
        await connector.cancel(connection, CANCEL_SECONDS)
    except psycopg.Error as error:
        # Nobody knows whether it will still arrive, so nobody else may use this connection.
        log.info("cancelling on %d failed: %s", connection.backend_pid, str(error).strip())
        connection.drain("a cancel request has not returned")
    connection.end_cancel()
    return True


@dataclass(frozen=True, slots=True)
class Width:
    """How a shared lane grows.

    first: connections at the start. few: how many there are at most while calls are fast, and most: when they wait,
    mostly for the disk that commits go to, since several can wait together (reference 08, 5y). depth: requests under
    way on each while calls wait, and deep: while they do not.
    """

    first: int
    few: int
    most: int
    depth: int
    deep: int


class SharedLane:
    """Pipelined connections. Requests go to the one with the fewest in flight; more are opened when all are full.

    elsewhere: how many requests could have a connection of their own now. None: none ever.
    """

    def __init__(
        self, name: str, connector: Connector, options: LaneOptions, slow: float, *, width: Width | None = None,
        number: int = 0,
    ) -> None:  # fmt: skip
        count, depth = options.shared_connections, options.shared_depth
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
        self._waiting: deque[tuple[float, Request]] = deque()
        self._queue_time = queue_time_of(name, options)
        self._closed = False
        self.away = False
        self.on_notice: NoticeHandler | None = None
        self.elsewhere: Callable[[], int] | None = None
        self.left_behind = 0
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
        there = len(self.connections) + len(self._opening) + self.left_behind
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
        if waits and self._wanted < self._width.most and all(one.in_flight for one in self.connections):
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

    def submit(self, request: Request) -> bool:
        """Places `request` or lets it wait. False: what runs here holds the connections up, and elsewhere is room.

        Raises `Problem` 503 when there is no room at all.
        """
        if self._closed:
            raise Overload.stopping()
        if self._waiting or not self._offer(request):
            if (room := self._room_elsewhere()) > 0:
                self._send_elsewhere(room - 1)
                return False
            self._wait(request)
        return True

    def _room_elsewhere(self) -> int:
        """For how many; 0 while the connections here are not held up."""
        if self.elsewhere is None or not stalled(self.connections, STALLED):
            return 0
        return self.elsewhere()

    def _send_elsewhere(self, most: int) -> None:
        for _ in range(min(most, len(self._waiting))):
            self._waiting.popleft()[1].refuse(ElsewhereError())

    def _offer(self, request: Request) -> bool:
        return offer(self.connections, self._depth, self._slow, request)

    def _wait(self, request: Request) -> None:
        if self.away:
            raise Overload.away()
        self._grow(self._width.few)
        if len(self._waiting) >= self._options.queue_limit:
            raise Overload.full()
        now = asyncio.get_running_loop().time()
        self._queue_time.join(now, len(self._waiting))
        self._waiting.append((now, request))

    def _capacity(self, connection: Connection) -> None:
        if self._waiting:
            self._place_waiting()

    def _place_waiting(self) -> None:
        while self._waiting:
            # Taken out first: placing it may lose a connection, which ends up here again.
            since, request = self._waiting.popleft()
            if request.failure is not None:
                continue  # nobody waits for it any more
            if request.statement.wired and request.statement.armed == 0:
                request.give_back()  # the connections that could run it are gone
                continue
            try:
                placed = self._offer(request)
            except Exception as error:
                request.refuse(error)
                continue
            if not placed:
                self._waiting.appendleft((since, request))
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
        late = [entry for entry in self._waiting if now - entry[0] > patience(bound, entry[1].timeout)]
        for entry in late:
            self._waiting.remove(entry)
        for _, request in late:
            seconds = patience(bound, request.timeout)
            standing = self._queue_time.standing and seconds == bound
            request.refuse(Overload.standing(seconds) if standing else Overload.late(seconds))

    async def cancel(self, connection: Connection, request: Request) -> None:
        """Cancels `request` if the connection runs it and nothing else is in flight there."""
        if connection.in_flight == 1:
            await cancel_safely(self._connector, connection, request)

    def close(self) -> None:
        self._closed = True
        for task in self._opening:
            task.cancel()
        while self._waiting:
            self._waiting.popleft()[1].refuse(Overload.stopping())
        for connection in list(self.connections):
            connection.drain(STOPPING)


def patience(queue_timeout: float, limit: float) -> float:
    """Seconds to wait for a connection. limit: what is left of the request's own time; 0: as much as it likes."""
    return min(queue_timeout, limit) if limit > 0 else queue_timeout


def queue_time_of(lane: str, options: LaneOptions) -> QueueTime:
    return QueueTime(lane, options.queue_timeout, options.queue_target, options.queue_interval)


class _Turn:
    """Waits for a connection without a task: as much of a future as the lane asks for.

    until: time of the loop at which it has waited for `seconds`, which is too long.
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
        self.until = self._loop.time() + seconds

    def done(self) -> bool:
        return self._over

    def set_result(self, connection: Connection) -> None:
        # Whoever gives it may be in the middle of reading from it.
        self._over = True
        self._loop.call_soon(self._ready, connection)

    def set_exception(self, error: Exception) -> None:
        self._over = True
        self._loop.call_soon(self._refused, error)


class ExclusiveLane:
    """A pool: a connection belongs to one request until it is released."""

    def __init__(self, connector: Connector, options: LaneOptions) -> None:
        self._connector = connector
        self._options = options
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._held: set[Connection] = set()
        """Those whose owner goes on with them after a request, even a cancelled one."""
        self._opening: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[float, asyncio.Future[Connection] | _Turn]] = deque()
        self._queue_time = queue_time_of("exclusive", options)
        self._closed = False
        self.away = False
        self._failing = False
        """The last attempt to connect has failed: one at a time is enough until one succeeds."""
        self.on_notice: NoticeHandler | None = None
        self.left_behind = 0
        """Sessions that were given up and that the server may still have: they count (`watchdog.Watchdog`)."""

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
        """An idle connection, most recently used first, or None."""
        while self._idle:
            connection = self._idle.pop()
            if connection.state == ConnectionState.READY:
                return connection
        return None

    def go_away(self) -> None:
        """Nobody waits here any more, until `away` is taken back."""
        self.away = True
        while self._waiting:
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_exception(Overload.away())

    def room(self) -> int:
        """How many more requests could have a connection now, or as soon as it is opened."""
        return max(0, self._options.exclusive_connections - self.busy - self.left_behind - len(self._waiting))

    async def acquire(self, limit: float = 0.0) -> Connection:
        """A connection for one request. limit: what is left of its own time, in seconds; 0: as much as it likes.

        Raises `Problem` 503 when the queue is full or the wait too long.
        """
        connection = self.try_acquire()
        if connection is not None:
            return connection
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection] = loop.create_future()
        self._join(waiter)
        seconds = patience(self._options.queue_timeout, limit)
        timer = loop.call_later(seconds, self._late, waiter, seconds)
        try:
            return await waiter
        except asyncio.CancelledError:
            # Handed over and cancelled in the same turn: the connection must not be lost.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.release(waiter.result())
            raise
        finally:
            timer.cancel()

    def take_turn(
        self, ready: Callable[[Connection], None], refused: Callable[[Exception], None], limit: float = 0.0
    ) -> Connection | None:
        """`acquire` without a task: a connection, or None, and then `ready` or `refused` is called from the loop.

        Raises `Problem` 503 when the queue is full.
        """
        connection = self.try_acquire()
        if connection is None:
            self._join(_Turn(ready, refused, patience(self._options.queue_timeout, limit)))
        return connection

    def _join(self, waiter: asyncio.Future[Connection] | _Turn) -> None:
        """The queue. Raises `Problem` where nobody may wait."""
        if self._closed:
            raise Overload.stopping()
        if self.away:
            raise Overload.away()
        if len(self._waiting) >= self._options.queue_limit:
            raise Overload.full()
        self._forget_finished()
        now = asyncio.get_running_loop().time()
        self._queue_time.join(now, len(self._waiting))
        self._waiting.append((now, waiter))
        self._grow()

    def _late(self, waiter: asyncio.Future[Connection] | _Turn, seconds: float) -> None:
        if not waiter.done():
            waiter.set_exception(Overload.late(seconds))
        self._forget_finished()

    def _forget_finished(self) -> None:
        while self._waiting and self._waiting[0][1].done():
            self._waiting.popleft()

    def _grow(self) -> None:
        room = self._options.exclusive_connections - len(self._all) - len(self._opening) - self.left_behind
        if self._closed or room <= 0 or len(self._opening) >= len(self._waiting):
            return
        if self._failing and self._opening:
            return
        task = asyncio.get_running_loop().create_task(self._open())
        self._opening.add(task)
        task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self.open_missing()

    def open_missing(self) -> None:
        """Opens as many as are waited for, in the background, as far as there may be more."""
        self._forget_finished()
        for _ in range(len(self._waiting)):
            self._grow()

    async def warm(self) -> None:
        """Opens one connection, so that the first request finds it. Raises `psycopg.Error`."""
        self._adopt(await self._connector.open())

    async def _open(self) -> None:
        attempt = 0
        while not self._closed and self._anyone_waits():
            try:
                connection = await self._connector.open()
            except Exception as error:  # whatever it is: a lane that stops trying stays without
                self._failing = True
                log.warning("exclusive lane: cannot connect: %s", str(error).strip())
                if len(self._opening) > 1:
                    return  # another one goes on trying
                await asyncio.sleep(pause(attempt))
                attempt += 1
                continue
            self._failing = False
            self._adopt(connection)
            return

    def _anyone_waits(self) -> bool:
        return any(not waiter.done() for _, waiter in self._waiting)

    def _adopt(self, connection: Connection) -> None:
        if self._closed:
            connection.close(STOPPING)
            return
        connection.on_closed = self._lost
        connection.on_notice = self.on_notice
        self._all.add(connection)
        self.release(connection)

    def release(self, connection: Connection) -> None:
        """Gives the connection to whoever waits longest, or keeps it."""
        state = connection.state
        if state == ConnectionState.CANCELLING:
            return  # `cancel` releases it
        if state != ConnectionState.READY:
            return
        if self._closed:
            connection.drain(STOPPING)
            return
        if connection.head is not None:
            # Its request was answered before the server was through with it.
            connection.drain(STILL_BUSY)
            return
        while self._waiting:
            waiter = self._waiting.popleft()[1]
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._idle.append(connection)

    def hold(self, connection: Connection) -> None:
        """An acquired connection is for more than one request, until `let_go`."""
        self._held.add(connection)

    def let_go(self, connection: Connection, *, resets: list[Statement]) -> None:
        self._held.discard(connection)
        if resets:
            self.finish(connection, resets=resets)
        else:
            self.release(connection)

    def finish(self, connection: Connection, *, resets: list[Statement]) -> None:
        """Queues what takes back what the request just placed may leave in the session; nothing where that is nothing.

        Both leave together, and the connection is free once both are through.
        """
        connection.corked = False
        if not resets:
            connection.flush()
            return
        cleanup = Request(resets[0], [])
        cleanup.timeout = RESET_SECONDS
        cleanup.on_done = lambda request: self._after_reset(connection, request)
        connection.submit_all(cleanup, resets)
        connection.flush()

    def _after_reset(self, connection: Connection, request: Request) -> None:
        if connection.state == ConnectionState.CLOSED:
            return
        if request.error is not None:
            connection.close(f"the session could not be reset: {request.error.message}")
            return
        self.release(connection)

    async def cancel(self, connection: Connection, request: Request) -> None:
        """Cancels `request` if the connection still runs it; then the connection goes back to the pool."""
        cancelled = await cancel_safely(self._connector, connection, request)
        if cancelled and connection.head is None and connection not in self._held:
            self.release(connection)

    def _lost(self, connection: Connection) -> None:
        self._all.discard(connection)
        log_closed("exclusive", connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._grow()

    def sweep(self, now: float) -> None:
        """Called by the watchdog: ends waits that lead nowhere, replaces idle connections whose time is over."""
        self._refuse_standing(now)
        for connection in list(self._idle):
            if now - connection.created > self._options.lifetime or connection.served > self._options.requests:
                self._idle.remove(connection)
                connection.drain(REPLACED)

    def _refuse_standing(self, now: float) -> None:
        for _, waiter in list(self._waiting):
            # A future has a timer for this.
            if type(waiter) is _Turn and now > waiter.until:
                self._late(waiter, waiter.seconds)
        self._forget_finished()
        if not self._waiting:
            return
        if not self._all:
            self._queue_time.outage(now)
        bound = self._queue_time.bound(now)
        while self._queue_time.standing and self._waiting and now - self._waiting[0][0] > bound:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(Overload.standing(bound))

    def close(self) -> None:
        self._closed = True
        for task in self._opening:
            task.cancel()
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(Overload.stopping())
        self._waiting.clear()
        for connection in list(self._all):
            connection.drain(STOPPING)
