"""Everything a worker has to do with events: takes what its requests publish, and has every stream get what it may.

Streams whose readers see the same are served as one: what an event means is decided once for all of them, and what has
come in the meantime is sent together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from rowcall.core.auth.claims import User
from rowcall.core.events.event import Event, Viewer
from rowcall.core.events.wire import event_text
from rowcall.service.events.batches import Batch
from rowcall.service.events.feed import Feed
from rowcall.service.events.stream import Stream

REST = 3.0
"""After sending, other work has so many times as long: under load events leave together, and others get their turn."""


class _Group:
    """Streams that see the same."""

    __slots__ = ("pending", "streams", "viewer")

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.streams: dict[Stream, None] = {}
        self.pending: list[bytes] = []


class Broadcaster:
    """`publish` what a notice says; `join`, then `add` for a stream."""

    def __init__(self) -> None:
        """To be made in the running event loop."""
        self.feed = Feed(self._deliver)
        self.publish = self.feed.publish
        self._loop = asyncio.get_running_loop()
        self._groups: dict[tuple[str, User | None], _Group] = {}
        self._by_execution: dict[str, dict[_Group, None]] = {}
        self._waiting: dict[_Group, None] = {}
        """Those with something to send."""
        self._sending: asyncio.TimerHandle | None = None
        self._not_before = 0.0

    # --- streams ---------------------------------------------------------------------------------------------------

    def add(self, stream: Stream) -> None:
        """It gets what is delivered from now on."""
        viewer = stream.viewer
        group = self._groups.get((viewer.execution, viewer.user))
        if group is None:
            group = self._groups[viewer.execution, viewer.user] = _Group(viewer)
            self._by_execution.setdefault(viewer.execution, {})[group] = None
        if group.pending:
            # It was not there when those came.
            self._send_to(group)
        group.streams[stream] = None

    def remove(self, stream: Stream) -> None:
        key = (stream.viewer.execution, stream.viewer.user)
        group = self._groups.get(key)
        if group is None or stream not in group.streams:
            return
        del group.streams[stream]
        if not group.streams:
            del self._groups[key]
            self._waiting.pop(group, None)
            same = self._by_execution[key[0]]
            del same[group]
            if not same:
                del self._by_execution[key[0]]

    def streams(self) -> list[Stream]:
        return [stream for group in self._groups.values() for stream in group.streams]

    # --- events ----------------------------------------------------------------------------------------------------

    def _deliver(self, batches: Sequence[Batch]) -> None:
        for batch in batches:
            for event in batch.events:
                self._place(event)
        if self._waiting and self._sending is None:
            self._sending = self._loop.call_at(self._not_before, self._send)

    def _place(self, event: Event) -> None:
        text = event_text(event.message)
        waiting = self._waiting
        for group in self._addressed(event):
            if group.viewer.may_see(event):
                group.pending.append(text)
                waiting[group] = None

    def _addressed(self, event: Event) -> Iterable[_Group]:
        """Those that the execution of the event does not rule out."""
        if not event.execution:
            return self._groups.values()
        return (*self._by_execution.get("", ()), *self._by_execution.get(event.execution, ()))

    def _send(self) -> None:
        began = self._loop.time()
        self._sending = None
        groups, self._waiting = self._waiting, {}
        for group in groups:
            self._send_to(group)
        ended = self._loop.time()
        self._not_before = ended + REST * (ended - began)

    def _send_to(self, group: _Group) -> None:
        data = b"".join(group.pending)
        group.pending.clear()
        if data:
            for stream in group.streams:
                stream.send(data)
