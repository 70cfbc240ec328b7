"""Checks all connections every quarter of a second: silent backends, disconnected clients, waits that take too long.

With these checks, the executions themselves need no timers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import psycopg

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, Script
from rowcall.service.background import Background
from rowcall.service.database.connector import Connector
from rowcall.service.database.failures import CallTimeoutError
from rowcall.service.database.orphaned_sessions import OrphanedSessions
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.pools.pipelined_pool import PipelinedPool, QueuedTooLongError
from rowcall.service.database.pools.pool import CANCEL_SECONDS
from rowcall.service.database.pools.pool_assignment import Contention
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext

log = logging.getLogger("rowcall.database")

WATCH_EVERY = 0.25
"""Seconds between two checks."""
GRACE = 5.0
"""Seconds past its timeout after which a silent backend is considered stuck (driver-29)."""
OVERTIME = 0.5
"""Seconds past its limit after which a request is answered, whatever the server does."""
HELD_UP = 0.5
"""Seconds at the head of a pipelined connection after which the executions behind it move to other connections, and the
connection closes.
"""
Disconnected = Callable[[], Awaitable[None]]
"""Returns when the client of a request has disconnected."""


class Watchdog:
    """Watches the pools, and each execution on a dedicated connection from `watch` to `forget`.

    exclusive: the dedicated pool. shared: the pipelined pools. background: runs the cancel requests.
    """

    def __init__(
        self,
        connector: Connector,
        exclusive: DedicatedPool,
        shared: Sequence[PipelinedPool],
        background: Background,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connector = connector
        self._exclusive = exclusive
        self._shared = shared
        self._background = background
        self._orphaned_sessions = OrphanedSessions(connector, background.start)
        self._requests: dict[Execution, Disconnected] = {}
        self._listening: dict[Execution, asyncio.Task[None]] = {}
        """Tasks that wait for the client of a watched execution to disconnect."""
        self._shared_heads: dict[Execution, asyncio.Task[None]] = {}
        """Tasks that wait for the client of a slow execution on a pipelined connection to disconnect."""
        self._timer: asyncio.TimerHandle | None = None
        self.contention = Contention()

    def __bool__(self) -> bool:
        """Whether any execution is being watched."""
        return bool(self._requests or self._listening)

    def start(self) -> None:
        self._check()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in (*self._listening.values(), *self._shared_heads.values()):
            task.cancel()

    def watch(self, execution: Execution, disconnected: Disconnected) -> None:
        """Start to watch an execution on a dedicated connection. `disconnected` returns when its client has
        disconnected.
        """
        self._requests[execution] = disconnected

    def watches(self, execution: Execution) -> bool:
        """Return whether the execution is being watched."""
        return execution in self._requests

    def forget(self, execution: Execution) -> None:
        """Stop watching an execution, if it is watched."""
        self._requests.pop(execution, None)
        task = self._listening.pop(execution, None)
        if task is not None:
            task.cancel()

    def abandon(self, execution: Execution) -> None:
        """Stop an execution whose result is no longer needed: its rows are dropped, and if it still runs, it is
        cancelled in the background. If it has ended or has no connection, nothing happens.
        """
        connection = execution.connection
        if connection is None or execution.finished:
            return
        connection.abandon()
        if not execution.finished:
            self._background.start(self._exclusive.cancel(connection, execution))

    def _check(self) -> None:
        """Check all pools and executions once, and schedule the next check."""
        self._timer = self._loop.call_later(WATCH_EVERY, self._check)
        self.contention.update()
        for shared in self._shared:
            shared.crowded = self.contention.crowded
        now = self._loop.time()
        pools: tuple[DedicatedPool | PipelinedPool, ...] = (self._exclusive, *self._shared)
        for pool in pools:
            pool.sweep(now)
            for connection in list(pool.connections):
                # After a reset by the peer, libuv reports one event and no more; the end of the connection, which comes
                # behind the last bytes, would go unnoticed.
                connection.on_readable()
                for execution in connection.late(OVERTIME):
                    if execution is not connection.head and execution.statement.repeatable:
                        # The execution in front of it used up its time. It runs again on a dedicated connection.
                        execution.give_up(QueuedTooLongError())
                    else:
                        execution.give_up(CallTimeoutError("its time was over before the database had answered"))
                self._look_for_silence(pool, connection)
        self._check_shared_heads()
        for execution, disconnected in list(self._requests.items()):
            if execution.finished:
                # The task that should have evaluated it has been cancelled.
                self.forget(execution)
            else:
                self._check_execution(execution, disconnected)

    def _check_shared_heads(self) -> None:
        """Check the oldest execution of each pipelined connection: it must not delay others for longer than `HELD_UP`,
        nor run without a client.
        """
        for execution in [execution for execution in self._shared_heads if execution.finished]:
            self._shared_heads.pop(execution).cancel()
        for pool in self._shared:
            for connection in list(pool.connections):
                head = connection.head
                if head is None or head.age < WATCH_EVERY or connection.state != ConnectionState.READY:
                    continue
                if head.age > HELD_UP and connection.in_flight > 1:
                    self._break_up(connection)
                elif head not in self._shared_heads and isinstance(head.owner, RequestContext):
                    watching = self._end_when_gone(pool, connection, head, head.owner.protocol.client_disconnect)
                    self._shared_heads[head] = self._loop.create_task(watching)

    def _break_up(self, connection: Connection) -> None:
        """Run all executions in flight on a pipelined connection again, each on a dedicated connection: the head may
        use its whole time there, and those behind it need not wait for it. The pipelined connection is closed. Nothing
        happens if one of them must not run twice, or the dedicated pool has no room.
        """
        if not connection.repeatable or self._exclusive.room() == 0:
            return
        head = connection.head
        others = connection.in_flight - 1
        log.info(
            "%s: it has delayed %d others on a pipelined connection; all of them run again on dedicated ones",
            head.label if head else None,
            others,
        )
        self._background.start(self._cancel_and_close(connection))

    async def _cancel_and_close(self, connection: Connection) -> None:
        """Cancel the first execution of the connection, and close it at once. A failed cancel request is logged."""
        cancelling = self._loop.create_task(self._connector.cancel(connection, CANCEL_SECONDS))
        await asyncio.sleep(0)  # the cancel request has read what it needs from the connection
        connection.close("its first execution delayed the others")
        try:
            await cancelling
        except psycopg.Error as error:
            log.info("cancelling failed: %s", str(error).strip())

    async def _end_when_gone(
        self, pool: PipelinedPool, connection: Connection, head: Execution, disconnected: Disconnected
    ) -> None:
        """Wait until the client of an execution has disconnected, and then end it with `ClientDisconnectedError`, if it
        still runs. If it is alone on its connection, it is cancelled; otherwise the server continues it until the
        others move away, which is soon (`_break_up`).

        connection: a pipelined connection of `pool`. head: the oldest execution on it. disconnected: returns when its
        client has disconnected.
        """
        await disconnected()
        if head.finished:
            return
        log.info("%s: the client is gone", head.label)
        head.give_up(ClientDisconnectedError("the client has closed the connection"))
        # As a separate task: this one ends with the head, and the cancelling task must see the connection become free.
        self._background.start(pool.cancel(connection, head))

    def _check_execution(self, execution: Execution, disconnected: Disconnected) -> None:
        """Check one execution on a dedicated connection: begin to wait for its client to disconnect, and cancel it if
        it has used more than its time limit. An execution that has just been sent, or has no connection, is skipped.

        disconnected: returns when its client has disconnected.
        """
        connection = execution.connection
        if connection is None or execution.age < WATCH_EVERY:
            return
        if execution not in self._listening:
            self._listening[execution] = self._loop.create_task(self._abandon_when_gone(execution, disconnected))
        # The server enforces its own limit. Executions that waited before, or run without a limit there, are cancelled
        # here.
        ready = connection.state == ConnectionState.READY
        if ready and 0 < execution.timeout < _seconds_towards_limit(execution):
            self._background.start(self._exclusive.cancel(connection, execution))

    def _look_for_silence(self, pool: DedicatedPool | PipelinedPool, connection: Connection) -> None:
        """Close a connection whose server no longer answers: its oldest execution has run for `GRACE` longer than its
        limit. Its session counts for `pool` until the server has ended it (`OrphanedSessions`).
        """
        head = connection.head
        if head is None or head.timeout <= 0 or connection.state == ConnectionState.PAUSED:
            return
        if head.age > head.timeout + GRACE:
            log.error("connection %d has not answered for %.0f s and is given up", connection.backend_pid, head.age)
            self._orphaned_sessions.give_up(pool, connection, "the server has stopped answering")

    async def _abandon_when_gone(self, execution: Execution, disconnected: Disconnected) -> None:
        """Wait until the client has disconnected, and then cancel the execution if it still runs and is watched.
        disconnected: returns when the client has disconnected.
        """
        await disconnected()
        if not execution.finished and execution in self._requests:
            log.info("%s: the client is gone, the query is cancelled", execution.label)
            self.abandon(execution)


def _seconds_towards_limit(execution: Execution) -> float:
    """Return the seconds that count towards the limit of an execution: since its start; for streams since the last
    part, and for files since the last statement.
    """
    if execution.streaming or type(execution.statement) is Script:
        return execution.age
    return execution.elapsed
