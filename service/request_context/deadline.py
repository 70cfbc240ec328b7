"""The deadline of a request: the time after which its client no longer waits, so that its work is ended.

It applies until the response begins. Work in a task is cancelled with it; an execution in the driver is given up there,
and its server has received the same limit (`Database.begin_by_deadline`).
"""

from __future__ import annotations

import asyncio
from functools import partial

from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.execution import ExecutionState
from rowcall.service.request_context.request_context import RequestContext


class DeadlineError(Problem):
    """The deadline of a request has passed (504). Other requests that wait for the result of this one do not get this
    error, but try again."""

    def __init__(self, context: RequestContext) -> None:
        execution = context.execution
        unsure = (
            execution is not None and execution.state != ExecutionState.WAITING and not execution.statement.repeatable
        )
        detail = "the deadline of the request has passed"
        super().__init__(504, f"{detail}; it is not known whether it took effect" if unsure else detail)


def end_by(context: RequestContext, moment: float) -> None:
    """Set the deadline. moment: in time of the event loop. An earlier deadline already set is not changed."""
    if context.deadline and context.deadline <= moment:
        return
    context.deadline = moment
    timer = asyncio.get_running_loop().call_at(moment, _end_at_deadline, context)
    context.at_end(partial(_forget, timer))


def is_past(context: RequestContext) -> bool:
    """Whether the deadline of the request, if it has one, has passed."""
    # The timers of the event loop have a resolution of whole milliseconds.
    return context.deadline > 0 and asyncio.get_running_loop().time() >= context.deadline - 0.001


def _forget(timer: asyncio.TimerHandle, _context: RequestContext, _error: Exception | None) -> None:
    timer.cancel()


def _end_at_deadline(context: RequestContext) -> None:
    """End the work of a request whose deadline has passed, unless its response has begun."""
    request = context.execution
    if context.answered or (request is not None and request.streaming):
        return
    task = context.task
    if task is not None and not task.done():
        task.cancel()
    elif request is not None and not request.finished:
        request.give_up(DeadlineError(context))
