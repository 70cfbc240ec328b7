"""The moment from which nobody waits for an answer any more: whatever a request does then is ended.

It counts until the answer begins to leave. What runs in a task is cancelled with it; what is in the hands of the driver
is given up there, and its server has been told the same limit (`Database.begin_by_deadline`).
"""

from __future__ import annotations

import asyncio
from functools import partial

from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.execution import ExecutionState
from rowcall.service.request_context.request_context import RequestContext


class DeadlineError(Problem):
    """The deadline of a request has passed. That is its own affair: others who wait for the same shall try."""

    def __init__(self, context: RequestContext) -> None:
        begun = context.execution
        unsure = begun is not None and begun.state != ExecutionState.WAITING and not begun.statement.repeatable
        detail = "the deadline of the request has passed"
        super().__init__(504, f"{detail}; it is not known whether it took effect" if unsure else detail)


def end_by(context: RequestContext, moment: float) -> None:
    """moment: of the event loop's time. An earlier one that is set already stays."""
    if context.deadline and context.deadline <= moment:
        return
    context.deadline = moment
    timer = asyncio.get_running_loop().call_at(moment, _end, context)
    context.at_end(partial(_forget, timer))


def is_past(context: RequestContext) -> bool:
    """Whether the deadline of the exchange, if it has one, is over."""
    # The timers of the loop count in whole milliseconds.
    return context.deadline > 0 and asyncio.get_running_loop().time() >= context.deadline - 0.001


def _forget(timer: asyncio.TimerHandle, _context: RequestContext, _error: Exception | None) -> None:
    timer.cancel()


def _end(context: RequestContext) -> None:
    request = context.execution
    if context.answered or (request is not None and request.streaming):
        return
    task = context.task
    if task is not None and not task.done():
        task.cancel()
    elif request is not None and not request.finished:
        request.give_up(DeadlineError(context))
