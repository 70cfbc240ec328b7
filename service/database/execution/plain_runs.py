"""Runs of single statements without a `Call`: no retries, no resets, no streams.

PostgREST's interface uses them: every request may have another statement, and its role, settings and statement are one
segment, which is one implicit transaction. They run on dedicated connections, except repeatable statements that have
proved to be fast, which run on pipelined ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from functools import partial

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState, Loss, Statement
from rowcall.service.database.call import NoticeListener
from rowcall.service.database.pools.dedicated_pool import RESET_SECONDS, DedicatedPool
from rowcall.service.database.pools.pipelined_pool import PipelinedPool, RerouteError
from rowcall.service.database.pools.pool_assignment import PoolAssignment
from rowcall.service.database.preamble import PrecedingStatements, Values
from rowcall.service.database.statements import statement_for
from rowcall.service.database.transactions.transaction import TransactionNotices
from rowcall.service.database.watchdog import Disconnected, Watchdog

PROCESSORS = os.cpu_count() or 1
COMMIT = statement_for("commit", 0)
ROLLBACK = statement_for("rollback", 0)


class PlainRuns:
    """Runs on the pools of one database.

    shared: pipelined pool for repeatable statements; None: they run on dedicated connections, too. seconds: time that
    one run may take; 0: no limit. slow: seconds of server time from which a run is slow. most_bytes: of a result that a
    pipelined connection may buffer.
    """

    one_segment = True
    """Whether `begin` can run work; otherwise, all work needs `transaction`."""

    def __init__(
        self,
        pool: DedicatedPool,
        shared: PipelinedPool | None,
        watchdog: Watchdog,
        *,
        seconds: float,
        slow: float,
        most_bytes: int,
    ) -> None:
        self._pool = pool
        self._shared = shared
        self._watchdog = watchdog
        self._seconds = seconds
        self._slow = slow
        self._most_bytes = most_bytes

    def pace(self) -> PoolAssignment | None:
        """Return a new record of durations for one repeatable statement; None if no statement may be pipelined."""
        return None if self._shared is None else PoolAssignment(self._slow)

    def begin(self, execution: Execution, disconnected: Disconnected, pace: PoolAssignment | None = None) -> Execution:
        """Start an execution that is one transaction, and return it for the runner of steps; `settle` follows.

        disconnected: returns when the client has disconnected; the execution is cancelled then. pace: durations of its
        statement, if the execution may be pipelined. Raises `Problem` 503 if the queue of the pool is full, the
        database away, or the service stopping.
        """
        execution.timeout = self._seconds
        shared = self._shared
        if pace is not None and pace.fast and shared is not None and shared.connections:
            execution.limit = self._most_bytes
            if shared.submit(execution):
                return execution
            execution.limit = 0
        execution.alone = True
        self._take_turn(execution, disconnected)
        return execution

    def settle(self, execution: Execution, pace: PoolAssignment | None = None) -> bool:
        """End the watch over an execution and record its duration. Return whether it has to run again, by `begin`
        without pace. pace: as for `begin`.

        Raises the error of an execution that no connection has run.
        """
        if execution.alone:
            self._watchdog.forget(execution)
            if execution.connection is None and execution.failure is not None:
                raise execution.failure
            if pace is not None and execution.succeeded:
                self._learn(pace, execution)
            return False
        succeeded = execution.succeeded
        if pace is not None and (succeeded or execution.loss == Loss.NOT_LOST):
            pace.record(execution.seconds, self._watchdog.contention.factor)
        if succeeded:
            return False
        if execution.overflowed:
            if pace is not None:
                pace.demote()
            return True
        return isinstance(execution.failure, RerouteError)

    def _learn(self, pace: PoolAssignment, execution: Execution) -> None:
        """Record a run on a dedicated connection, which may promote the statement to the pipelined pool. A run whose
        result is too large for a pipelined connection is ignored."""
        shared = self._shared
        if shared is None or len(execution.body or b"") > self._most_bytes:
            return
        contention = max(self._watchdog.contention.factor, self._pool.busy / PROCESSORS)
        if pace.record(execution.seconds, contention) and pace.fast:
            shared.open_missing()

    def _take_turn(self, execution: Execution, disconnected: Disconnected) -> None:
        """Run the execution on an idle connection, or on the next one that becomes free. Raises `Problem` if the queue
        of the pool is full. disconnected: as for `begin`.
        """
        connection = self._pool.take_turn(
            partial(self._run_next, execution, disconnected), execution.refuse, self._seconds
        )
        if connection is not None:
            self._run_next(execution, disconnected, connection)

    def _run_next(self, execution: Execution, disconnected: Disconnected, connection: Connection) -> None:
        """Run the execution on this connection or, if that has closed, on the next one. If it has ended while it
        waited, the connection is released. disconnected: as for `begin`.
        """
        if execution.finished:
            self._pool.release(connection)
            return
        self._watchdog.watch(execution, disconnected)
        execution.connection = connection
        execution.on_free = self._release
        try:
            accepted = connection.submit(execution)
        except Exception as error:
            self._pool.release(connection)
            execution.connection = execution.on_free = None
            execution.refuse(error)
            return
        if accepted or execution.state != ExecutionState.WAITING:
            return
        # The connection has closed since it was acquired: take the next one.
        self._watchdog.forget(execution)
        execution.connection = execution.on_free = None
        self._take_turn(execution, disconnected)

    def _release(self, execution: Execution) -> None:
        connection = execution.connection
        if connection is not None and connection.state != ConnectionState.CLOSED:
            self._pool.release(connection)

    def transaction(self, disconnected: Disconnected, listener: NoticeListener | None = None) -> PlainTransaction:
        """Return a transaction over several segments, for requests that decide by a result whether to commit.
        disconnected: returns when the client has disconnected; a running statement is cancelled then. listener: gets
        the notices of the transaction, and its end."""
        return PlainTransaction(self._pool, self._watchdog, disconnected, self._seconds, listener)


class PlainTransaction:
    """An explicit transaction on a dedicated connection, which it holds until its end:

        async with runs.transaction(disconnected) as transaction:
            execution = await transaction.run(statement, values, ahead)  # ahead begins with BEGIN
            await transaction.end(COMMIT)

    Without `end`, the transaction is rolled back. seconds: limit of the wait for a connection, and of each statement;
    0: none. Entering raises `Problem` if no connection is free in time.
    """

    def __init__(
        self,
        pool: DedicatedPool,
        watchdog: Watchdog,
        disconnected: Disconnected,
        seconds: float,
        listener: NoticeListener | None = None,
    ) -> None:
        self._pool = pool
        self._watchdog = watchdog
        self._disconnected = disconnected
        self._seconds = seconds
        self._notice_listener = None if listener is None else TransactionNotices(listener)
        self._connection: Connection | None = None
        self._open = False

    async def __aenter__(self) -> PlainTransaction:
        connection = self._pool.try_acquire() or await self._pool.acquire(self._seconds)
        self._pool.hold(connection)
        self._connection = connection
        return self

    async def __aexit__(self, *_: object) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._open:
            self._report_end(committed=False)
            self._roll_back(connection)
        else:
            self._pool.let_go(connection, resets=[])

    def _roll_back(self, connection: Connection) -> None:
        """Send ROLLBACK without waiting; when it has run, the connection returns to the pool. If it cannot be sent, the
        connection is closed at once."""
        execution = Execution(ROLLBACK, [])
        execution.timeout = RESET_SECONDS
        execution.on_free = lambda _execution: self._let_go(connection)
        if connection.submit(execution):
            return
        if connection.state != ConnectionState.CLOSED:
            connection.close("a transaction was given up in the middle of a command")
        self._let_go(connection)

    def _let_go(self, connection: Connection) -> None:
        """Return the connection to the pool."""
        connection.owned = False
        self._pool.let_go(connection, resets=[])

    async def run(self, statement: Statement, values: Values, ahead: PrecedingStatements) -> Execution:
        """Run a statement behind `ahead` (in the first run, beginning with BEGIN) in one segment, and return the
        finished execution, successful or not. If the task is cancelled, the execution is cancelled.
        """
        execution = Execution(statement, values, ahead or None)
        self._open = True
        if self._connection is not None:
            self._connection.owned = True
        self._watchdog.watch(execution, self._disconnected)
        try:
            await self._submit_and_wait(execution)
        except asyncio.CancelledError:
            self._watchdog.abandon(execution)
            raise
        finally:
            self._watchdog.forget(execution)
        return execution

    async def end(self, statement: Statement) -> Execution:
        """Run COMMIT or ROLLBACK, and return the finished execution. If the task is cancelled meanwhile, the end is
        awaited all the same, because a commit cannot be revoked, and the cancellation has no effect."""
        execution = Execution(statement, [])
        connection = self._connection
        try:
            finishing = asyncio.ensure_future(self._submit_and_wait(execution))
            while not finishing.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({finishing})
        finally:
            if connection is not None and execution.finished:
                self._open = False
                connection.owned = False
                self._report_end(committed=statement is COMMIT and execution.succeeded)
        return execution

    def _report_end(self, *, committed: bool) -> None:
        """Report the end of the transaction to the notice listener, if there is one."""
        if self._notice_listener is not None:
            self._notice_listener.close(committed=committed)

    async def _submit_and_wait(self, execution: Execution) -> None:
        """Submit the execution and wait for its end. If the connection is lost, the execution ends as failed."""
        connection = self._connection
        waiter = asyncio.get_running_loop().create_future()
        execution.waiter = waiter
        execution.notice_listener = self._notice_listener
        execution.connection = connection
        execution.timeout = self._seconds * (1 + len(execution.ahead or ()))
        if connection is None or not connection.submit(execution):
            execution.give_back()
        await waiter
