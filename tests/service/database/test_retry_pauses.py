"""The pause before an execution is tried again."""

from __future__ import annotations

import asyncio
from typing import Any

from rowcall.service.database.execution.dedicated_runs import _wait
from rowcall.service.request.subrequests import AbsentClient, CapturedResponse
from rowcall.service.request_context.request_context import RequestContext
from tests.ext.wire import run, until


def test_a_request_that_is_cancelled_in_a_pause_leaves_no_task() -> None:
    async def work() -> None:
        scope: Any = None
        context = RequestContext(scope, CapturedResponse(AbsentClient()))
        before = asyncio.all_tasks()
        pause = asyncio.create_task(_wait(60, context))
        await until(lambda: len(asyncio.all_tasks() - before) == 2)
        pause.cancel()
        await until(lambda: asyncio.all_tasks() == before)

    run(work())
