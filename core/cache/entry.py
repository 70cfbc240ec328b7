"""A cached response, and its serialized form, which is the same in shared memory and in Redis."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEAD = struct.Struct("<BBIdddII")
_VERSION = 3
_NULL = 1


class Entry(NamedTuple):
    """A cached response: the rendered result of a routine. Headers and status are made for each request (caching-17).

    written, ends, fresh: in seconds on the clock of the backend.
    """

    body: bytes
    rows: int
    is_null: bool = False
    written: float = 0.0
    """When it was written."""
    ends: float = 0.0
    """When it ceases to exist; 0: never."""
    fresh: float = 0.0
    """Until when it is fresh; 0: as long as it exists."""
    head: bytes = b""
    """Status and headers as JSON, of the response of another service that is sent unchanged."""
    tags: tuple[str, ...] = ()


def pack_entry(entry: Entry) -> bytes:
    """Serialize an entry. The reverse is `unpack_entry`."""
    flags = _NULL if entry.is_null else 0
    tags = "\n".join(entry.tags).encode() if entry.tags else b""
    numbers = (min(entry.rows, 2**32 - 1), entry.written, entry.ends, entry.fresh, len(entry.head), len(tags))
    return _HEAD.pack(_VERSION, flags, *numbers) + entry.head + tags + entry.body


def unpack_entry(data: bytes, start: int = 0) -> Entry | None:
    """Deserialize the entry that begins at `start` and ends with `data`. Returns None if `data` is shorter than the
    fixed part of an entry, or if its format has another version."""
    if len(data) < start + _HEAD.size or data[start] != _VERSION:
        return None
    _version, flags, rows, written, ends, fresh, length, width = _HEAD.unpack_from(data, start)
    head = start + _HEAD.size
    middle = head + length
    body = middle + width
    tags = tuple(data[middle:body].decode().split("\n")) if width else ()
    return Entry(data[body:], rows, bool(flags & _NULL), written, ends, fresh, data[head:middle], tags)
