"""Background computation of a new response while the stale one is used (RFC 5861, stale-while-revalidate).

The steps of the run are executed once more, for a request context with the values of the request and without a client.
So the disconnect of a client does not end the computation, and its result is only stored; the next requests use it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

from rowcall.core.errors.problems import Problem
from rowcall.service.database.database import Database
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.step_tasks import StepTasks
from rowcall.service.shared_state.single_flight import CacheLease, release_unused_lease

log = logging.getLogger("rowcall.cache")


class DetachedProtocol:
    """Protocol without a client: it never disconnects, and nothing is sent."""

    def client_disconnect(self) -> Awaitable[None]:
        return asyncio.get_running_loop().create_future()


class Refresher:
    """Computes new responses of one endpoint. name: of the endpoint, for the log. steps: those that run the routine and
    store the result.
    """

    def __init__(self, name: str, steps: tuple[Step, ...], database: Database) -> None:
        self._name = name
        self._steps = (*steps, self._end)
        self._database = database
        self._runner = StepTasks(self._fail).runner

    def begin(self, context: RequestContext, lease: CacheLease) -> None:
        """Start a computation with the values of this request, and return at once. lease: the result is stored with it;
        it ends with the computation. A failure is logged.
        """
        quiet = RequestContext(context.scope, DetachedProtocol())
        quiet.values, quiet.user, quiet.body = context.values, context.user, context.body
        quiet.mask, quiet.has_null = context.mask, context.has_null
        quiet.arguments = list(context.arguments)
        quiet.sent_values = context.sent_values
        quiet.lease = lease
        quiet.at_end(release_unused_lease)
        self._runner.start(quiet, self._steps)

    def _end(self, context: RequestContext) -> None:
        """End an execution that is still streaming."""
        execution = context.execution
        if execution is not None and execution.streaming:
            # The result is too large to be stored, so the rest is not needed.
            self._database.end_stream(execution, gone=True)

    def _fail(self, _context: RequestContext, error: Exception) -> None:
        """Log that the computation has failed."""
        if isinstance(error, Problem):
            log.warning("%s: the stale response could not be refreshed: %s", self._name, error.detail or error.title)
        else:
            log.error("%s: the stale response could not be refreshed", self._name, exc_info=error)
