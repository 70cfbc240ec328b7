"""Serialization of events between processes and hosts, as JSON, which is independent of versions and fast to parse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import orjson

from rowcall.core.events.event import Event
from rowcall.core.events.position import MOST_NUMBER, is_origin

_NAMES = Event._fields.index("names")


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


def unpack_received(data: bytes) -> list[Batch]:
    """Parse a message from an untrusted sender, and return its batches. Raises `ValueError` if it does not have the
    format of `pack`."""
    values = orjson.loads(data)
    if not isinstance(values, list) or not all(map(_is_batch, values)):
        raise ValueError("the message contains no batches of events")
    return [Batch(origin, first, [Event(*row) for row in rows]) for origin, first, rows in values]


def _is_batch(value: object) -> bool:
    """Return whether a JSON value is a batch."""
    match value:
        case [str(origin), int(first), [*rows]] if not isinstance(first, bool):
            return is_origin(origin) and 1 <= first <= MOST_NUMBER - len(rows) and all(map(_is_event, rows))
    return False


def _is_event(value: object) -> bool:
    """Return whether a JSON value is a list of the fields of an event, of which only the first is required."""
    if not isinstance(value, list) or not 1 <= len(value) <= len(Event._fields):
        return False
    names = value[_NAMES] if len(value) > _NAMES else []
    texts = value[:_NAMES] + value[_NAMES + 1 :]
    return isinstance(names, list) and all(isinstance(text, str) for text in (*texts, *names))
