"""Counted numbers and gauges of workers as metrics (`core.operations.exposition`)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.accounts.lockout import OUTCOMES
from rowcall.core.operations.exposition import GAUGES, GAUGES_OF_DATABASE, Family, Histogram
from rowcall.ext.driver.meter import bounds
from rowcall.service.metrics.meters import KEY_STATES
from rowcall.service.metrics.segments import Row, read

Gauge = tuple[str, Mapping[str, str], float]
"""Name, labels, value."""

STATUSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "499")
_HISTOGRAMS = (
    ("duration", "request_duration_seconds", "Time from the arrival of a request to the end of its last step."),
    ("wait", "request_wait_seconds", "Time that a request has waited for a connection and its turn there."),
    ("database", "request_database_seconds", "Time that the database took for a request, until its last row was read."),
)
"""Column, name and description of each histogram."""
_COUNTERS = (
    ("rows", "rows", "Rows that routines have returned."),
    ("bytes", "response_bytes", "Bytes of responses that were sent in one piece, before compression."),
    ("rendering", "rendering_seconds", "Time of rendering rows, where it is measured."),
    ("cache_hits", "cache_hits", "Requests that got a cached response."),
    ("cache_misses", "cache_misses", "Requests whose response was not cached and may be cached."),
    ("retries", "retries", "Calls that were repeated."),
    ("limited", "requests_limited", "Requests that were answered 429."),
    ("overloaded", "requests_overloaded", "Requests that were answered 503."),
)
"""Column, name and description of each counter."""
_OPTIONAL = frozenset({"rendering", "cache_hits", "cache_misses"})
"""Counters that are omitted while they are zero, as for most endpoints."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the service."""

    name: str
    """`supervisor`, `worker 0` …"""
    pid: int


def read_counts(folder: Path) -> list[Family]:
    """Return what all workers have counted so far. folder: the shared state of the host."""
    # Labels with zeros only are omitted: most reserved paths are never requested.
    rows = [row for row in read(folder) if any(row.numbers.values())]
    return [
        *_requests("rowcall", "endpoint", ("method", "route", "routine"), rows),
        *_endpoint_counters(row for row in rows if row.label[0] == "endpoint"),
        *_requests("rowcall_upstream", "upstream", ("upstream",), rows),
        _jobs(row for row in rows if row.label[0] == "job"),
        *_of_workers({row.label[1]: row for row in rows if row.label[0] == "worker"}),
    ]


def _requests(prefix: str, kind: str, names: Sequence[str], rows: Iterable[Row]) -> Iterable[Family]:
    requests = Family(f"{prefix}_requests", "counter", "Requests that were answered, by class of their status.")
    flying = Family(f"{prefix}_requests_in_flight", "gauge", "Requests that have begun and not ended.")
    upstream = kind == "upstream"
    histograms = [
        Family(f"{prefix}_{name}", "histogram", text) for _, name, text in _HISTOGRAMS[: 1 if upstream else 3]
    ]
    for row in rows:
        if row.label[0] != kind:
            continue
        labels = dict(zip(names, row.label[1:], strict=True))
        for status in STATUSES:
            if row.numbers[status]:
                # Towards an upstream server, 499 means that it has not responded.
                label = "none" if upstream and status == "499" else status
                requests.add(row.numbers[status], **labels, status=label)
        flying.add(row.numbers["in_flight"], **labels)
        for (column, *_), family in zip(_HISTOGRAMS, histograms, strict=False):
            family.add(_histogram(row, column), **labels)
    return (requests, flying, *histograms)


def _histogram(row: Row, column: str) -> Histogram:
    buckets = tuple(row.numbers[f"{column}:{bound}"] for bound in (*(f"{bound:g}" for bound in bounds), "+Inf"))
    return Histogram(bounds, buckets, row.numbers[f"{column}:sum"])


def _endpoint_counters(rows: Iterable[Row]) -> Iterable[Family]:
    families = {column: Family(f"rowcall_{name}", "counter", text) for column, name, text in _COUNTERS}
    for row in rows:
        labels = dict(zip(("method", "route", "routine"), row.label[1:], strict=True))
        for column, family in families.items():
            if row.numbers[column] or column not in _OPTIONAL:
                family.add(row.numbers[column], **labels)
    return families.values()


def _jobs(rows: Iterable[Row]) -> Family:
    ended = Family("rowcall_jobs_ended", "counter", "Attempts of jobs that have ended, by endpoint and outcome.")
    for row in rows:
        _, endpoint, outcome = row.label
        ended.add(row.numbers["rows"], endpoint=endpoint, outcome=outcome)
    return ended


def _of_workers(rows: Mapping[str, Row]) -> Iterable[Family]:
    unrouted = Family("rowcall_unrouted_requests", "counter", "Requests without an endpoint.")
    if row := rows.get("unrouted"):
        for status in STATUSES:
            if row.numbers[status]:
                unrouted.add(row.numbers[status], status=status)
    events = Family("rowcall_events_published", "counter", "Events that requests of this host have published.")
    if row := rows.get("events"):
        events.add(row.numbers["rows"])
    delivered, dropped = (
        Family(f"rowcall_events_{outcome}", "counter", text)
        for outcome, text in (
            ("delivered", "Events for open streams, counted for each stream that may see them."),
            ("dropped", "Events that the full queues of slow readers have dropped."),
        )
    )
    for family in (delivered, dropped):
        if row := rows.get(f"events {family.name.rpartition('_')[2]}"):
            family.add(row.numbers["rows"])
    sign_ins = Family("rowcall_sign_ins", "counter", "Sign-ins that failed, were refused, or locked further ones.")
    for outcome in OUTCOMES:
        if row := rows.get(f"sign-ins {outcome}"):
            sign_ins.add(row.numbers["rows"], outcome=outcome)
    keys = Family("rowcall_idempotent_requests", "counter", "Requests with an Idempotency-Key, and received webhooks.")
    for state, outcome in zip(KEY_STATES, ("new", "replayed", "running", "mismatch"), strict=True):
        if row := rows.get(f"keys {state}"):
            keys.add(row.numbers["rows"], outcome=outcome)
    return unrouted, events, delivered, dropped, sign_ins, keys


def gauges(worker_samples: Iterable[Sequence[Gauge]]) -> Iterable[Family]:
    """Yield a family for each name in `GAUGES`, with the values of all workers; other names are left out.
    worker_samples: the gauges of each worker.

    If several workers have the same gauge (name and labels), the sum is used; for gauges that describe the database,
    the largest value.
    """
    sums: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for worker_gauges in worker_samples:
        for name, labels, value in worker_gauges:
            values = sums.setdefault(name, {})
            key = tuple(labels.items())
            if name in GAUGES_OF_DATABASE:
                values[key] = max(values.get(key, 0.0), value)
            else:
                values[key] = values.get(key, 0.0) + value
    for name, text in GAUGES.items():
        yield Family(name, "gauge", text, list(sums.get(name, {}).items()))


_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGESIZE")


class Processes:
    """Metrics of the processes from the operating system (Linux), including the processor time of workers that have
    exited."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, float]] = {}
        self._before: dict[str, float] = {}

    def families(self, processes: Iterable[Process]) -> Iterable[Family]:
        """Return the metrics of these processes. A process that has exited is left out."""
        cpu = Family("rowcall_process_cpu_seconds", "counter", "Processor time, of a worker and those before it.")
        memory = Family(
            "rowcall_process_resident_memory_bytes", "gauge", "Resident memory, including memory that processes share."
        )
        files = Family("rowcall_process_open_fds", "gauge", "Open file descriptors.")
        started = Family("rowcall_process_start_time_seconds", "gauge", "When it was started, since the epoch.")
        for process in processes:
            # The process may exit meanwhile.
            with contextlib.suppress(OSError, ValueError, IndexError):
                folder = Path(f"/proc/{process.pid}")
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                resident = int((folder / "statm").read_text().split()[1]) * _PAGE
                descriptors = len(list((folder / "fd").iterdir()))
                cpu.add(
                    self._total_seconds(process, (int(fields[11]) + int(fields[12])) / _TICKS), process=process.name
                )
                memory.add(resident, process=process.name)
                files.add(descriptors, process=process.name)
                started.add(_boot_time() + int(fields[19]) / _TICKS, process=process.name)
        return cpu, memory, files, started

    def _total_seconds(self, process: Process, seconds: float) -> float:
        """Return the processor seconds of this process and of the processes that had its name before."""
        pid, last = self._last.get(process.name, (process.pid, 0.0))
        if pid != process.pid:
            self._before[process.name] = self._before.get(process.name, 0.0) + last
        self._last[process.name] = (process.pid, seconds)
        return self._before.get(process.name, 0.0) + seconds


def _boot_time() -> float:
    """Return when the machine was started, in seconds since the epoch."""
    lines = Path("/proc/stat").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("btime ")))
