"""Serialization of events between processes and hosts, as JSON, which is independent of versions and fast to parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from rowcall.core.events.event import Event


class Batch(NamedTuple):
    """Events of one publishing host, numbered without gaps from `first`. origin: identifies the run of the publishing
    service.
    """

    origin: str
    first: int
    events: Sequence[Event]


def pack_events(events: Sequence[Event]) -> bytes:
    """Serialize events that have no numbers yet, for `unpack_events`."""
    return orjson.dumps([tuple(event) for event in events])


def unpack_events(data: bytes) -> list[Event]:
    return [Event(*row) for row in orjson.loads(data)]


def pack(batches: Sequence[Batch]) -> bytes:
    return orjson.dumps([(origin, first, [tuple(event) for event in events]) for origin, first, events in batches])


def unpack(data: bytes) -> list[Batch]:
    return [Batch(origin, first, [Event(*row) for row in rows]) for origin, first, rows in orjson.loads(data)]
