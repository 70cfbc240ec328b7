"""Use of responses after their lifetime: while one request computes a new one, or because none could be computed.

An invalidated response is never used: it is looked up in the cache at the moment in which it is needed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from rowcall.core.cache.entry import Entry
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.cache.background_refresh import Refresher
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.shared_state.single_flight import (
    NOT_SHARED,
    CacheBackend,
    LookupResult,
    StaleEntry,
    StaleLookupResult,
)

log = logging.getLogger("rowcall")

Give = Callable[[RequestContext, Entry, str], None]
"""Takes an entry as the result of the request; with the outcome for the cache status header."""
FAILED = 500
"""Status from which a response counts as failed (RFC 5861, 4)."""


class StaleResponses:
    """Stale responses of one endpoint. stale: how long and in which cases they are used. refresher: computes new ones.
    give: sends an entry. name: of the endpoint, for the log.
    """

    def __init__(self, store: CacheBackend, stale: Stale, refresher: Refresher, give: Give, name: str) -> None:
        self._store = store
        self._stale = stale
        self._refresher = refresher
        self._give = give
        self._name = name

    def look_up(
        self,
        key_for: Callable[[RequestContext], bytes | None],
        time_limit: float,
        take: Callable[[RequestContext, LookupResult], None],
    ) -> Step:
        """Return the lookup step. A stale response is sent and refreshed in the background. It is also sent if the
        computation of another request, for which this one waits, fails with a status from `FAILED` on, and the options
        allow that (stale-if-error). `take` gets all other results.

        key_for: returns the key of a request; None: it has none, and `take` gets `NOT_SHARED`. time_limit:
        seconds that a request may wait for the computation of another one; 0: no limit.
        """

        def take_any(context: RequestContext, stale: StaleLookupResult) -> None:
            if not isinstance(stale, StaleEntry):
                take(context, stale)
                return
            if stale.lease is not None:
                self._refresher.begin(context, stale.lease)
            self._give(context, stale.entry, "stale")

        async def take_later(context: RequestContext, key: bytes, waiting: Awaitable[StaleLookupResult]) -> None:
            try:
                stale = await waiting
            except Problem as problem:
                entry = await self._fallback_entry(problem, self._store.last, key)
                if entry is None:
                    raise
                self._give(context, entry, "stale")
            else:
                take_any(context, stale)

        def look_up(context: RequestContext) -> Waiting:
            key = key_for(context)
            if key is None:
                take(context, NOT_SHARED)
                return None
            stale = self._store.begin_stale(key, time_limit, self._stale)
            if isinstance(stale, Awaitable):
                return take_later(context, key, stale)
            take_any(context, stale)
            return None

        return look_up

    def with_fallback(self, run: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps of `run`, wrapped so that the last response is sent if a step fails with a status from
        `FAILED` on (stale-if-error). If the options do not allow that, the steps are unchanged."""
        return tuple(self._wrap_step(step) for step in run) if self._stale.error else run

    def _wrap_step(self, step: Step) -> Step:
        """Return a step that runs `step`. If `step` raises a `Problem`, `_fall_back` sends the last response instead,
        and the remaining steps that compute the response are left out; or it raises the problem again."""

        async def run_later(context: RequestContext, waiting: Awaitable[None]) -> None:
            try:
                await waiting
            except Problem as problem:
                await self._fall_back(context, problem)

        def run(context: RequestContext) -> Waiting:
            try:
                waiting = step(context)
            except Problem as problem:
                return self._fall_back(context, problem)
            return run_later(context, waiting) if isinstance(waiting, Awaitable) else waiting

        return run

    async def _fall_back(self, context: RequestContext, problem: Problem) -> None:
        """Send the last response in place of the problem, and release the lease. Raises the problem if the request has
        no lease, or if `_fallback_entry` returns no response."""
        lease = context.lease
        entry = None if lease is None else await self._fallback_entry(problem, lease.last)
        if entry is None:
            raise problem
        context.lease = None
        # Waiting requests look for the last response themselves.
        lease.give_up(problem)
        self._give(context, entry, "stale")
        context.leave()

    async def _fallback_entry(
        self, problem: Problem, last: Callable[..., Entry | Awaitable[Entry | None] | None], *key: bytes
    ) -> Entry | None:
        """Return the last response, which is sent instead of the problem, and log the problem unless it is logged
        already. None: the problem is no server error, the options do not allow stale responses after errors, or there
        is no last response.

        last: called with `key`, if that is passed, and the options of stale responses; returns the last response or
        None, or an awaitable of either."""
        if problem.status < FAILED or not self._stale.error:
            return None
        result = last(*key, self._stale)
        entry = await result if isinstance(result, Awaitable) else result
        if entry is not None and not problem.logged:
            # No response has its status, so that neither the request log nor `FailureResponses` logs it.
            reason = problem.detail or problem.title
            log.error("%s: %d: %s; a stale response is sent instead", self._name, problem.status, reason)
            problem.logged = True
        return entry
