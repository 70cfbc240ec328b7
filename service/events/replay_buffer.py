"""The replay buffer: the latest events of a host, for clients that reconnect. Bounded, and the same in the supervisor
and in each worker.

The one of the supervisor outlives every worker; those of workers are copies, so that thousands of clients that
reconnect at once are answered without a question to the supervisor.
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
    """A stored event. number: its place among the events of `origin`."""

    origin: str
    number: int
    event: Event


class ReplayBuffer:
    """A replay buffer. most: maximum number of events; 0: nothing is stored. size: maximum number of characters of all
    messages together; the latest event is stored even if it exceeds it alone.
    """

    def __init__(self, most: int, size: int) -> None:
        self.most = most
        self._size = size
        self._stored_size = 0
        self._events: deque[ReplayEntry] = deque()
        self._removed: dict[str, int] = {}
        """Number of the last event of each origin that was removed, or has not arrived."""
        self.position: dict[str, int] = {}
        """Number of the last event of each origin."""

    def __len__(self) -> int:
        return len(self._events)

    def add(self, batch: Batch) -> list[str]:
        """Add events and return their ids, which are the positions behind them as texts."""
        ids = []
        for number, event in enumerate(batch.events, batch.first):
            self._keep(ReplayEntry(batch.origin, number, event))
            ids.append(position_text(self.position))
        return ids

    def _keep(self, entry: ReplayEntry) -> None:
        """Add an event, and remove the oldest ones beyond the limits."""
        if entry.number > self.position.get(entry.origin, 0) + 1:
            advance(self._removed, entry.origin, entry.number - 1)
        advance(self.position, entry.origin, entry.number)
        self._events.append(entry)
        self._stored_size += len(entry.event.message)
        while len(self._events) > self.most or (self._stored_size > self._size and len(self._events) > 1):
            removed = self._events.popleft()
            self._stored_size -= len(removed.event.message)
            advance(self._removed, removed.origin, removed.number)

    def events_after(self, position: Position) -> list[ReplayEntry]:
        """Return the stored events behind this position."""
        return [stored for stored in self._events if self._is_behind(stored.origin, stored.number, position)]

    def misses(self, position: Position) -> bool:
        """Whether events behind this position are missing: they were removed, or have not arrived, or may be missing,
        because nothing is known of any host of the position, as after a restart of the service.
        """
        if position and self.position.keys().isdisjoint(position):
            return True
        return any(self._is_behind(origin, number, position) for origin, number in self._removed.items())

    def _is_behind(self, origin: str, number: int, position: Position) -> bool:
        """Return whether the event of `origin` with this number is behind `position`. It is not if positions no longer
        name the origin, because many others have published since.
        """
        return number > position.get(origin, 0 if origin in self.position else number)

    def latest(self) -> Iterator[ReplayEntry]:
        """Iterate over the stored events, the last one first."""
        return reversed(self._events)

    # --- a copy for a worker ---------------------------------------------------------------------------------------

    def pack(self) -> bytes:
        """Return the content as bytes for `restore` in a worker."""
        events = [(stored.origin, stored.number, tuple(stored.event)) for stored in self._events]
        return orjson.dumps((self.position, self._removed, events))

    def restore(self, packed: bytes) -> None:
        """Replace the content by that of the supervisor. packed: from `pack`."""
        position, removed, events = orjson.loads(packed)
        self._events = deque(ReplayEntry(origin, number, Event(*row)) for origin, number, row in events)
        self._stored_size = sum(len(stored.event.message) for stored in self._events)
        self._removed = removed
        self.position = position
