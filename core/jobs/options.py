"""Options of jobs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobOptions:
    """Options of jobs. queues: whose jobs run here; empty: all. Times in seconds."""

    path: str = "/jobs"
    concurrency: int = 8
    queues: tuple[str, ...] = ()
    limits: tuple[tuple[str, int], ...] = ()
    """Queues, and how many of their jobs run at the same time in all services."""
    roles: tuple[str, ...] = ()
    retention: float = 604_800.0
    longest_pause: float = 3600.0
    shutdown: float = 10.0
    """For running jobs when the worker stops."""
