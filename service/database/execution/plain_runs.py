"""Runs of single statements on dedicated connections, without a `Call`: no retries, no resets, no streams.

PostgREST's interface uses them: every request may have another statement, and its role, settings and statement are one
segment, which is one implicit transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial

from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState, Statement
from rowcall.service.database.pools.dedicated import RESET_SECONDS, DedicatedPool
from rowcall.service.database.preamble import Ahead, Values
from rowcall.service.database.statements import statement_for
from rowcall.service.database.watchdog import Disconnected, Watchdog

COMMIT = statement_for("commit", 0)
ROLLBACK = statement_for("rollback", 0)


class PlainRuns:
    """Runs on the dedicated pool of one database. seconds: time that one run may take; 0: no limit."""

    def __init__(self, pool: DedicatedPool, watchdog: Watchdog, seconds: float) -> None:
        self._pool = pool
        self._watchdog = watchdog
        self._seconds = seconds

    def begin(self, execution: Execution, disconnected: Disconnected) -> Execution:
        """Start an execution that is one transaction. Returns it for the runner of steps; `settle` follows.

        disconnected: returns when the client has disconnected; the execution is cancelled then. Raises `Problem` if the
        queue of the pool is full.
        """
        execution.alone = True
        execution.timeout = self._seconds
        self._take_turn(execution, disconnected)
        return execution

    def settle(self, execution: Execution) -> None:
        """End the watch over an execution. Raises the error of an execution that no connection has run."""
        self._watchdog.forget(execution)
        if execution.connection is None and execution.failure is not None:
            raise execution.failure

    def _take_turn(self, execution: Execution, disconnected: Disconnected) -> None:
        connection = self._pool.take_turn(
            partial(self._run_next, execution, disconnected), execution.refuse, self._seconds
        )
        if connection is not None:
            self._run_next(execution, disconnected, connection)

    def _run_next(self, execution: Execution, disconnected: Disconnected, connection: Connection) -> None:
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

    def transaction(self, disconnected: Disconnected) -> PlainTransaction:
        """Return a transaction over several segments, whose end depends on a result."""
        return PlainTransaction(self._pool, self._watchdog, disconnected, self._seconds)


class PlainTransaction:
    """An explicit transaction on a dedicated connection:

    async with runs.transaction(disconnected) as transaction:
        execution = await transaction.run(statement, values, ahead)  # ahead begins with BEGIN
        await transaction.end(COMMIT)

    Without `end`, it is rolled back.
    """

    def __init__(self, pool: DedicatedPool, watchdog: Watchdog, disconnected: Disconnected, seconds: float) -> None:
        self._pool = pool
        self._watchdog = watchdog
        self._disconnected = disconnected
        self._seconds = seconds
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
            self._roll_back(connection)
        else:
            self._pool.let_go(connection, resets=[])

    def _roll_back(self, connection: Connection) -> None:
        """Send ROLLBACK without waiting; the connection returns to the pool behind it."""
        execution = Execution(ROLLBACK, [])
        execution.timeout = RESET_SECONDS
        execution.on_free = lambda _execution: self._let_go(connection)
        if not connection.submit(execution) and connection.state != ConnectionState.CLOSED:
            connection.close("a transaction was given up in the middle of a command")

    def _let_go(self, connection: Connection) -> None:
        connection.owned = False
        self._pool.let_go(connection, resets=[])

    async def run(self, statement: Statement, values: Values, ahead: Ahead) -> Execution:
        """Run a statement behind `ahead` in one segment, and return the finished execution, successful or not."""
        execution = Execution(statement, values, ahead or None)
        self._open = True
        if self._connection is not None:
            self._connection.owned = True
        self._watchdog.watch(execution, self._disconnected)
        try:
            await self._finished(execution)
        except asyncio.CancelledError:
            self._watchdog.abandon(execution)
            raise
        finally:
            self._watchdog.forget(execution)
        return execution

    async def end(self, statement: Statement) -> Execution:
        """Run COMMIT or ROLLBACK, also if the task is cancelled meanwhile: a commit cannot be revoked."""
        execution = Execution(statement, [])
        connection = self._connection
        try:
            finishing = asyncio.ensure_future(self._finished(execution))
            while not finishing.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait({finishing})
        finally:
            if connection is not None and execution.finished:
                self._open = False
                connection.owned = False
        return execution

    async def _finished(self, execution: Execution) -> None:
        connection = self._connection
        waiter = asyncio.get_running_loop().create_future()
        execution.waiter = waiter
        execution.connection = connection
        execution.timeout = self._seconds * (1 + len(execution.ahead or ()))
        if connection is None or not connection.submit(execution):
            execution.give_back()
        await waiter
