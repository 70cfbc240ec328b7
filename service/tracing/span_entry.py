"""A finished span as plain data, which travels from a worker to the supervisor."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SpanEntry:
    """A finished span. parent: id of the span that it is part of; None for the first of a trace. root: whether it is
    the first of its trace in a process of this service. begins, ends: in nanoseconds since 1970.
    """

    trace: str
    id: str
    parent: str | None
    root: bool
    name: str
    kind: str
    begins: int
    ends: int
    failed: bool
    attributes: dict[str, str | int | float | bool]
