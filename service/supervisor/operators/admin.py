"""The admin listener: metrics and profiles of all processes for operators."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import orjson

from rowcall.core.errors.problems import Problem
from rowcall.core.operations.exposition import (
    OPEN_METRICS,
    PLAIN,
    Family,
    exposition,
    single_value_family,
    wants_open_metrics,
)
from rowcall.service.metrics.admin import AdminListener, AdminRequest, AdminResponse, Mount, Page
from rowcall.service.metrics.report import Gauge, Process, Processes, gauges, read_counts
from rowcall.service.options.server.metrics import AdminOptions
from rowcall.service.supervisor.operators.profiling import LONGEST, SECONDS, Profiler

_ANSWER_WITHIN = 5.0
"""Seconds within which the event loop must have collected the gauges."""


Result = TypeVar("Result")


class Admin:
    """The admin listener and its pages."""

    def __init__(
        self,
        options: AdminOptions,
        folder: Path,
        sample: Callable[[], Awaitable[Sequence[Sequence[Gauge] | None]]],
        workers: Callable[[], Sequence[int | None]],
        profiler: Profiler,
        mounts: Mapping[str, Mount],
    ) -> None:
        """folder: the shared state of the host. sample: returns an awaitable of the gauges of each worker, None for one
        that does not answer. workers: returns the process id of each worker by number, None for one that is being
        replaced. mounts: by the first segment of their paths. Must be created in the running event loop. Raises
        `StartupError` if it cannot listen."""
        self._folder = folder
        self._sample = sample
        self._workers = workers
        self._loop = asyncio.get_running_loop()
        self._processes = Processes()
        self._one_at_a_time = threading.Lock()
        self.restarts = 0
        """Number of workers that have exited and were replaced."""
        self._profiler = profiler
        by_method: dict[str, Page] = {"GET": self._metrics, "POST": self._profile}
        pages = {(method, path): by_method[method] for method, path in options.pages}
        self._listener = AdminListener(options, pages, mounts)
        self.url = self._listener.url

    def close(self) -> None:
        """Close the listener. Blocks until its thread has ended, so it must not be called in the event loop."""
        self._listener.close()

    def _metrics(self, request: AdminRequest) -> AdminResponse:
        """Return the metrics of all processes, as Prometheus text or OpenMetrics. Called in a thread. Raises
        `TimeoutError` if the event loop has not collected the gauges within `_ANSWER_WITHIN`.
        """
        open_metrics = wants_open_metrics(request.accept)
        result = asyncio.run_coroutine_threadsafe(_as_coroutine(self._sample()), self._loop).result(_ANSWER_WITHIN)
        with self._one_at_a_time:
            families = [
                *read_counts(self._folder),
                *gauges(item for item in result if item is not None),
                *self._processes.families(self._running_processes()),
                *supervisor_families(self._workers(), result, self.restarts),
            ]
        return AdminResponse(OPEN_METRICS if open_metrics else PLAIN, exposition(families, open_metrics=open_metrics))

    def _profile(self, request: AdminRequest) -> AdminResponse:
        """Profile the workers, or the one that the request names, and return where the profiles are. Called in a
        thread. Raises `Problem` 400 for an invalid number, and the errors of `Profiler.profile`.
        """
        seconds = _seconds(request)
        if not 0 < seconds <= LONGEST:
            raise Problem(400, f"seconds: between 0 and {LONGEST:g}")
        only = request.query.get("worker")
        if only is not None and not (only.isdecimal() and len(only) < 10):  # `int` refuses thousands of digits
            raise Problem(400, f"worker: {only[:50]!r} is no number of a worker")
        profiling = self._profiler.profile(seconds, None if only is None else int(only))
        profiles = asyncio.run_coroutine_threadsafe(_as_coroutine(profiling), self._loop).result()
        members = {"seconds": seconds, "profiles": [asdict(profile) for profile in profiles]}
        return AdminResponse("application/json", orjson.dumps(members))

    def _running_processes(self) -> list[Process]:
        """Return the supervisor and the workers that run."""
        workers = [Process(f"worker {n}", pid) for n, pid in enumerate(self._workers()) if pid is not None]
        return [Process("supervisor", os.getpid()), *workers]


def supervisor_families(
    workers: Sequence[int | None], samples: Sequence[Sequence[Gauge] | None], restarts: int
) -> list[Family]:
    """Return the metrics of the supervisor. workers: process ids, None for one that is being replaced. samples: the
    gauges of each worker, None for one that did not answer. restarts: number of workers that were replaced.
    """
    running = len(workers) - workers.count(None)
    return [
        single_value_family("rowcall_workers", "gauge", "Workers that run.", running),
        single_value_family(
            "rowcall_workers_silent",
            "gauge",
            "Workers that have not reported their gauges in time.",
            samples.count(None),
        ),
        single_value_family(
            "rowcall_worker_restarts", "counter", "Workers that have exited and were replaced.", restarts
        ),
        Family("rowcall_build_info", "gauge", "Always 1.", [((("version", version("rowcall")),), 1.0)]),
    ]


async def _as_coroutine(work: Awaitable[Result]) -> Result:
    """Return the result of `work`, as a coroutine, which `run_coroutine_threadsafe` requires."""
    return await work


def _seconds(request: AdminRequest) -> float:
    """Return the duration of the profile that the request asks for. Raises `Problem` 400 if it is no number."""
    try:
        return float(request.query.get("seconds", SECONDS))
    except ValueError:
        raise Problem(400, f"seconds: {request.query['seconds'][:50]!r} is no number") from None
