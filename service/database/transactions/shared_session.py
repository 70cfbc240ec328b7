"""Shared session: several calls of one request on one connection, in sequence.

A setting or a temporary table that one of them leaves in the session is visible to the next one; the session is reset
after the last. Each call is a transaction of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from rowcall.core.errors.problems import unavailable
from rowcall.ext.driver.connection import Connection, ConnectionState
from rowcall.ext.driver.execution import Execution, ExecutionState, Statement
from rowcall.service.database.call import Call
from rowcall.service.database.failures import AttemptState, Failures
from rowcall.service.database.pools.dedicated_pool import DedicatedPool
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.request_context import RequestContext


class SharedSession:
    """Runs several calls of one request on one dedicated connection, each in a transaction of its own.

    Use: `async with database.shared_session() as session: await session.run(call, context)`, for each call.

    request_of: makes the execution of a call, with a waiter. resets: statements that reset the session after the last
    call.
    """

    def __init__(
        self,
        pool: DedicatedPool,
        watchdog: Watchdog,
        failures: Failures,
        request_of: Callable[[Call, RequestContext], Execution],
        *,
        resets: list[Statement],
    ) -> None:
        self._pool = pool
        self._watchdog = watchdog
        self._failures = failures
        self._request_of = request_of
        self._resets = resets
        self._connection: Connection | None = None
        self._begun = False
        """A call has succeeded, so the next call needs the same session."""

    async def __aenter__(self) -> SharedSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    async def run(self, call: Call, context: RequestContext) -> None:
        """Run a call, repeat it as `recover` does if it fails, and put the successful `Execution` into the request
        context. Its result must not be streamed.

        Raises: Problem: it failed, or the connection of the session is lost.
        """
        execution = await self.attempt(call, context)
        if not execution.succeeded:
            await self.recover(call, context, execution)

    async def attempt(self, call: Call, context: RequestContext) -> Execution:
        """Run a call once, and put its finished execution into the request context, successful or not. A failure is
        neither logged nor repeated; `recover` does that.

        Raises: Problem: no connection is free, or the connection of the session is lost.
        """
        execution = await self._run_once(call, context)
        context.execution = execution
        self._begun = self._begun or execution.succeeded
        return execution

    async def recover(self, call: Call, context: RequestContext, execution: Execution) -> None:
        """Repeat a failed call, after the pauses and as often as `Failures.pause` allows, until it succeeds, and put
        the successful execution into the request context. execution: its failed run; if it has succeeded, nothing
        happens.

        Raises: Problem: it may not be repeated, the repetitions failed too, no connection is free, or the connection of
        the session is lost.
        """
        tries = AttemptState()
        while not execution.succeeded:
            is_lost = self._connection is None or self._connection.state != ConnectionState.READY
            pause = None if self._begun and is_lost else self._failures.pause(call, context.mask, execution, tries)
            if pause is None:
                raise self._failures.problem(call, context, execution, tries)
            await asyncio.sleep(pause)
            execution = await self.attempt(call, context)

    async def _run_once(self, call: Call, context: RequestContext) -> Execution:
        """Run the call once on the connection of the session, and return the finished execution, successful or not. If
        the task is cancelled, the execution is cancelled. Raises `Problem` as `_acquire_connection` does.
        """
        execution = self._request_of(call, context)
        self._watchdog.watch(execution, context.protocol.client_disconnect)
        try:
            while execution.state == ExecutionState.WAITING:
                connection = await self._acquire_connection(execution)
                execution.connection = connection
                connection.submit(execution)
            waiter = execution.waiter
            if waiter is not None:
                await waiter
        except asyncio.CancelledError:
            self._watchdog.abandon(execution)
            raise
        finally:
            self._watchdog.forget(execution)
        return execution

    async def _acquire_connection(self, execution: Execution) -> Connection:
        """Return the connection of the session, which the first call acquires from the pool. Until a call has
        succeeded, a lost connection is replaced. execution: the next one, whose time limit bounds the wait for a
        connection.

        Raises: Problem: 503, if the pool has no connection within the limit, or the connection is lost after a call has
        succeeded.
        """
        connection = self._connection
        if connection is not None and connection.state == ConnectionState.READY:
            return connection
        if self._begun:
            raise unavailable("the connection to the database was lost between two statements of the request")
        self._let_go()
        connection = self._pool.try_acquire() or await self._pool.acquire(execution.timeout)
        self._pool.hold(connection)
        self._connection = connection
        return connection

    def _let_go(self) -> None:
        """Return the connection, if there is one, to the pool after its resets."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.let_go(connection, resets=self._resets)
