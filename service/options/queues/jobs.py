"""Read the section `Jobs`."""

from __future__ import annotations

from collections.abc import Iterator

from rowcall.core.config import Settings
from rowcall.core.jobs.options import JobOptions
from rowcall.service.startup_error import StartupError


def job_options(settings: Settings) -> JobOptions | None:
    """Return the options of jobs; None: they are off."""
    if not settings.flag("Jobs:Enabled"):
        return None
    return JobOptions(
        path=settings.text("Jobs:Path"),
        concurrency=settings.integer("Jobs:Concurrency"),
        queues=settings.texts("Jobs:Queues") or (),
        limits=tuple(_queue_limits(settings)),
        roles=settings.texts("Jobs:Roles") or (),
        retention=settings.seconds("Jobs:Retention"),
        longest_pause=settings.seconds("Jobs:LongestPause"),
        shutdown=settings.seconds("Jobs:ShutdownTimeout"),
    )


def _queue_limits(settings: Settings) -> Iterator[tuple[str, int]]:
    for name, text in settings.text_map("Jobs:QueueLimits").items():
        value = (text or "").strip()
        if not (value.isascii() and value.isdigit() and 0 < len(value) < 8):
            raise StartupError(f"Jobs:QueueLimits:{name}: {value!r} is no number of jobs; 0 holds the queue")
        yield name, int(value)
