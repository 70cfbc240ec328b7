"""Password hashing outside the event loop: few threads of low priority, with a bounded queue.

One hash takes a tenth of a second of processor time. A flood of logins must not slow down the rest of the service:
hashing threads run with low priority, and if too many logins wait, further ones are refused at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from rowcall.core.auth import argon2_hash, password_hash
from rowcall.core.auth.argon2_hash import Argon2
from rowcall.core.errors.problems import unavailable

T = TypeVar("T")

THREADS = 1
"""Hashing threads of each worker."""
QUEUE = 32
"""Most logins that wait for a thread of a worker."""
NICENESS = 10
"""Nice value of the hashing threads."""


def is_hash(stored: str) -> bool:
    """Return whether a text is a password hash that can be verified."""
    return password_hash.iterations_of(stored) is not None or argon2_hash.work_of(stored) is not None


class Hasher:
    """The password hasher of one worker."""

    def __init__(self, iterations: int, argon2: Argon2 | None = None) -> None:
        """iterations: work factor of hashes by PBKDF2. argon2: the work factor of new hashes by Argon2id; None: new
        hashes are made by PBKDF2.
        """
        self._iterations = iterations
        self._argon2 = argon2
        self._decoy = password_hash.decoy(iterations) if argon2 is None else argon2_hash.decoy(argon2)
        self._executor: ThreadPoolExecutor | None = None
        self._waiting = 0

    async def verify(self, password: str | None, stored: str) -> bool:
        """Return whether the password matches the stored hash; False for an invalid hash, and for an empty or missing
        password. Raises `Problem` 503 if too many logins wait.

        If the stored hash and new hashes are by PBKDF2, takes at least as long as a hash with the configured work
        factor, so that an old hash does not reveal by its speed that the user exists.
        """
        if not is_hash(stored):
            await self.pretend(password)
            return False
        return await self._run(lambda: self._verify(password, stored))

    def _verify(self, password: str | None, stored: str) -> bool:
        """Return whether the password matches a valid hash. Blocks the thread for the time of the hash, and for that of
        the configured work factor if the hash and new hashes are by PBKDF2.
        """
        if stored.startswith("$argon2"):
            return argon2_hash.verify_password(password, stored)
        work = self._iterations if self._argon2 is None else 0
        return password_hash.verify_password(password, stored, work)

    async def pretend(self, password: str | None) -> None:
        """Spend the time of `verify`, for a user who does not exist. Raises `Problem` 503 if too many logins wait."""
        await self._run(lambda: self._verify(password, self._decoy))

    async def hash(self, password: str) -> str:
        """Return a new hash of the password. Raises `Problem` 503 if too many logins wait."""
        argon2 = self._argon2
        if argon2 is not None:
            return await self._run(lambda: argon2_hash.hash_password(password, argon2))
        return await self._run(lambda: password_hash.hash_password(password, self._iterations))

    def is_outdated(self, stored: str) -> bool:
        """Return whether the hash is valid, and of another algorithm or work factor than new hashes."""
        if self._argon2 is not None:
            return is_hash(stored) and argon2_hash.work_of(stored) != self._argon2
        return is_hash(stored) and password_hash.iterations_of(stored) != self._iterations

    def close(self) -> None:
        """End the hashing thread after its present work; waiting work is cancelled."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        """Return the result of `work`, which runs in a hashing thread. Raises `Problem` 503 if too many logins wait."""
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
    """Lower the priority of this thread, on Linux only: elsewhere, the priority of the whole process would change."""
    if hasattr(os, "sched_getaffinity"):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
