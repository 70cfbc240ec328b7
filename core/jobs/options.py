"""Options of jobs."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.sections.declaration import flag, integer, interval, section, text, text_map, texts


def _queue_limit(value: str | None) -> int:
    """Return the limit of a queue. Raises ValueError if the text is not a number of at most 7 digits."""
    value = (value or "").strip()
    if not (value.isascii() and value.isdigit() and 0 < len(value) < 8):
        raise ValueError(f"{value!r} is no number of jobs; 0 holds the queue")
    return int(value)


@section("Jobs", "Calls of endpoints with `job`, which workers run later.")
class JobOptions:
    """Options of jobs. Times in seconds."""

    enabled: bool = flag("Enabled", False, "Accept jobs, and run them in the workers of this service.")
    path: str = text("Path", "/jobs", "Path below which jobs have their addresses.")
    concurrency: int = integer(
        "Concurrency", 8, "Jobs that a worker runs at the same time. 0: this service only accepts jobs."
    )
    queues: tuple[str, ...] = texts("Queues", (), "Queues whose jobs run here. Empty: all.")
    limits: Mapping[str, int] = text_map(
        "QueueLimits",
        {},
        'How many jobs of a queue run at the same time, in all services together: `{"reports": 2}`.',
        each=_queue_limit,
    )
    roles: tuple[str, ...] = texts("Roles", (), "Roles whose users may see and cancel the jobs of others.")
    retention: float = interval("Retention", "7 days", "Time after which finished jobs are removed.")
    longest_pause: float = interval("LongestPause", "1 hour", "Longest time between two attempts of a job.")
    shutdown: float = interval(
        "ShutdownTimeout",
        "10 seconds",
        "Longest wait for running jobs when the service stops, at most ConnectionSettings:Pool:ShutdownTimeout. Others "
        "are rolled back and wait again.",
    )
