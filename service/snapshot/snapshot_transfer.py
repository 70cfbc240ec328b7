"""Transfer of a whole schema snapshot in parts, so that a part is written while the previous one is read.

Parts are not independent: values that several endpoints share are written once, in the first part that contains them.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.snapshot.garbage_collection import pause_collection
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot

ENDPOINTS = 256
"""Endpoints, or other large values, in a part: about as much as a socket takes at once."""


def parts_of(snapshot: SchemaSnapshot) -> Iterator[bytes]:
    """Yield the parts with endpoints, those with other large values, and finally the one with the remaining values."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    for begin in range(0, len(snapshot.endpoints), ENDPOINTS):
        yield _part(pickler, buffer, snapshot.endpoints[begin : begin + ENDPOINTS])
    members = iter(_members(snapshot))
    while batch := [*islice(members, ENDPOINTS)]:
        yield _part(pickler, buffer, _SharedValues(batch))
    yield _part(pickler, buffer, replace(snapshot, endpoints=()))


def _members(snapshot: SchemaSnapshot) -> Iterator[tuple[object, object]]:
    """Yield the items of the dictionaries of relations, relationships and functions of PostgREST's interface. They are
    sent before the last part, which then only refers to them."""
    if snapshot.postgrest is not None:
        schema = snapshot.postgrest.schema
        yield from schema.relations.items()
        yield from schema.relationships.items()
        yield from schema.functions.items()


@dataclass(frozen=True, slots=True)
class _SharedValues:
    """Values that are sent in a part of their own, so that later parts only refer to them."""

    values: list[tuple[object, object]]


def _part(pickler: pickle.Pickler, buffer: io.BytesIO, value: object) -> bytes:
    """Pickle a value and return what was written. buffer: the file of the pickler, which is emptied."""
    with pause_collection():
        pickler.dump(value)
    part = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return part


class SnapshotParts:
    """Reader of parts: call `take` with each part, in order."""

    def __init__(self) -> None:
        self._endpoints: list[Endpoint] = []
        self._read = _PartFile()
        self._unpickler = pickle.Unpickler(self._read)  # noqa: S301 (from our own process over our own socket pair)

    def take(self, part: bytes) -> SchemaSnapshot | None:
        """Read a part. Return the schema snapshot with the last part, None before."""
        self._read.now = io.BytesIO(part)
        value: Any = self._unpickler.load()
        if isinstance(value, SchemaSnapshot):
            return replace(value, endpoints=tuple(self._endpoints))
        if not isinstance(value, _SharedValues):
            self._endpoints += value
        return None


class _PartFile:
    """A file for the unpickler. now: its content, which is replaced for each part."""

    def __init__(self) -> None:
        self.now = io.BytesIO()

    def read(self, size: int = -1, /) -> bytes:
        return self.now.read(size)

    def readline(self) -> bytes:
        return self.now.readline()

    def readinto(self, buffer: Any, /) -> int:
        return self.now.readinto(buffer)
