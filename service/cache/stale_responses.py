"""Answers that are given after their lifetime: while one request makes a new one, or because none could be made.

What was forgotten is never given: an answer is looked up in the store at the moment in which it is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rowcall.core.cache.entry import Entry
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.cache.background_refresh import Refresher
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.shared_state.single_flight import NOT_SHARED, CacheBackend, Found, FoundStale, StaleEntry

Give = Callable[[RequestContext, Entry, str, int], None]
"""Answer an exchange with an entry; the word says where from, the number how many steps are needless then."""
FAILED = 500
"""Status from which on no new answer could be made (RFC 5861, 4)."""


class StaleResponses:
    """Of one endpoint. needless: how many steps behind the one that looks up are so when it finds something."""

    def __init__(self, store: CacheBackend, stale: Stale, refresher: Refresher, give: Give, steps_to_skip: int) -> None:
        self._store = store
        self._stale = stale
        self._refresher = refresher
        self._give = give
        self._steps_to_skip = steps_to_skip

    def look_up(
        self,
        key_for: Callable[[RequestContext], bytes | None],
        time_limit: float,
        take: Callable[[RequestContext, Found], None],
    ) -> Step:
        """The step in front of the run. take: what is to be done with what is not outdated."""

        def take_any(context: RequestContext, found: FoundStale) -> None:
            if not isinstance(found, StaleEntry):
                take(context, found)
                return
            if found.lease is not None:
                self._refresher.begin(context, found.lease)
            self._give(context, found.entry, "stale", self._steps_to_skip)

        async def take_later(context: RequestContext, key: bytes, waiting: Awaitable[FoundStale]) -> None:
            try:
                found = await waiting
            except Problem as problem:
                entry = await self._instead(problem, self._store.last, key)
                if entry is None:
                    raise
                self._give(context, entry, "stale", self._steps_to_skip)
            else:
                take_any(context, found)

        def look_up(context: RequestContext) -> Waiting:
            key = key_for(context)
            if key is None:
                take(context, NOT_SHARED)
                return None
            found = self._store.begin_stale(key, time_limit, self._stale)
            if isinstance(found, Awaitable):
                return take_later(context, key, found)
            take_any(context, found)
            return None

        return look_up

    def guarded(self, run: tuple[Step, ...]) -> tuple[Step, ...]:
        """The run, where an answer that could not be made is replaced by the last one."""
        if not self._stale.error:
            return run
        return tuple(self._guarded(step, len(run) - index) for index, step in enumerate(run))

    def _guarded(self, step: Step, steps_to_skip: int) -> Step:
        async def run_later(context: RequestContext, waiting: Awaitable[None]) -> None:
            try:
                await waiting
            except Problem as problem:
                await self._fall_back(context, problem, steps_to_skip)

        def run(context: RequestContext) -> Waiting:
            try:
                waiting = step(context)
            except Problem as problem:
                return self._fall_back(context, problem, steps_to_skip)
            return run_later(context, waiting) if isinstance(waiting, Awaitable) else waiting

        return run

    async def _fall_back(self, context: RequestContext, problem: Problem, steps_to_skip: int) -> None:
        lease = context.lease
        entry = None if lease is None else await self._instead(problem, lease.last)
        if entry is None:
            raise problem
        context.lease = None
        # Those who wait look for the last answer themselves.
        lease.give_up(problem)
        self._give(context, entry, "stale", steps_to_skip)

    async def _instead(
        self, problem: Problem, last: Callable[..., Entry | Awaitable[Entry | None] | None], *key: bytes
    ) -> Entry | None:
        if problem.status < FAILED or not self._stale.error:
            return None
        result = last(*key, self._stale)
        return await result if isinstance(result, Awaitable) else result
