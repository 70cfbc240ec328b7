"""A kept answer, and the bytes it is kept as: the same in the host's store and in Redis."""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEAD = struct.Struct("<BBIdddII")
_VERSION = 3
_NULL = 1


class Entry(NamedTuple):
    """What a routine gave, rendered. Headers and status are made anew for each request (caching-17)."""

    body: bytes
    rows: int
    is_null: bool = False
    written: float = 0.0
    """On the clock of whoever keeps it."""
    ends: float = 0.0
    """When it is no answer any more; 0: never."""
    fresh: float = 0.0
    """Until when it is as good as a new one; 0: as long as it is one."""
    head: bytes = b""
    """Status and headers as JSON, of an answer that is given as it is."""
    tags: tuple[str, ...] = ()


def packed(entry: Entry) -> bytes:
    flags = _NULL if entry.is_null else 0
    tags = "\n".join(entry.tags).encode() if entry.tags else b""
    numbers = (min(entry.rows, 2**32 - 1), entry.written, entry.ends, entry.fresh, len(entry.head), len(tags))
    return _HEAD.pack(_VERSION, flags, *numbers) + entry.head + tags + entry.body


def unpacked(data: bytes, start: int = 0) -> Entry | None:
    """None for bytes that are no entry: another version's, or somebody else's. start: where it begins."""
    if len(data) < start + _HEAD.size or data[start] != _VERSION:
        return None
    _version, flags, rows, written, ends, fresh, length, width = _HEAD.unpack_from(data, start)
    head = start + _HEAD.size
    middle = head + length
    body = middle + width
    tags = tuple(data[middle:body].decode().split("\n")) if width else ()
    return Entry(data[body:], rows, bool(flags & _NULL), written, ends, fresh, data[head:middle], tags)
