"""Cache of introspection results in one worker, for some seconds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from rowcall.service.request_context.request_context import ClientDisconnectedError

MOST = 10_000
"""Most positive results, and most negative ones. They are counted separately, so that a client that sends invented keys
cannot displace the results of valid ones."""

Result = TypeVar("Result")


class IntrospectionCache(Generic[Result]):
    """Results by key, cached for `seconds`; 0: they are not cached. For each key, only one question to the database
    runs at a time; other requests wait for its result.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._found: dict[str, tuple[float, Result]] = {}
        self._missing: dict[str, float] = {}
        self._asking: dict[str, asyncio.Future[Result | None]] = {}
        self._invalidations = 0

    def cached_result(self, key: str) -> tuple[Result | None] | None:
        """Return the cached result in a tuple, `(None,)` if the question had no result. None: nothing is cached."""
        now = time.monotonic()
        if (entry := self._found.get(key)) is not None and now < entry[0]:
            return (entry[1],)
        return (None,) if now < self._missing.get(key, 0.0) else None

    def forget(self) -> None:
        """Discard all cached results after a change in the database. Running questions may be older than the change:
        their results are not cached, and a later `ask` does not wait for them."""
        self._invalidations += 1
        self._found.clear()
        self._missing.clear()
        self._asking.clear()

    async def ask(self, key: str, question: Callable[[], Awaitable[Result | None]]) -> Result | None:
        """Run the question, cache its result and return it (None is a negative one). If a question is running for the
        same key, return the result of that one. The cache is not read: call `cached_result` first. Raises what the
        question raises."""
        while (asking := self._asking.get(key)) is not None:
            try:
                return await asyncio.shield(asking)
            except ClientDisconnectedError:
                # The client of the request that asked has disconnected, which has cancelled its question.
                continue
        asking = self._asking[key] = asyncio.ensure_future(self._answer(key, question))
        asking.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(asking)

    def _forget(self, key: str, done: asyncio.Future[Result | None]) -> None:
        """Remove a finished question, and mark its exception as retrieved."""
        if self._asking.get(key) is done:
            del self._asking[key]
        if not done.cancelled():
            done.exception()

    async def _answer(self, key: str, question: Callable[[], Awaitable[Result | None]]) -> Result | None:
        """Run the question and return its result. Cache it, unless `forget` was called meanwhile."""
        generation = self._invalidations
        result = await question()
        if self._seconds > 0 and generation == self._invalidations:
            until = time.monotonic() + self._seconds
            self._found.pop(key, None)
            self._missing.pop(key, None)
            if result is None:
                _make_room(self._missing)[key] = until
            else:
                _make_room(self._found)[key] = until, result
        return result


Value = TypeVar("Value")


def _make_room(entries: dict[str, Value]) -> dict[str, Value]:
    """Remove the oldest entry if the dictionary is full; return the dictionary."""
    if len(entries) >= MOST:
        entries.pop(next(iter(entries)))
    return entries
