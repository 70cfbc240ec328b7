"""The supervisor's part: numbers the events of this host and hands them to the workers that have streams.

All events of a host pass here, one after another, so that every stream has them in the same order and once.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable

from rowcall.service.events.batches import Batch, pack, unpack_events

log = logging.getLogger("rowcall.events")

Send = Callable[[bytes], None]


class EventHub:
    def __init__(self) -> None:
        self._origin = secrets.token_hex(4)
        self._next = 1
        self._wanted: dict[object, Send] = {}
        self._unheard: set[str] = set()

    def want(self, worker: object, send: Send) -> bytes:
        """From now on `send` gets what is published. Gives what the worker has to know to begin with."""
        self._wanted[worker] = send
        return pack(())

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
        if not self._wanted:
            return
        packed = pack((batch,))
        for send in self._wanted.values():
            send(packed)

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
