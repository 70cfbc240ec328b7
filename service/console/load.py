"""What all workers do at the moment: rates, latencies, pools, cache and processes, from the counters of all of them.

Nothing is recorded beyond the metrics. Samples are taken on request only. However many pages are open, this happens at
most about once a second.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from rowcall.core.config.sections.connections import PoolOptions
from rowcall.core.operations.percentiles import percentile
from rowcall.ext.driver.meter import bounds
from rowcall.service.console.sources import Sources
from rowcall.service.console.traffic import BUCKETS, Name, Traffic
from rowcall.service.metrics.report import STATUSES, Process, Processes, gauges
from rowcall.service.metrics.segments import Row, read
from rowcall.service.options.worker import WorkerOptions

_FRESH = 0.9
"""Seconds for which a sample serves further requests."""
_OLDEST = 30.0
"""Seconds after which a sample is too old for a rate."""
_SUMMED = ("cache_hits", "cache_misses", "retries", "limited", "overloaded", "in_flight", "duration:sum")

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class _Sample:
    """The counters at one moment. time: in seconds of the monotonic clock. totals: sums over `rows`."""

    time: float
    rows: list[Row]
    totals: dict[str, float]


class Load:
    """Reports about the current load, from samples of the counters of all workers. Thread-safe."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._lock = threading.Lock()
        self._last: _Sample | None = None
        self._overview: dict[str, Any] = {}
        self._processes = Processes()
        self._traffic = Traffic()

    def overview(self) -> dict[str, Any]:
        """Return the figures of the overview page: rates and latencies since the previous sample, and the current state
        of pools, cache and processes.

        If the previous sample is too old, two samples are taken with a second between them, during which the call
        blocks. Requests at the same moment get the same result.
        """
        with self._lock:
            before = self._last
            now = time.monotonic()
            if before is not None and now - before.time < _FRESH and self._overview:
                return self._overview
            if before is None or now - before.time > _OLDEST:
                before = self._take()
                threading.Event().wait(1.0)
            after = self._take()
            self._last = after
            self._overview = self._load_members(before, after)
            return self._overview

    def traffic(self) -> Mapping[tuple[str, str], dict[str, Any]]:
        """Return requests, errors, durations and rows of each endpoint since the start, summed over overloads, by its
        method and path.
        """
        rows: dict[Name, list[Row]] = {}
        for row in read(self._sources.folder):
            if row.label[0] == "endpoint":
                rows.setdefault((row.label[1], row.label[2]), []).append(row)
        return {name: _traffic_members(overloads) for name, overloads in rows.items()}

    def last_hour(self) -> tuple[float, dict[Name, dict[str, Any]]]:
        """Return seconds and traffic: the length of the counted time, at most an hour, and the traffic of each endpoint
        in it.
        """
        return self._traffic.since(read(self._sources.folder))

    def cache(self) -> dict[str, Any]:
        """Return hits and misses of each endpoint that has looked up cached responses, their sums, and the names of the
        cache profiles."""
        rows = [row for row in read(self._sources.folder) if row.label[0] == "endpoint"]
        used = [row for row in rows if row.numbers["cache_hits"] or row.numbers["cache_misses"]]
        hits, misses = _sum(used, "cache_hits"), _sum(used, "cache_misses")
        return {
            "hits": hits,
            "misses": misses,
            "ratio": _ratio(hits, misses),
            "profiles": sorted(self._sources.options.cache.names),
            "endpoints": [
                {
                    "endpoint": f"{row.label[1]} {row.label[2]}",
                    "hits": row.numbers["cache_hits"],
                    "misses": row.numbers["cache_misses"],
                    "ratio": _ratio(row.numbers["cache_hits"], row.numbers["cache_misses"]),
                }
                for row in used
            ],
        }

    def _take(self) -> _Sample:
        """Read the counters now. They are also stored for the traffic of the last hour, if that is due."""
        rows = read(self._sources.folder)
        self._traffic.since(rows)
        return _Sample(time.monotonic(), rows, _totals(rows))

    def _load_members(self, before: _Sample, after: _Sample) -> dict[str, Any]:
        seconds = after.time - before.time
        changes = {name: value - before.totals[name] for name, value in after.totals.items()}
        buckets = [changes[name] for name in BUCKETS]
        samples = self._sources.run(_as_coroutine(self._sources.sample()))
        reported = {family.name: family for family in gauges(item for item in samples if item is not None)}
        requests = sum(changes[status] for status in STATUSES)
        return {
            "seconds": seconds,
            "requestsPerSecond": requests / seconds,
            "errorsPerSecond": changes["5xx"] / seconds,
            "statuses": {status: after.totals[status] for status in STATUSES if after.totals[status]},
            "latency": {f"p{share * 100:g}": percentile(bounds, buckets, share) for share in (0.5, 0.9, 0.99)},
            "inFlight": after.totals["in_flight"],
            "retriesPerSecond": changes["retries"] / seconds,
            "limitedPerSecond": changes["limited"] / seconds,
            "overloadedPerSecond": changes["overloaded"] / seconds,
            "cache": {
                "hits": after.totals["cache_hits"],
                "misses": after.totals["cache_misses"],
                "ratio": _ratio(changes["cache_hits"], changes["cache_misses"]),
            },
            "pools": _pools(reported, self._sources.options, len(samples)),
            "streams": [dict(labels) | {"open": value} for labels, value in _values(reported, "rowcall_event_streams")],
            "silentWorkers": samples.count(None),
            "processes": self._process_list(),
            "host": socket.gethostname(),
            "endpoints": len(self._sources.snapshot().endpoints),
            "snapshot": self._sources.snapshot().number,
        }

    def _process_list(self) -> list[dict[str, Any]]:
        pids = {f"worker {number}": pid for number, pid in enumerate(self._sources.workers()) if pid is not None}
        processes = [Process("supervisor", os.getpid()), *(Process(name, pid) for name, pid in pids.items())]
        names = ("processorSeconds", "memoryBytes", "openFiles", "started")
        by_process: dict[str, dict[str, Any]] = {item.name: {"name": item.name, "pid": item.pid} for item in processes}
        for name, family in zip(names, self._processes.families(processes), strict=True):
            for labels, value in family.values:
                by_process[dict(labels)["process"]][name] = value
        return list(by_process.values())


def _totals(rows: Iterable[Row]) -> dict[str, float]:
    """Return the sum of each counter over all endpoints and the requests that no endpoint matched."""
    totals = dict.fromkeys((*STATUSES, *BUCKETS, *_SUMMED), 0.0)
    for row in rows:
        if row.label[0] == "endpoint" or row.label == ("worker", "unrouted"):
            for name in totals:
                totals[name] += row.numbers[name]
    return totals


def _traffic_members(rows: Sequence[Row]) -> dict[str, Any]:
    buckets = [_sum(rows, name) for name in BUCKETS]
    requests = sum(_sum(rows, status) for status in STATUSES)
    return {
        "requests": requests,
        "errors": _sum(rows, "5xx"),
        "meanSeconds": _sum(rows, "duration:sum") / requests if requests else None,
        "p99Seconds": percentile(bounds, buckets, 0.99),
        "rows": _sum(rows, "rows"),
        "inFlight": _sum(rows, "in_flight"),
    }


def _pools(reported: Mapping[str, Any], options: WorkerOptions, workers: int) -> list[dict[str, Any]]:
    """Return the load of each pool, summed over the workers. Its member `most` is the number of executions that can be
    in flight; further ones wait.

    reported: gauges by name. workers: their number.
    """
    pools: dict[tuple[tuple[str, str], ...], dict[str, Any]] = {}
    for name, member in (
        ("rowcall_database_connections", "connections"),
        ("rowcall_database_requests_in_flight", "inFlight"),
        ("rowcall_database_requests_waiting", "waiting"),
    ):
        for labels, value in _values(reported, name):
            described = dict(labels)
            pool: dict[str, Any] = {"connection": described.get("connection"), "pool": described.get("lane")}
            pools.setdefault(labels, pool)[member] = value
    for pool in pools.values():
        other = options.others.get(str(pool["connection"]).casefold())
        sizes = (options.database if other is None else other.options).pools
        most = _capacity(pool["pool"], sizes) * workers
        pool["most"] = most
        pool["saturation"] = pool["inFlight"] / most if most else None
    return list(pools.values())


def _capacity(name: str | None, options: PoolOptions) -> int:
    """Return how many executions a pool of a worker runs at a time. name: `exclusive` or `write`; any other is a
    pipelined pool.
    """
    if name == "exclusive":
        return options.dedicated_connections
    if name == "write":
        return options.write_connections * options.write_depth
    return options.pipelined_connections * options.pipelined_depth


def _values(reported: Mapping[str, Any], name: str) -> list[tuple[tuple[tuple[str, str], ...], float]]:
    return reported[name].values if name in reported else []


def _sum(rows: Iterable[Row], column: str) -> float:
    return sum(row.numbers[column] for row in rows)


def _ratio(hits: float, misses: float) -> float | None:
    return hits / (hits + misses) if hits + misses else None


async def _as_coroutine(work: Awaitable[Result]) -> Result:
    return await work
