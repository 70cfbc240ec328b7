"""A new answer made for nobody in particular, while the old one is given (RFC 5861, stale-while-revalidate).

The steps of the run go once more, for an exchange that has what the request had and no client: nobody who leaves ends
it, and nobody is told how it went. Those who are told are the ones who ask next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any

from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.exchange import Runner
from rowcall.service.database.database import Database
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.store.flights import Ticket, ending

log = logging.getLogger("rowcall.cache")


class Nobody:
    """Where a client would be, who never leaves and is never answered."""

    def client_disconnect(self) -> Awaitable[None]:
        return asyncio.get_running_loop().create_future()


class Refresher:
    """name: of the endpoint. steps: those that run and keep."""

    def __init__(self, name: str, steps: tuple[Step, ...], database: Database) -> None:
        self._name = name
        self._steps = (*steps, self._end)
        self._database = database
        self._runner = Runner(self._wait, self._fail)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, exchange: Exchange, ticket: Ticket) -> None:
        """Returns at once."""
        quiet = Exchange(exchange.scope, Nobody())
        quiet.values, quiet.user, quiet.body = exchange.values, exchange.user, exchange.body
        quiet.mask, quiet.has_null = exchange.mask, exchange.has_null
        quiet.arguments = list(exchange.arguments)
        quiet.ticket = ticket
        quiet.at_end(ending)
        self._runner.start(quiet, self._steps)

    def _end(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is not None and request.streaming:
            # It has become too large to be kept, so nobody wants the rest.
            self._database.end_stream(request, gone=True)

    def _wait(self, exchange: Exchange, waiting: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._advance_after(exchange, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _advance_after(self, exchange: Exchange, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except Exception as error:
            self._runner.fail(exchange, error)
            return
        self._runner.advance(exchange)

    def _fail(self, _exchange: Exchange, error: Exception) -> None:
        if isinstance(error, Problem):
            log.warning("%s: no new answer could be made: %s", self._name, error.detail or error.title)
        else:
            log.error("%s: no new answer could be made", self._name, exc_info=error)
