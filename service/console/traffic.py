"""Traffic of each endpoint in the last hour: the current counters of the metrics minus those of the oldest stored
sample.

A sample of the counters is stored only while a page is open, at most each two minutes, and dropped after an hour. So
the counted time begins at the start of the service during its first hour, and now if no page was open for an hour.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from rowcall.core.errors.problems import Problem
from rowcall.core.operations.percentiles import percentile
from rowcall.ext.driver.meter import bounds
from rowcall.service.console.query import whole
from rowcall.service.metrics.report import STATUSES
from rowcall.service.metrics.segments import Row

HOUR = 3600.0
STEP = 120.0
"""Seconds between two samples."""
BUCKETS = (*(f"duration:{bound:g}" for bound in bounds), "duration:+Inf")
_COLUMNS = (*STATUSES, "duration:sum", *BUCKETS)
_PAGE = 100
_MOST = 1000
_SORTS = ("requests", "errors", "p99Seconds", "totalSeconds")

Name = tuple[str, str]
"""Method and path of an endpoint."""
Numbers = tuple[float, ...]


class _Sample(NamedTuple):
    """The counters at one moment. time: in seconds of the monotonic clock."""

    time: float
    numbers: Mapping[Name, Numbers]


class Traffic:
    """Samples of the counters of endpoints with requests. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # All counters are 0 when the service starts.
        self._samples: deque[_Sample] = deque([_Sample(clock(), {})])

    def since(self, rows: Iterable[Row]) -> tuple[float, dict[Name, dict[str, Any]]]:
        """Store a sample if it is due. Return seconds and traffic: the length of the counted time, at most an hour, and
        the traffic in it of each endpoint that had requests.

        rows: the counters now.
        """
        with self._lock:
            now = self._clock()
            numbers = _numbers(rows, self._samples[-1].numbers)
            if now - self._samples[-1].time >= STEP:
                self._samples.append(_Sample(now, numbers))
            while now - self._samples[0].time > HOUR:
                self._samples.popleft()
            first = self._samples[0]
        traffic: dict[Name, dict[str, Any]] = {}
        for name, counted in numbers.items():
            before = first.numbers.get(name)
            changes = counted if before is None else tuple(a - b for a, b in zip(counted, before, strict=True))
            described = _traffic_members(changes)
            if described["requests"]:
                traffic[name] = described
        return now - first.time, traffic


def _numbers(rows: Iterable[Row], newest: Mapping[Name, Numbers]) -> dict[Name, Numbers]:
    """Return the counters of endpoints with requests, summed over overloads. newest: the counters of the newest sample;
    unchanged ones are returned as the same objects, to save memory."""
    numbers: dict[Name, Numbers] = {}
    for row in rows:
        if row.label[0] != "endpoint" or not any(row.numbers[status] for status in STATUSES):
            continue
        name = (row.label[1], row.label[2])
        counted = tuple(row.numbers[column] for column in _COLUMNS)
        if name in numbers:
            counted = tuple(a + b for a, b in zip(numbers[name], counted, strict=True))
        numbers[name] = counted
    return {name: newest[name] if newest.get(name) == counted else counted for name, counted in numbers.items()}


def _traffic_members(changes: Numbers) -> dict[str, Any]:
    by_column = dict(zip(_COLUMNS, changes, strict=True))
    requests = sum(by_column[status] for status in STATUSES)
    buckets = [by_column[name] for name in BUCKETS]
    return {
        "requests": requests,
        "statuses": {status: by_column[status] for status in STATUSES if by_column[status]},
        "errors": by_column["5xx"],
        "totalSeconds": by_column["duration:sum"],
        "meanSeconds": by_column["duration:sum"] / requests if requests else None,
        "p50Seconds": percentile(bounds, buckets, 0.5),
        "p90Seconds": percentile(bounds, buckets, 0.9),
        "p99Seconds": percentile(bounds, buckets, 0.99),
    }


def traffic_page(seconds: float, traffic: Mapping[Name, Mapping[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the endpoints with traffic, the largest by `sort` first. Raises `Problem` 400 for an invalid
    `offset`, `limit` or `sort`.

    seconds: the time in which the traffic was counted. query: with `offset`, `limit` and `sort`.
    """
    offset, limit = whole(query, "offset", 0, 10_000_000), whole(query, "limit", _PAGE, _MOST)
    sort = query.get("sort", _SORTS[0])
    if sort not in _SORTS:
        raise Problem(400, f"sort: {sort[:50]!r} is none of {', '.join(_SORTS)}")
    ordered = sorted(traffic.items(), key=lambda item: (-(item[1][sort] or 0), item[0]))
    return {
        "seconds": seconds,
        "total": len(ordered),
        "offset": offset,
        "endpoints": [
            {"method": method, "path": path, **numbers} for (method, path), numbers in ordered[offset : offset + limit]
        ],
    }
