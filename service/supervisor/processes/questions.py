"""Questions of the supervisor to its workers, each with a number of its own."""

from __future__ import annotations

import asyncio
import itertools

from rowcall.service.supervisor.channel import (
    EndStreamReply,
    IdentityReply,
    InvalidateEntry,
    InvalidateTags,
    InvalidationReply,
    SpansReply,
    StreamsReply,
)
from rowcall.service.supervisor.processes.worker_process import SAMPLE_WITHIN, Gauges, Headers
from rowcall.service.supervisor.processes.workers import Workers


class Questions:
    """Sends requests to the workers and returns their replies; None for a worker that does not reply in time.

    A request that one worker can answer for all is sent to a worker that serves.
    """

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._numbers = itertools.count()

    def number(self) -> int:
        """Return a number that no other request has."""
        return next(self._numbers)

    async def sample(self) -> list[Gauges | None]:
        """Return the gauges of each worker; None for one that does not reply in time."""
        number = self.number()
        return await asyncio.gather(*(worker.sample(number, SAMPLE_WITHIN) for worker in self._workers.running))

    async def invalidate_tags(self, tags: tuple[str, ...]) -> InvalidationReply | None:
        """Invalidate the cached responses with one of these tags, for all workers. Return the reply; None if there is
        none.
        """
        return await self._invalidate(InvalidateTags(self.number(), tags))

    async def invalidate_entry(self, endpoint: str, arguments: bytes) -> InvalidationReply | None:
        """Invalidate the cached response of an endpoint to a request with these arguments, for all workers. endpoint:
        method and path. arguments: a JSON object. Return the reply; None if there is none.
        """
        return await self._invalidate(InvalidateEntry(self.number(), endpoint, arguments))

    async def _invalidate(self, question: InvalidateTags | InvalidateEntry) -> InvalidationReply | None:
        """Send the question to a worker that serves, and return its reply; None: there is no such worker or reply."""
        worker = self._workers.any_serving()
        return None if worker is None else await worker.invalidate(question)

    async def identify(self, headers: Headers, address: str) -> IdentityReply | None:
        """Return which user these headers authenticate in a request from this client address; None if no worker
        replies. headers: pairs of name and value."""
        worker = self._workers.any_serving()
        return None if worker is None else await worker.identify(self.number(), headers, address)

    async def streams(self) -> list[tuple[int, StreamsReply | None]]:
        """Return the process id of each worker, and its open event streams (None: it does not reply in time)."""
        workers, number = self._workers.running, self.number()
        reports = await asyncio.gather(*(worker.streams(number) for worker in workers))
        return [(worker.process.pid, report) for worker, report in zip(workers, reports, strict=True)]

    async def spans(self, trace: str | None) -> list[tuple[int, SpansReply | None]]:
        """Return the process id of each worker, and its spans of a trace, or None if it does not reply in time.

        trace: id of the trace; None: the root spans of the latest requests of each worker.
        """
        workers, number = self._workers.running, self.number()
        reports = await asyncio.gather(*(worker.spans(number, trace) for worker in workers))
        return [(worker.process.pid, report) for worker, report in zip(workers, reports, strict=True)]

    async def end_stream(self, pid: int, stream: int) -> EndStreamReply | None:
        """End an event stream of the worker with this process id; None without such a worker or an answer. stream: its
        number in the worker.
        """
        worker = next((item for item in self._workers.running if item.process.pid == pid), None)
        return None if worker is None else await worker.end_stream(self.number(), stream)
