"""The event hub in the supervisor: numbers the events of this host and passes them to the workers that have streams.

All events of a host pass here in one sequence, so that every stream gets them in the same order and once.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Protocol

from rowcall.core.events.event import Event
from rowcall.core.events.options import EventOptions
from rowcall.core.events.position import advance
from rowcall.service.background import Background
from rowcall.service.events.activity import HubActivity
from rowcall.service.events.batches import Batch, pack, unpack_events
from rowcall.service.events.replay_buffer import ReplayBuffer

log = logging.getLogger("rowcall.events")

LAST_SENDING = 2.0
"""Seconds to send remaining events to other hosts when the service stops."""

MOST_KNOWN = 65_536
"""Maximum number of other hosts whose last event is known. Each start of a host counts as another one. If a transport
passes its events once more, those of hosts beyond this number would be delivered again.
"""

Send = Callable[[bytes], None]
"""Sends batches (from `pack`) to a worker."""


class HostTransport(Protocol):
    """Cross-host transport of events."""

    def send(self, batch: Batch) -> None:
        """Queue events to be sent by `write`. If too many wait, the oldest ones are dropped."""

    async def wait_until_sent(self) -> None:
        """Wait until no event waits to be sent."""

    async def catch_up(self, receive: Callable[[Batch], None]) -> None:
        """Pass the events that were published before this process started to `receive`, if the transport has them."""

    async def write(self) -> None:
        """Send events, forever."""

    async def read(self, receive: Callable[[Batch], None]) -> None:
        """Pass the events that all hosts publish, including this one, to `receive`, forever."""


class EventHub:
    """The events of a host."""

    def __init__(self, options: EventOptions) -> None:
        self._history = ReplayBuffer(options.replay_events, options.stored_bytes)
        self._origin = secrets.token_hex(4)
        self._next = 1
        self._transport: HostTransport | None = None
        self._listening = secrets.token_hex(4)
        """Origin of the events that this host receives from PostgreSQL."""
        self._next_notified = 1
        self._notified: Counter[str] = Counter()
        self._received = 0
        self._known: dict[str, int] = {}
        """Number of the last event of each other host. A position names fewer hosts."""
        self._workers: dict[object, Send] = {}
        self._unpublished: set[str] = set()
        """Paths of endpoints of which `unpublished_notices` has warned."""

    @property
    def activity(self) -> HubActivity:
        history = self._history
        return HubActivity(self._next - 1, self._received, dict(self._notified), len(history), history.most)

    def add_worker(self, worker: object, send: Send) -> bytes:
        """Register a worker: from now on, all events are passed to it. Return the packed replay buffer; empty if the
        worker was registered already, because it then has the buffer.

        worker: any hashable object that identifies it. send: sends packed batches to it.
        """
        if worker in self._workers:
            return b""
        self._workers[worker] = send
        return self._history.pack()

    def remove_worker(self, worker: object) -> None:
        """Stop passing events to a worker that has no streams any more, or has ended. worker: as for `add_worker`."""
        self._workers.pop(worker, None)

    def publish(self, published: bytes) -> None:
        """Number the events that a worker has published, and pass them to all workers with streams and to other hosts.
        published: from `pack_events`.
        """
        events = unpack_events(published)
        batch = Batch(self._origin, self._next, events)
        self._next += len(events)
        self._hand_out(batch)
        if self._transport is not None:
            self._transport.send(batch)

    def _hand_out(self, batch: Batch) -> None:
        """Store a batch in the replay buffer, and send it to all workers with streams."""
        self._history.add(batch)
        if not self._workers:
            return
        packed = pack((batch,))
        for send in self._workers.values():
            send(packed)

    # --- other hosts -----------------------------------------------------------------------------------------------

    async def connect(self, transport: HostTransport, background: Background) -> None:
        """Start the cross-host transport. Return after the earlier events of other hosts have been read, as far as the
        transport has them and responds at once. background: runs the tasks that send and receive."""
        self._transport = transport
        await transport.catch_up(self._remember)
        background.keep("sending events to other hosts", transport.write)
        background.keep("receiving events of other hosts", partial(transport.read, self._receive))

    async def finish(self) -> None:
        """Wait until remaining events are sent to other hosts, at most `LAST_SENDING` seconds. Nothing may be published
        afterwards.
        """
        if self._transport is not None:
            try:
                await asyncio.wait_for(self._transport.wait_until_sent(), LAST_SENDING)
            except TimeoutError:
                log.warning("the last events were not sent to other hosts within %g s and are lost", LAST_SENDING)

    def _remember(self, batch: Batch) -> None:
        """Store events that were published before this start, for clients that reconnect after leaving another host."""
        fresh = self._fresh(batch)
        if fresh is not None:
            self._history.add(fresh)

    def _receive(self, batch: Batch) -> None:
        """Store those events of another host that are not known yet in the replay buffer, and send them to the workers
        with streams."""
        fresh = self._fresh(batch)
        if fresh is not None:
            self._received += len(fresh.events)
            self._hand_out(fresh)

    def _fresh(self, batch: Batch) -> Batch | None:
        """Return the batch without events that are known already, or None if all are known. The transport returns to
        each host its own events, and can pass those of other hosts twice.
        """
        if batch.origin == self._origin:
            return None
        first = max(batch.first, self._known.get(batch.origin, 0) + 1)
        events = batch.events[first - batch.first :]
        if not events:
            return None
        advance(self._known, batch.origin, first + len(events) - 1, MOST_KNOWN)
        return Batch(batch.origin, first, events)

    # --- PostgreSQL ------------------------------------------------------------------------------------------------

    def publish_notification(self, channel: str, payload: str) -> None:
        """Publish a notification of PostgreSQL as an event to the streams of this host. All other hosts receive the
        notification as well, so it is not sent to them.
        """
        batch = Batch(self._listening, self._next_notified, (Event(payload, channel=channel),))
        self._next_notified += 1
        self._notified[channel] += 1
        self._hand_out(batch)

    def unpublished_notices(self, path: str, severity: str) -> None:
        """Warn, once for each path, that an endpoint that does not publish has raised a notice of the event level.
        severity: of the notice.
        """
        if path in self._unpublished:
            return
        self._unpublished.add(path)
        log.warning(
            "%s raised a notice of severity %s, but does not publish events, so no subscriber gets it: add sse_publish "
            "to its comment, or set Service:WarnUnboundServerSentEventsNotices=false",
            *(path, severity),
        )
