"""Answers that a capability keeps for itself, in a table of its own and no more than a number of them.

When there is no room for another one it is not kept; those that are there stay, and may be kept anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import cached_property

from rowcall.core.cache.entry import Entry
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.single_flight import CacheLease, Found

SIZE = 67_108_864
"""Bytes of all of them."""


class BoundedCache:
    """Opened when it is first asked. To be made in the running event loop. most: answers. prune: seconds."""

    def __init__(self, host: HostState, name: str, most: int, prune: float) -> None:
        self._host = host
        self._name = name
        self._most = most
        self._prune_every = prune
        self._pruning: asyncio.TimerHandle | None = None

    @cached_property
    def _answers(self) -> MemoryCache:
        self._prune_later()
        return MemoryCache(self._host.answers(self._name, SIZE), self._host.message_bus)

    def begin(self, key: bytes) -> Found | Awaitable[Found]:
        """An answer, the ticket to compute it, or that it is none that is shared. Waits as long as it takes."""
        return self._answers.begin(key, 0)

    def keep(self, key: bytes, lease: CacheLease, entry: Entry, seconds: float | None) -> None:
        """Tells the answer to those who wait, and keeps it if there is room for it."""
        room = self._answers.count() < self._most or self._answers.get(key) is not None
        lease.keep(entry, seconds if room else 0.0)

    def _prune_later(self) -> None:
        self._pruning = asyncio.get_running_loop().call_later(self._prune_every, self._prune)

    def _prune(self) -> None:
        self._answers.prune()
        self._prune_later()

    def close(self) -> None:
        if self._pruning is not None:
            self._pruning.cancel()
        if "_answers" in self.__dict__:
            self._answers.close()
