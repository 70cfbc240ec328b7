"""Password hashing off the event loop: few threads, of low priority, and a bounded queue in front of them.

One hash takes a tenth of a second of a processor. A flood of logins must leave the rest of the service alone:
hashing threads run behind everything else, and when too many logins wait the next ones are sent away at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rowcall.core.auth import password_hash
from rowcall.core.errors.problems import unavailable

T = TypeVar("T")

THREADS = 1
"""For each worker."""
QUEUE = 32
"""Logins that may wait for a thread of this worker."""
NICENESS = 10


class Hasher:
    def __init__(self, iterations: int) -> None:
        self._iterations = iterations
        self._decoy = password_hash.decoy(iterations)
        self._executor: ThreadPoolExecutor | None = None
        self._waiting = 0

    async def verify(self, password: str | None, stored: str) -> bool:
        """Takes as long as for a hash of today's work factor at least. Raises `Problem` 503 when too many wait."""
        if password_hash.iterations_of(stored) is None:
            await self.pretend(password)
            return False
        return await self._run(lambda: password_hash.verify_password(password, stored, self._iterations))

    async def pretend(self, password: str | None) -> None:
        """Takes the time of `verify`, for a user who does not exist."""
        await self._run(lambda: password_hash.verify_password(password, self._decoy))

    async def hash(self, password: str) -> str:
        """Raises `Problem` 503 when too many wait."""
        return await self._run(lambda: password_hash.hash_password(password, self._iterations))

    def is_outdated(self, stored: str) -> bool:
        """A valid hash of another work factor than new ones get."""
        return password_hash.iterations_of(stored) not in (None, self._iterations)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._waiting >= QUEUE + THREADS:
            raise unavailable("too many passwords are being checked")
        if self._executor is None:
            self._executor = ThreadPoolExecutor(THREADS, "password", initializer=_step_back)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, work)
        finally:
            self._waiting -= 1


def _step_back() -> None:
    """Linux gives each thread a priority of its own; elsewhere the whole process would step back."""
    if hasattr(os, "sched_getaffinity"):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
