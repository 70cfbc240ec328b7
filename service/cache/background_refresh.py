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
from rowcall.ext.driver.request_context import StepRunner
from rowcall.service.database.database import Database
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.shared_state.single_flight import CacheLease, ending

log = logging.getLogger("rowcall.cache")


class DetachedProtocol:
    """Where a client would be, who never leaves and is never answered."""

    def client_disconnect(self) -> Awaitable[None]:
        return asyncio.get_running_loop().create_future()


class Refresher:
    """name: of the endpoint. steps: those that run and keep."""

    def __init__(self, name: str, steps: tuple[Step, ...], database: Database) -> None:
        self._name = name
        self._steps = (*steps, self._end)
        self._database = database
        self._runner = StepRunner(self._wait, self._fail)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, context: RequestContext, lease: CacheLease) -> None:
        """Returns at once."""
        quiet = RequestContext(context.scope, DetachedProtocol())
        quiet.values, quiet.user, quiet.body = context.values, context.user, context.body
        quiet.mask, quiet.has_null = context.mask, context.has_null
        quiet.arguments = list(context.arguments)
        quiet.lease = lease
        quiet.at_end(ending)
        self._runner.start(quiet, self._steps)

    def _end(self, context: RequestContext) -> None:
        execution = context.execution
        if execution is not None and execution.streaming:
            # It has become too large to be kept, so nobody wants the rest.
            self._database.end_stream(execution, gone=True)

    def _wait(self, context: RequestContext, waiting: Any) -> None:
        task = asyncio.get_running_loop().create_task(self._advance_after(context, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _advance_after(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except Exception as error:
            self._runner.fail(context, error)
            return
        self._runner.advance(context)

    def _fail(self, _context: RequestContext, error: Exception) -> None:
        if isinstance(error, Problem):
            log.warning("%s: no new answer could be made: %s", self._name, error.detail or error.title)
        else:
            log.error("%s: no new answer could be made", self._name, exc_info=error)
