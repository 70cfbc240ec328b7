"""A whole edition in parts, each written while the one before it is being read by somebody else.

Parts are not for themselves: what several endpoints share is written once, in the first part that has it.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.snapshot.garbage_collection import paused
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot

ENDPOINTS = 256
"""In a part: about as much as a socket takes at once."""


def parts_of(snapshot: SchemaSnapshot) -> Iterator[bytes]:
    """The endpoints, and the rest at last."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written, pickle.HIGHEST_PROTOCOL)
    for begin in range(0, len(snapshot.endpoints), ENDPOINTS):
        yield _part(pickler, written, snapshot.endpoints[begin : begin + ENDPOINTS])
    yield _part(pickler, written, replace(snapshot, endpoints=()))


def _part(pickler: pickle.Pickler, written: io.BytesIO, value: object) -> bytes:
    with paused():
        pickler.dump(value)
    part = written.getvalue()
    written.seek(0)
    written.truncate()
    return part


class SnapshotParts:
    """The other end: `take` each of them, in their order."""

    def __init__(self) -> None:
        self._endpoints: list[Endpoint] = []
        self._read = _Changing()
        self._unpickler = pickle.Unpickler(self._read)  # noqa: S301 (from our own process over our own socket pair)

    def take(self, part: bytes) -> SchemaSnapshot | None:
        """The edition, with its last part."""
        self._read.now = io.BytesIO(part)
        value: Any = self._unpickler.load()
        if isinstance(value, SchemaSnapshot):
            return replace(value, endpoints=tuple(self._endpoints))
        self._endpoints += value
        return None


class _Changing:
    """A file that goes on in another one."""

    def __init__(self) -> None:
        self.now = io.BytesIO()

    def read(self, size: int = -1, /) -> bytes:
        return self.now.read(size)

    def readline(self) -> bytes:
        return self.now.readline()

    def readinto(self, buffer: Any, /) -> int:
        return self.now.readinto(buffer)
