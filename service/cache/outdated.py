"""Answers that are given after their lifetime: while one request makes a new one, or because none could be made.

What was forgotten is never given: an answer is looked up in the store at the moment in which it is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rowcall.core.cache.entry import Entry
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.cache.refreshing import Refresher
from rowcall.service.exchange.exchange import Exchange, Step, Waiting
from rowcall.service.store.flights import ALONE, AnswerStore, Found, FoundStale, Outdated

Give = Callable[[Exchange, Entry, str, int], None]
"""Answer an exchange with an entry; the word says where from, the number how many steps are needless then."""
FAILED = 500
"""Status from which on no new answer could be made (RFC 5861, 4)."""


class OutdatedAnswers:
    """Of one endpoint. needless: how many steps behind the one that looks up are so when it finds something."""

    def __init__(self, store: AnswerStore, stale: Stale, refresher: Refresher, give: Give, needless: int) -> None:
        self._store = store
        self._stale = stale
        self._refresher = refresher
        self._give = give
        self._needless = needless

    def look_up(
        self,
        key_for: Callable[[Exchange], bytes | None],
        patience: float,
        take: Callable[[Exchange, Found], None],
    ) -> Step:
        """The step in front of the run. take: what is to be done with what is not outdated."""

        def take_any(exchange: Exchange, found: FoundStale) -> None:
            if not isinstance(found, Outdated):
                take(exchange, found)
                return
            if found.ticket is not None:
                self._refresher.begin(exchange, found.ticket)
            self._give(exchange, found.entry, "stale", self._needless)

        async def take_later(exchange: Exchange, key: bytes, waiting: Awaitable[FoundStale]) -> None:
            try:
                found = await waiting
            except Problem as problem:
                entry = await self._instead(problem, self._store.last, key)
                if entry is None:
                    raise
                self._give(exchange, entry, "stale", self._needless)
            else:
                take_any(exchange, found)

        def look_up(exchange: Exchange) -> Waiting:
            key = key_for(exchange)
            if key is None:
                take(exchange, ALONE)
                return None
            found = self._store.begin_stale(key, patience, self._stale)
            if isinstance(found, Awaitable):
                return take_later(exchange, key, found)
            take_any(exchange, found)
            return None

        return look_up

    def guarded(self, run: tuple[Step, ...]) -> tuple[Step, ...]:
        """The run, where an answer that could not be made is replaced by the last one."""
        if not self._stale.error:
            return run
        return tuple(self._guarded(step, len(run) - index) for index, step in enumerate(run))

    def _guarded(self, step: Step, needless: int) -> Step:
        async def run_later(exchange: Exchange, waiting: Awaitable[None]) -> None:
            try:
                await waiting
            except Problem as problem:
                await self._fall_back(exchange, problem, needless)

        def run(exchange: Exchange) -> Waiting:
            try:
                waiting = step(exchange)
            except Problem as problem:
                return self._fall_back(exchange, problem, needless)
            return run_later(exchange, waiting) if isinstance(waiting, Awaitable) else waiting

        return run

    async def _fall_back(self, exchange: Exchange, problem: Problem, needless: int) -> None:
        ticket = exchange.ticket
        entry = None if ticket is None else await self._instead(problem, ticket.last)
        if entry is None:
            raise problem
        exchange.ticket = None
        # Those who wait look for the last answer themselves.
        ticket.give_up(problem)
        self._give(exchange, entry, "stale", needless)

    async def _instead(
        self, problem: Problem, last: Callable[..., Entry | Awaitable[Entry | None] | None], *key: bytes
    ) -> Entry | None:
        if problem.status < FAILED or not self._stale.error:
            return None
        found = last(*key, self._stale)
        return await found if isinstance(found, Awaitable) else found
