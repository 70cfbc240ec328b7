"""The supervisor's part: numbers the events of this host and hands them to the workers that have streams.

All events of a host pass here, one after another, so that every stream has them in the same order and once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from functools import partial
from typing import Protocol

from rowcall.core.events.event import Event
from rowcall.service.background import Background
from rowcall.service.events.batches import Batch, pack, unpack_events
from rowcall.service.events.replay_buffer import ReplayBuffer
from rowcall.service.options.capabilities.events import EventOptions

log = logging.getLogger("rowcall.events")

LAST_SENDING = 2.0
"""Seconds for what is left to send when the service stops."""

Send = Callable[[bytes], None]


class HostTransport(Protocol):
    """The way to other hosts."""

    def send(self, batch: Batch) -> None: ...

    async def sent(self) -> None:
        """Returns when nothing waits for its way any more."""

    async def catch_up(self, receive: Callable[[Batch], None]) -> None:
        """Gives what has been published before."""

    async def write(self) -> None:
        """Sends, for ever."""

    async def read(self, receive: Callable[[Batch], None]) -> None:
        """Gives what all hosts publish, this one too, for ever."""


class EventHub:
    def __init__(self, options: EventOptions) -> None:
        self._history = ReplayBuffer(options.kept, options.stored_bytes)
        self._origin = secrets.token_hex(4)
        self._next = 1
        self._transport: HostTransport | None = None
        self._listening = secrets.token_hex(4)
        """Who publishes what this host hears from PostgreSQL."""
        self._next_notified = 1
        self._wanted: dict[object, Send] = {}
        self._unpublished: set[str] = set()

    def want(self, worker: object, send: Send) -> bytes:
        """From now on `send` gets what is published. Gives what has been published before, where it is not known."""
        if worker in self._wanted:
            return b""
        self._wanted[worker] = send
        return self._history.pack()

    def forget(self, worker: object) -> None:
        """It has no streams any more, or is gone."""
        self._wanted.pop(worker, None)

    def take(self, published: bytes) -> None:
        """What a worker has published."""
        events = unpack_events(published)
        batch = Batch(self._origin, self._next, events)
        self._next += len(events)
        self._hand_out(batch)
        if self._transport is not None:
            self._transport.send(batch)

    def _hand_out(self, batch: Batch) -> None:
        self._history.add(batch)
        if not self._wanted:
            return
        packed = pack((batch,))
        for send in self._wanted.values():
            send(packed)

    # --- other hosts -----------------------------------------------------------------------------------------------

    async def connect(self, transport: HostTransport, background: Background) -> None:
        """Returns when what other hosts have published before is known, as far as that can be found out at once."""
        self._transport = transport
        await transport.catch_up(self._remember)
        background.keep("sending events to other hosts", transport.write)
        background.keep("hearing of other hosts' events", partial(transport.read, self._receive))

    async def finish(self) -> None:
        """Waits a moment for what has not left for other hosts; nothing is published any more."""
        if self._transport is not None:
            try:
                await asyncio.wait_for(self._transport.sent(), LAST_SENDING)
            except TimeoutError:
                log.warning("the last events have not left for other hosts within %g s and are lost", LAST_SENDING)

    def _remember(self, batch: Batch) -> None:
        """Published before there was anybody here to get it, but somebody may come who has left another host."""
        fresh = self._fresh(batch)
        if fresh is not None:
            self._history.add(fresh)

    def _receive(self, batch: Batch) -> None:
        fresh = self._fresh(batch)
        if fresh is not None:
            self._hand_out(fresh)

    def _fresh(self, batch: Batch) -> Batch | None:
        """Without what is known. Every host gets its own events back, and some of others' twice."""
        if batch.origin == self._origin:
            return None
        known = self._history.position.get(batch.origin, 0)
        first = max(batch.first, known + 1)
        events = batch.events[first - batch.first :]
        return Batch(batch.origin, first, events) if events else None

    # --- PostgreSQL ------------------------------------------------------------------------------------------------

    def notified(self, channel: str, payload: str) -> None:
        """PostgreSQL has told this host, as it has told every other, so that it goes to no other."""
        batch = Batch(self._listening, self._next_notified, (Event(payload, channel=channel),))
        self._next_notified += 1
        self._hand_out(batch)

    def unpublished_notices(self, path: str, severity: str) -> None:
        """An endpoint that does not publish has raised what would be an event elsewhere: once for each path."""
        if path in self._unpublished:
            return
        self._unpublished.add(path)
        log.warning(
            "%s raised a notice of severity %s, but does not publish events, so no subscriber gets it: add sse_publish "
            "to its comment, or set Service:WarnUnboundServerSentEventsNotices=false",
            *(path, severity),
        )
