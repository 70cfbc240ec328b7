"""A bounded cache of one capability: cached responses in a table of its own, limited in number.

When the limit is reached, no new entry is stored; existing entries stay, and may be replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import cached_property

from rowcall.core.cache.entry import Entry
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.single_flight import CacheLease, LookupResult

SIZE = 67_108_864
"""Size of the table in bytes."""


class BoundedCache:
    """A cache whose table is opened at its first use. Construct it in the running event loop.

    name: of the table. most: maximum number of entries. prune: seconds between removals of expired entries.
    """

    def __init__(self, host: HostState, name: str, most: int, prune: float) -> None:
        self._host = host
        self._name = name
        self._most = most
        self._prune_every = prune
        self._pruning: asyncio.TimerHandle | None = None

    @cached_property
    def _cache(self) -> MemoryCache:
        self._prune_later()
        return MemoryCache(self._host.cached_responses(self._name, SIZE), self._host.message_bus)

    def begin(self, key: bytes) -> LookupResult | Awaitable[LookupResult]:
        """Look up a key: return the entry, the lease to compute it, or `NOT_SHARED`. If another request is computing
        the entry, return an awaitable of one of these, which waits without a time limit, and raises the `Problem` with
        which the other request has failed."""
        return self._cache.begin(key, 0)

    def keep(self, key: bytes, lease: CacheLease, entry: Entry, seconds: float | None) -> None:
        """Deliver the entry to the waiting requests, and store it if the limit allows. lease: as `begin` has returned
        it for this key. seconds: lifetime; None: unlimited.
        """
        room = self._cache.count() < self._most or self._cache.get(key) is not None
        lease.keep(entry, seconds if room else 0.0)

    def _prune_later(self) -> None:
        self._pruning = asyncio.get_running_loop().call_later(self._prune_every, self._prune)

    def _prune(self) -> None:
        self._cache.prune()
        self._prune_later()

    def close(self) -> None:
        if self._pruning is not None:
            self._pruning.cancel()
        if "_cache" in self.__dict__:
            self._cache.close()
