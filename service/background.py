"""Work that goes on beside the requests: the one place that notices when it ends.

A task that nobody awaits ends silently, and what it did is not done any more: keys are not renewed, files not watched,
sockets not closed. So all of them are kept here: one that should go on for ever is begun again, and the log says so.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

log = logging.getLogger("rowcall")

LONGEST_PAUSE = 5.0
STEADY = 60.0
"""Seconds after which work that ends counts as having gone well until then."""


def pause(attempt: int) -> float:
    """Seconds to wait before attempt number `attempt` (from 0): doubling from 50 ms, with jitter, bounded."""
    longest = min(LONGEST_PAUSE, 0.05 * 2.0 ** min(attempt, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load, guards nothing)


class Background:
    """The tasks of one part of the service."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[None]]:
        return iter(list(self._tasks))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Once. An error is logged."""
        self._hold(work)

    def keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """For as long as the service lives: `work` is called again whenever what it gave has ended.

        name: what the log calls it, such as "the key rotation".
        """
        self._hold(_for_ever(name, work))

    def cancel(self) -> None:
        for task in self:
            task.cancel()

    def _hold(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)


async def _for_ever(name: str, work: Callable[[], Awaitable[None]]) -> None:
    attempt = 0
    while True:
        began = time.monotonic()
        error = await _outcome(work)
        attempt = 0 if time.monotonic() - began > STEADY else attempt + 1
        seconds = pause(attempt + 2)
        log.error("%s has ended and begins again in %.1f s", name, seconds, exc_info=error)
        await asyncio.sleep(seconds)


async def _outcome(work: Callable[[], Awaitable[None]]) -> BaseException | None:
    """What ended it. Raises only the cancellation of this task; libraries may raise one of their own."""
    try:
        await work()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return error
    except Exception as error:
        return error
    return None
