"""Hedging: a second request is sent if the first is slow. The first response is used, whatever its status, and the
other request is cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Response = TypeVar("Response")


async def hedge_request(
    ask: Callable[[], Awaitable[Response]], seconds: float, leave: Callable[[Response], None]
) -> Response:
    """Return the first result of `ask`, which is called again if the first call has not ended after `seconds`.

    ask: sends the request. leave: called with a response that is not used.

    Raises: Exception: that of `ask`, if all calls have failed. If the first call fails within `seconds`, there is no
    second call.
    """
    running: set[asyncio.Task[Response]] = {_begin_task(ask)}
    try:
        done, running = await asyncio.wait(running, timeout=seconds)
        if not done:
            running.add(_begin_task(ask))
        while True:
            # `exception` is called for all of them: asyncio would log an exception that was never retrieved.
            answers = [task.result() for task in done if task.exception() is None]
            for other in answers[1:]:
                leave(other)
            if answers:
                return answers[0]
            if done and not running:
                return done.pop().result()
            done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in running:
            task.cancel()
        for late in await asyncio.gather(*running, return_exceptions=True):
            if not isinstance(late, BaseException):
                leave(late)


def _begin_task(ask: Callable[[], Awaitable[Response]]) -> asyncio.Task[Response]:
    """Call `ask` in a task and return the task."""

    async def await_response() -> Response:
        return await ask()

    return asyncio.get_running_loop().create_task(await_response())
