"""What the database was asked about a credential, remembered for some seconds by each worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from rowcall.service.request_context.request_context import ClientDisconnectedError

MOST = 10_000
"""Answers that say yes, and as many that say no: whoever sends ever new keys must not push out those that hold."""

Found = TypeVar("Found")


class IntrospectionCache(Generic[Found]):
    """One question at a time for each key, however many requests wait for its answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._found: dict[str, tuple[float, Found]] = {}
        self._missing: dict[str, float] = {}
        self._asking: dict[str, asyncio.Future[Found | None]] = {}
        self._forgotten = 0

    def known(self, key: str) -> tuple[Found | None] | None:
        """The answer, in a tuple; None: it has to be asked."""
        now = time.monotonic()
        if (found := self._found.get(key)) is not None and now < found[0]:
            return (found[1],)
        return (None,) if now < self._missing.get(key, 0.0) else None

    def forget(self) -> None:
        """Everything, and what is being asked right now: its answer may be from before."""
        self._forgotten += 1
        self._found.clear()
        self._missing.clear()
        self._asking.clear()

    async def ask(self, key: str, question: Callable[[], Awaitable[Found | None]]) -> Found | None:
        """Raises what the question raises."""
        while (asking := self._asking.get(key)) is not None:
            try:
                return await asyncio.shield(asking)
            except ClientDisconnectedError:
                # Whoever asked has left, and what he asked ended with him.
                continue
        asking = self._asking[key] = asyncio.ensure_future(self._answer(key, question))
        asking.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(asking)

    def _forget(self, key: str, done: asyncio.Future[Found | None]) -> None:
        if self._asking.get(key) is done:
            del self._asking[key]
        if not done.cancelled():
            done.exception()

    async def _answer(self, key: str, question: Callable[[], Awaitable[Found | None]]) -> Found | None:
        asked = self._forgotten
        found = await question()
        if self._seconds > 0 and asked == self._forgotten:
            until = time.monotonic() + self._seconds
            self._found.pop(key, None)
            self._missing.pop(key, None)
            if found is None:
                _bounded(self._missing)[key] = until
            else:
                _bounded(self._found)[key] = until, found
        return found


Kept = TypeVar("Kept")


def _bounded(kept: dict[str, Kept]) -> dict[str, Kept]:
    if len(kept) >= MOST:
        kept.pop(next(iter(kept)))
    return kept
