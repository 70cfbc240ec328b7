"""Background tasks of the service, and their supervision.

A task that nothing awaits ends silently, and its work stops: keys are not rotated, files not watched, sockets not
closed. So `Background` holds all such tasks, restarts permanent ones when they end, and logs their errors.
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
"""Longest delay before an attempt, in seconds."""
STEADY = 60.0
"""Seconds of work after which the delay of the next restart is the shortest one again."""


def pause(attempt: int) -> float:
    """Return the delay before attempt number `attempt` (from 0) in seconds: doubling from 50 ms, with jitter, at most
    `LONGEST_PAUSE`.
    """
    longest = min(LONGEST_PAUSE, 0.05 * 2.0 ** min(attempt, 16))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (spreads load, guards nothing)


class Background:
    """The tasks of one part of the service."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __iter__(self) -> Iterator[asyncio.Task[None]]:
        return iter(list(self._tasks))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine once, in a task. An error is logged."""
        self._hold(work)

    def keep(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` in a task permanently: whenever it ends, with or without an error, that is logged, and it is
        called again after a growing delay (`pause`).

        name: for the log, such as "the key rotation".
        """
        self._hold(_for_ever(name, work))

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in self:
            task.cancel()

    def _hold(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_end)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a background task failed", exc_info=error)


async def _for_ever(name: str, work: Callable[[], Awaitable[None]]) -> None:
    """Call `work` again and again, with growing delays."""
    attempt = 0
    while True:
        start = time.monotonic()
        error = await _outcome(work)
        if (task := asyncio.current_task()) is not None and task.cancelling():
            # The work has ended because of the cancellation, although with another exception or none.
            return
        attempt = 0 if time.monotonic() - start > STEADY else attempt + 1
        seconds = pause(attempt + 2)
        log.error("%s has ended and is restarted in %.1f s", name, seconds, exc_info=error)
        await asyncio.sleep(seconds)


async def _outcome(work: Callable[[], Awaitable[None]]) -> BaseException | None:
    """Run `work` and return the exception that ended it, or None.

    Raises only if this task is cancelled. A CancelledError that a library raises is returned.
    """
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
