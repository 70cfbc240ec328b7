"""Options of batches."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.data.record import Record


@dataclass(frozen=True, slots=True)
class BatchOptions(Record):
    """Options of batches. path: of the endpoint. seconds: time limit of a whole batch. most_bytes: of all responses
    together."""

    path: str = "/batch"
    most_requests: int = 50
    most_bytes: int = 10_000_000
    seconds: float = 30.0
