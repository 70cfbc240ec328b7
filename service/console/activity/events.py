"""What the event streams of all workers do at the moment."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter
from typing import Any

from rowcall.service.console.sources import Sources
from rowcall.service.metrics.segments import read

_FRESH = 0.9
"""Seconds for which a report serves further requests."""


class Events:
    """Reports about events. Thread-safe."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lock = threading.Lock()
        self._report: dict[str, Any] = {}
        self._at = 0.0

    def report(self) -> dict[str, Any]:
        """Return numbers of events since the start, the channels of PostgreSQL, and the open streams. However many
        pages are open, it is computed at most about once a second.
        """
        with self._lock:
            if not self._report or time.monotonic() - self._at >= _FRESH:
                # Reading the counters of many endpoints takes long for an event loop.
                self._report = {**self._sources.run(self._read()), **_counts(self._sources)}
                self._at = time.monotonic()
            return self._report

    async def _read(self) -> dict[str, Any]:
        """Return the report, except the numbers of `_counts`. Must be awaited in the event loop of the supervisor."""
        sources = self._sources
        activity = sources.events()
        needed, active = sources.channels()
        answers = await sources.streams()
        workers = {pid: f"worker {number}" for number, pid in enumerate(sources.workers()) if pid is not None}
        streams = [
            {"id": f"{pid}-{stream.number}", "worker": workers.get(pid, f"process {pid}"), **dataclasses.asdict(stream)}
            for pid, answer in answers
            if answer is not None
            for stream in answer.streams.streams
        ]
        streams.sort(key=lambda stream: stream["began"])
        by_channel = Counter(stream["channel"] for stream in streams)
        return {
            "published": activity.published,
            "received": activity.received,
            "notified": sum(activity.notified.values()),
            "replay": {"events": activity.stored, "most": activity.most},
            "open": sum(answer.streams.count for _, answer in answers if answer is not None),
            "silentWorkers": sum(answer is None for _, answer in answers),
            "channels": [
                {
                    "channel": channel,
                    "listening": channel in active,
                    "notified": activity.notified.get(channel, 0),
                    "streams": by_channel[channel],
                }
                for channel in sorted(needed | activity.notified.keys())
            ],
            "streams": streams,
        }


def _counts(sources: Sources) -> dict[str, float]:
    """Return how many events were delivered and dropped."""
    labels = {("worker", f"events {outcome}"): outcome for outcome in ("delivered", "dropped")}
    counts = dict.fromkeys(labels.values(), 0.0)
    for row in read(sources.folder):
        if row.label in labels:
            counts[labels[row.label]] += row.numbers["rows"]
    return counts
