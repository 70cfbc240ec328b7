"""Options of jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobOptions:
    """queues: whose jobs run here; empty: all. Times in seconds."""

    path: str = "/jobs"
    concurrency: int = 8
    queues: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    retention: float = 604_800.0
    longest_pause: float = 3600.0
