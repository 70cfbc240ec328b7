"""Several calls of one request on one connection, one after another.

What one of them leaves in the session, a setting or a temporary table, the next one finds; the session is reset once
all are through. Each is a transaction of its own.
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
from rowcall.service.database.pools.dedicated import DedicatedPool
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.request_context.request_context import RequestContext


class SharedSession:
    """`async with database.together() as calls: await calls.run(call, exchange)`, as often as there are calls."""

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
        """A call has succeeded, and its session is the one that the next call needs."""

    async def __aenter__(self) -> SharedSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    async def run(self, call: Call, context: RequestContext) -> None:
        """Puts a `Request` that has succeeded into the exchange. The call is one whose result does not stream.

        Raises:
            Problem: it failed, or the connection that it had to share is gone.
        """
        execution = await self.attempt(call, context)
        if not execution.succeeded:
            await self.recover(call, context, execution)

    async def attempt(self, call: Call, context: RequestContext) -> Execution:
        """One run. A failure is not logged and not repeated; `recover` does that.

        Raises:
            Problem: the connection that it had to share is gone.
        """
        execution = await self._run_once(call, context)
        context.execution = execution
        self._begun = self._begun or execution.succeeded
        return execution

    async def recover(self, call: Call, context: RequestContext, execution: Execution) -> None:
        """What follows a run that failed: others, as long as they may.

        Raises:
            Problem: they failed, too, or the connection that they had to share is gone.
        """
        tries = AttemptState()
        while not execution.succeeded:
            lost = self._connection is None or self._connection.state != ConnectionState.READY
            pause = None if self._begun and lost else self._failures.pause(call, context.mask, execution, tries)
            if pause is None:
                raise self._failures.problem(call, context, execution, tries)
            await asyncio.sleep(pause)
            execution = await self.attempt(call, context)

    async def _run_once(self, call: Call, context: RequestContext) -> Execution:
        execution = self._request_of(call, context)
        self._watchdog.watch(execution, context.protocol.client_disconnect)
        try:
            while execution.state == ExecutionState.WAITING:
                connection = await self._acquired(execution)
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

    async def _acquired(self, execution: Execution) -> Connection:
        """The connection of the calls before, or any other as long as there were none."""
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
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.let_go(connection, resets=self._resets)
