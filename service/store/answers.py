"""The stores of answers of one worker: one for each kind, made when an endpoint first needs it (spec 2.1 rule 7)."""

from __future__ import annotations

import asyncio

from rowcall.core.cache.options import CacheOptions, Place
from rowcall.service.store.flights import AnswerStore
from rowcall.service.store.host import HostStore
from rowcall.service.store.memory_answers import LARGEST, MemoryAnswers

MOST_BUFFERED = 33_554_432
"""Bytes of an answer that a worker holds to keep it."""


class AnswerStores:
    """To be made in the running event loop."""

    def __init__(self, options: CacheOptions, host: HostStore) -> None:
        self.options = options
        self._host = host
        self._stores: dict[Place, AnswerStore] = {}
        self._pruning: asyncio.TimerHandle | None = None

    def of(self, place: Place) -> AnswerStore:
        store = self._stores.get(place)
        if store is None:
            store = self._stores[place] = self._memory()
        return store

    def largest(self, place: Place) -> int:
        """Bytes of an answer from which it is none that is kept."""
        most = min(self.options.memory // LARGEST, MOST_BUFFERED)
        return min(most, self.options.hybrid.largest_answer + 1) if place is Place.HYBRID else most

    def _memory(self) -> MemoryAnswers:
        store = self._stores.get(Place.MEMORY)
        if isinstance(store, MemoryAnswers):
            return store
        made = MemoryAnswers(self._host.environment("answers", self.options.memory), self._host.bus)
        self._stores[Place.MEMORY] = made
        self._prune_later(made)
        return made

    def _prune_later(self, memory: MemoryAnswers) -> None:
        def prune() -> None:
            memory.prune()
            self._prune_later(memory)

        self._pruning = asyncio.get_running_loop().call_later(self.options.prune_seconds, prune)

    def close(self) -> None:
        if self._pruning is not None:
            self._pruning.cancel()
        for store in set(self._stores.values()):
            store.close()
