"""What the console uses of the supervisor: the parts that it shows, and those that its actions need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from rowcall.core.config import Settings
from rowcall.core.errors.problems import Problem
from rowcall.core.protection.key_ring import KeyRing
from rowcall.service.database.connector import Connector
from rowcall.service.events.activity import HubActivity, OpenStreams
from rowcall.service.log.recent import RecentEntries
from rowcall.service.metrics.report import Gauge
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.tracing.span_entry import SpanEntry

_WITHIN = 15.0
"""Seconds within which work in the event loop has to end."""

Result = TypeVar("Result")


class Invalidation(Protocol):
    """The answer of a worker. count: of the responses. error: why none is invalidated, or that is not confirmed."""

    @property
    def count(self) -> int: ...

    @property
    def error(self) -> str | None: ...

    @property
    def status(self) -> int: ...


class Caller(Protocol):
    """A user of the service. name: None for an anonymous caller. expires: end of the session in seconds since 1970."""

    @property
    def name(self) -> str | None: ...

    @property
    def roles(self) -> frozenset[str]: ...

    @property
    def expires(self) -> float: ...


class StreamsReport(Protocol):
    """The event streams of a worker."""

    @property
    def streams(self) -> OpenStreams: ...


class SpansReport(Protocol):
    """Stored spans of a worker."""

    @property
    def spans(self) -> tuple[SpanEntry, ...]: ...


class StreamEnd(Protocol):
    """The answer of a worker. found: whether there was such a stream."""

    @property
    def found(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """folder: the shared state of the host. sample: the gauges of each worker, None for one that does not answer.
    workers: their process ids by number. snapshot: the active one. loop: the event loop of the supervisor. keys: the
    key ring. urls: of the public listeners. invalidate: makes a worker invalidate the cached responses with one of
    these tags; None without an answer. invalidate_entry: the same for the response of an endpoint to a request with
    these arguments. identify: returns which user of the service request headers authenticate, sent
    from an address; None without an answer. events: numbers of events. channels: those of PostgreSQL that streams
    need, and those on which the service listens. streams: the open event streams of each worker, by its process id,
    None for one that does not answer. spans: in the same way, the stored spans of a trace, or with None the first ones
    of requests. end_stream: ends the stream of a worker, by process id and number; None without
    an answer.
    """

    settings: Settings
    options: WorkerOptions
    folder: Path
    sample: Callable[[], Awaitable[Sequence[Sequence[Gauge] | None]]]
    workers: Callable[[], Sequence[int | None]]
    snapshot: Callable[[], SchemaSnapshot]
    connector: Connector
    entries: RecentEntries
    loop: asyncio.AbstractEventLoop
    keys: Callable[[], KeyRing]
    urls: Callable[[], Sequence[str]]
    invalidate: Callable[[tuple[str, ...]], Coroutine[Any, Any, Invalidation | None]]
    invalidate_entry: Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, Invalidation | None]]
    identify: Callable[[tuple[tuple[str, str], ...], str], Coroutine[Any, Any, Caller | None]]
    events: Callable[[], HubActivity]
    channels: Callable[[], tuple[frozenset[str], frozenset[str]]]
    streams: Callable[[], Coroutine[Any, Any, Sequence[tuple[int, StreamsReport | None]]]]
    spans: Callable[[str | None], Coroutine[Any, Any, Sequence[tuple[int, SpansReport | None]]]]
    end_stream: Callable[[int, int], Coroutine[Any, Any, StreamEnd | None]]

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run in the event loop and wait for the result. Must be called in a thread. Raises `Problem` 503 if it takes
        too long."""
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(_WITHIN)
        except TimeoutError:
            future.cancel()
            raise Problem(503, f"there was no result within {_WITHIN:g} seconds; try again later") from None
