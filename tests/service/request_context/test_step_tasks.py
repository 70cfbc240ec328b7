"""Tasks of the steps of requests."""

from __future__ import annotations

import asyncio

from rowcall.service.request_context.deadline import DeadlineError, end_by
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.step_tasks import StepTasks


def test_a_request_whose_task_is_cancelled_before_it_begins_gets_a_response() -> None:
    errors: list[Exception] = []

    async def work() -> None:
        ended = asyncio.Event()

        def fail(_context: RequestContext, error: Exception) -> None:
            errors.append(error)
            ended.set()

        async def endless(_context: RequestContext) -> None:
            await asyncio.Event().wait()

        context = RequestContext(None, None)
        end_by(context, asyncio.get_running_loop().time())
        StepTasks(fail).runner.start(context, (endless,))
        assert context.task is not None
        context.task.cancel()
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(work())
    (error,) = errors
    assert isinstance(error, DeadlineError)
