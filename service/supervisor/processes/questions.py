"""Questions of the supervisor to its workers, each with a number of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from rowcall.service.supervisor.channel import (
    Identified,
    Invalidated,
    InvalidateEntry,
    InvalidateTags,
    SpansReported,
    StreamEnded,
    StreamsReported,
)
from rowcall.service.supervisor.processes.worker_process import SAMPLE_WITHIN, Gauges, Headers
from rowcall.service.supervisor.processes.workers import Workers


class Questions:
    """Asks all workers, or one for all; without an answer the result is None."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._numbers = itertools.count()

    def number(self) -> int:
        """Return the number of a new question."""
        return next(self._numbers)

    async def sample(self) -> list[Gauges | None]:
        """Return the gauges of each worker."""
        number = self.number()
        return await asyncio.gather(*(worker.sample(number, SAMPLE_WITHIN) for worker in self._workers.running))

    async def invalidate_tags(self, tags: tuple[str, ...]) -> Invalidated | None:
        """Invalidate the cached responses with one of these tags, for all workers."""
        return await self._invalidate(InvalidateTags(self.number(), tags))

    async def invalidate_entry(self, endpoint: str, arguments: Mapping[str, Any]) -> Invalidated | None:
        """Invalidate the cached response of an endpoint to a request with these arguments, for all workers."""
        return await self._invalidate(InvalidateEntry(self.number(), endpoint, arguments))

    async def _invalidate(self, question: InvalidateTags | InvalidateEntry) -> Invalidated | None:
        worker = self._workers.any_serving()
        return None if worker is None else await worker.invalidate(question)

    async def identify(self, headers: Headers, address: str) -> Identified | None:
        """Return which user request headers authenticate, sent from an address."""
        worker = self._workers.any_serving()
        return None if worker is None else await worker.identify(self.number(), headers, address)

    async def streams(self) -> list[tuple[int, StreamsReported | None]]:
        """Return the process id of each worker, and its open event streams."""
        workers, number = self._workers.running, self.number()
        reports = await asyncio.gather(*(worker.streams(number) for worker in workers))
        return [(worker.process.pid, report) for worker, report in zip(workers, reports, strict=True)]

    async def spans(self, trace: str | None) -> list[tuple[int, SpansReported | None]]:
        """Return the process id of each worker, and its spans of a trace; with None, the first ones of its requests."""
        workers, number = self._workers.running, self.number()
        reports = await asyncio.gather(*(worker.spans(number, trace) for worker in workers))
        return [(worker.process.pid, report) for worker, report in zip(workers, reports, strict=True)]

    async def end_stream(self, pid: int, stream: int) -> StreamEnded | None:
        """End an event stream of the worker with this process id; None without such a worker or an answer."""
        worker = next((item for item in self._workers.running if item.process.pid == pid), None)
        return None if worker is None else await worker.end_stream(self.number(), stream)
