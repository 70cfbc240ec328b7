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
from rowcall.ext.driver.request import Request, RequestState, Statement
from rowcall.service.database.call import Call
from rowcall.service.database.failures import Failures, Tries
from rowcall.service.database.lanes.exclusive import ExclusiveLane
from rowcall.service.database.watchdog import Watchdog
from rowcall.service.exchange.exchange import Exchange


class SeveralCalls:
    """`async with database.together() as calls: await calls.run(call, exchange)`, as often as there are calls."""

    def __init__(
        self,
        lane: ExclusiveLane,
        watchdog: Watchdog,
        failures: Failures,
        request_of: Callable[[Call, Exchange], Request],
        *,
        resets: list[Statement],
    ) -> None:
        self._lane = lane
        self._watchdog = watchdog
        self._failures = failures
        self._request_of = request_of
        self._resets = resets
        self._connection: Connection | None = None
        self._begun = False
        """A call has succeeded, and its session is the one that the next call needs."""

    async def __aenter__(self) -> SeveralCalls:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._let_go()

    async def run(self, call: Call, exchange: Exchange) -> None:
        """Puts a `Request` that has succeeded into the exchange. The call is one whose result does not stream.

        Raises:
            Problem: it failed, or the connection that it had to share is gone.
        """
        request = await self.attempt(call, exchange)
        if not request.succeeded:
            await self.recover(call, exchange, request)

    async def attempt(self, call: Call, exchange: Exchange) -> Request:
        """One run. A failure is not logged and not repeated; `recover` does that.

        Raises:
            Problem: the connection that it had to share is gone.
        """
        request = await self._run_once(call, exchange)
        exchange.request = request
        self._begun = self._begun or request.succeeded
        return request

    async def recover(self, call: Call, exchange: Exchange, request: Request) -> None:
        """What follows a run that failed: others, as long as they may.

        Raises:
            Problem: they failed, too, or the connection that they had to share is gone.
        """
        tries = Tries()
        while not request.succeeded:
            lost = self._connection is None or self._connection.state != ConnectionState.READY
            pause = None if self._begun and lost else self._failures.pause(call, exchange.mask, request, tries)
            if pause is None:
                raise self._failures.problem(call, exchange, request, tries)
            await asyncio.sleep(pause)
            request = await self.attempt(call, exchange)

    async def _run_once(self, call: Call, exchange: Exchange) -> Request:
        request = self._request_of(call, exchange)
        self._watchdog.watch(request, exchange.protocol.client_disconnect)
        try:
            while request.state == RequestState.WAITING:
                connection = await self._acquired(request)
                request.connection = connection
                connection.submit(request)
            waiter = request.waiter
            if waiter is not None:
                await waiter
        except asyncio.CancelledError:
            self._watchdog.abandon(request)
            raise
        finally:
            self._watchdog.forget(request)
        return request

    async def _acquired(self, request: Request) -> Connection:
        """The connection of the calls before, or any other as long as there were none."""
        connection = self._connection
        if connection is not None and connection.state == ConnectionState.READY:
            return connection
        if self._begun:
            raise unavailable("the connection to the database was lost between two statements of the request")
        self._let_go()
        connection = self._lane.try_acquire() or await self._lane.acquire(request.timeout)
        self._lane.hold(connection)
        self._connection = connection
        return connection

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._lane.let_go(connection, resets=self._resets)
