"""Two requests instead of a slow one: the first answer counts, whatever it says, and the other one is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Found = TypeVar("Found")


async def hedged(ask: Callable[[], Awaitable[Found]], seconds: float, leave: Callable[[Found], None]) -> Found:
    """What `ask` gives; asked once more when the first has been silent for so long. leave: told an answer that nobody
    is going to read.

    Raises:
        Exception: of `ask`, where no answer is left to wait for.
    """
    running: set[asyncio.Task[Found]] = {_begun(ask)}
    try:
        done, running = await asyncio.wait(running, timeout=seconds)
        if not done:
            running.add(_begun(ask))
        while True:
            # All of them are asked: an error that nobody looks at would be logged as one of ours.
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


def _begun(ask: Callable[[], Awaitable[Found]]) -> asyncio.Task[Found]:
    async def asking() -> Found:
        return await ask()

    return asyncio.get_running_loop().create_task(asking())
