"""The supervisor's part: numbers the events of this host and hands them to the workers that have streams.

All events of a host pass here, one after another, so that every stream has them in the same order and once.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

from rowcall.core.events.event import Event
from rowcall.service.events.batches import Batch, pack, unpack_events
from rowcall.service.events.history import History
from rowcall.service.options.capabilities.events import EventOptions

log = logging.getLogger("rowcall.events")

Send = Callable[[bytes], None]


class EventHub:
    def __init__(self, options: EventOptions) -> None:
        self._history = History(options.kept, options.kept_bytes)
        self._origin = secrets.token_hex(4)
        self._next = 1
        self._listening = secrets.token_hex(4)
        """Who publishes what this host hears from PostgreSQL."""
        self._next_notified = 1
        self._wanted: dict[object, Send] = {}
        self._unheard: set[str] = set()

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

    def _hand_out(self, batch: Batch) -> None:
        self._history.add(batch)
        if not self._wanted:
            return
        packed = pack((batch,))
        for send in self._wanted.values():
            send(packed)

    def notified(self, channel: str, payload: str) -> None:
        """PostgreSQL has told this host, as it has told every other, so that it goes to no other."""
        batch = Batch(self._listening, self._next_notified, (Event(payload, channel=channel),))
        self._next_notified += 1
        self._hand_out(batch)

    def unheard(self, path: str, severity: str) -> None:
        """An endpoint that does not publish has raised what would be an event elsewhere: once for each path."""
        if path in self._unheard:
            return
        self._unheard.add(path)
        log.warning(
            "%s raised a notice of severity %s, but does not publish events, so no subscriber gets it: add sse_publish "
            "to its comment, or set Service:WarnUnboundServerSentEventsNotices=false",
            *(path, severity),
        )
