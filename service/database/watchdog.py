"""Looks after what nobody else would notice: silent backends, clients that have gone, waits that take too long.

A slow look every quarter of a second over all connections, so that the requests themselves need no timers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import psycopg

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.request import Request
from rowcall.service.database.connector import Connector
from rowcall.service.database.lanes import ExclusiveLane, SharedLane

log = logging.getLogger("rowcall.database")

WATCH_EVERY = 0.25
"""Seconds between two looks of the watchdog."""
GRACE = 5.0
"""Seconds past its timeout after which a silent backend is taken for stuck (reference 08, rule 22)."""
Disconnected = Callable[[], Awaitable[None]]


class Background:
    """Work that nobody awaits. Its errors are logged."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)


class Watchdog:
    """Watches the lanes, and each exclusive request from `watch` to `forget`."""

    def __init__(
        self,
        connector: Connector,
        exclusive: ExclusiveLane,
        shared: Sequence[SharedLane],
        background: Background,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connector = connector
        self._exclusive = exclusive
        self._shared = shared
        self._background = background
        self._requests: dict[Request, Disconnected] = {}
        self._listening: dict[Request, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __bool__(self) -> bool:
        """Some request is being watched."""
        return bool(self._requests or self._listening)

    def start(self) -> None:
        self._look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._listening.values():
            task.cancel()

    def watch(self, request: Request, disconnected: Disconnected) -> None:
        """`disconnected` returns when the client of `request` has gone."""
        self._requests[request] = disconnected

    def forget(self, request: Request) -> None:
        self._requests.pop(request, None)
        task = self._listening.pop(request, None)
        if task is not None:
            task.cancel()

    def abandon(self, request: Request) -> None:
        """Nobody waits for the answer any more: stop the work."""
        connection = request.connection
        if connection is None or request.finished:
            return
        connection.abandon()
        if not request.finished:
            self._background.start(self._exclusive.cancel(connection, request))

    def _look(self) -> None:
        self._timer = self._loop.call_later(WATCH_EVERY, self._look)
        now = self._loop.time()
        lanes: tuple[ExclusiveLane | SharedLane, ...] = (self._exclusive, *self._shared)
        for lane in lanes:
            lane.sweep(now)
            for connection in list(lane.connections):
                # After a reset by the peer libuv reports one event and no more; the end of the connection, which
                # comes behind the last bytes, would go unnoticed.
                connection.on_readable()
                self._look_for_silence(connection)
        for request, disconnected in list(self._requests.items()):
            self._look_at(request, disconnected)

    def _look_at(self, request: Request, disconnected: Disconnected) -> None:
        connection = request.connection
        if connection is None or request.age < WATCH_EVERY:
            return
        if request not in self._listening:
            self._listening[request] = self._loop.create_task(self._abandon_when_gone(request, disconnected))
        # Only a request that runs without a timeout of the server's own is cancelled from here.
        ready = connection.state == ConnectionState.READY
        if ready and request.unlimited and 0 < request.timeout < request.age:
            self._background.start(self._exclusive.cancel(connection, request))

    def _look_for_silence(self, connection: Connection) -> None:
        head = connection.head
        if head is None or head.timeout <= 0 or connection.state == ConnectionState.PAUSED:
            return
        if head.age > head.timeout + GRACE:
            log.error("connection %d has not answered for %.0f s and is given up", connection.backend_pid, head.age)
            self._background.start(self._terminate(connection.backend_pid))
            connection.close("the server has stopped answering")

    async def _terminate(self, backend_pid: int) -> None:
        try:
            async with await self._connector.open_plain() as connection:
                await connection.execute("select pg_catalog.pg_terminate_backend(%s)", (backend_pid,))
        except psycopg.Error as error:
            log.warning("cannot terminate backend %d: %s", backend_pid, str(error).strip())

    async def _abandon_when_gone(self, request: Request, disconnected: Disconnected) -> None:
        await disconnected()
        if not request.finished and request in self._requests:
            log.info("%s: the client is gone, the query is cancelled", request.label)
            self.abandon(request)
