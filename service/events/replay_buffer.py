"""The latest events of a host, for those who come back: bounded, and the same in the supervisor and in each worker.

The supervisor's outlives every worker; a worker's is a copy, so that thousands who come back at once are answered
without asking.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import orjson

from rowcall.core.events.event import Event
from rowcall.core.events.position import Position, advance, position_text
from rowcall.service.events.batches import Batch


class ReplayEntry(NamedTuple):
    origin: str
    number: int
    event: Event


class ReplayBuffer:
    """most: events. size: characters of all messages together. 0 of either: nothing is kept."""

    def __init__(self, most: int, size: int) -> None:
        self.most = most
        self._size = size
        self._held = 0
        self._events: deque[ReplayEntry] = deque()
        self._forgotten: dict[str, int] = {}
        """Number of the last event of each origin that is no longer kept."""
        self.position: dict[str, int] = {}

    def add(self, batch: Batch) -> list[str]:
        """Gives the id of each event."""
        ids = []
        for number, event in enumerate(batch.events, batch.first):
            self._keep(ReplayEntry(batch.origin, number, event))
            ids.append(position_text(self.position))
        return ids

    def _keep(self, kept: ReplayEntry) -> None:
        advance(self.position, kept.origin, kept.number)
        self._events.append(kept)
        self._held += len(kept.event.message)
        while len(self._events) > self.most or (self._held > self._size and len(self._events) > 1):
            gone = self._events.popleft()
            self._held -= len(gone.event.message)
            advance(self._forgotten, gone.origin, gone.number)

    def after(self, position: Position) -> list[ReplayEntry]:
        """What whoever has seen the stream up to there has missed, as far as it is kept."""
        return [stored for stored in self._events if stored.number > position.get(stored.origin, 0)]

    def misses(self, position: Position) -> bool:
        """Something behind this position is no longer kept."""
        return any(number > position.get(origin, 0) for origin, number in self._forgotten.items())

    def latest(self) -> Iterator[ReplayEntry]:
        """From the last one back."""
        return reversed(self._events)

    # --- a copy for a worker ---------------------------------------------------------------------------------------

    def pack(self) -> bytes:
        events = [(stored.origin, stored.number, tuple(stored.event)) for stored in self._events]
        return orjson.dumps((self.position, self._forgotten, events))

    def restore(self, packed: bytes) -> None:
        position, forgotten, events = orjson.loads(packed)
        self._events = deque(ReplayEntry(origin, number, Event(*row)) for origin, number, row in events)
        self._held = sum(len(stored.event.message) for stored in self._events)
        self._forgotten = forgotten
        self.position = position
