"""Runs the steps of requests, and a task for each awaitable that a step returns."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from rowcall.ext.driver.request_context import StepRunner
from rowcall.service.request_context.deadline import DeadlineError, is_past
from rowcall.service.request_context.request_context import RequestContext


class StepTasks:
    """Runs the steps of requests (`runner`). If a step returns an awaitable, a task of the event loop awaits it, and
    then continues the request.

    on_failure: responds to a request whose step or awaitable has failed, or whose deadline has passed.
    """

    def __init__(self, on_failure: Callable[[RequestContext, Exception], None]) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self.runner = StepRunner(self._wait, on_failure)

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in self._tasks:
            task.cancel()

    def _wait(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        task = context.task = asyncio.get_running_loop().create_task(self._advance_after(context, waiting))
        self._tasks.add(task)
        task.add_done_callback(partial(self._on_end, context, waiting))

    async def _advance_after(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except Exception as error:
            self.runner.fail(context, error)
            return
        self.runner.advance(context)

    def _on_end(self, context: RequestContext, waiting: Awaitable[None], task: asyncio.Task[None]) -> None:
        """End the request if its task was cancelled at its deadline. The task cannot do that itself: it may have been
        cancelled before it began."""
        self._tasks.discard(task)
        if not task.cancelled():
            return
        if asyncio.iscoroutine(waiting):
            waiting.close()
        if is_past(context):
            self.runner.fail(context, DeadlineError(context))
