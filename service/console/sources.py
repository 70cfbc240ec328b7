"""What the console uses of the supervisor: the parts that it shows, and those that its actions need."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
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
    """The answer of a worker to an invalidation. count: number of removed responses. error: why none was removed, or
    why it is not confirmed that they are removed everywhere; None: all succeeded. status: HTTP status for `error`.
    """

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
    """The answer of a worker to the request to end a stream. found: whether there was such a stream."""

    @property
    def found(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Sources:
    """What the console reads of the supervisor, and the functions by which it asks workers.

    Functions that ask workers return None in place of the answer of a worker that does not answer in time.
    """

    settings: Settings
    options: WorkerOptions
    folder: Path
    """Folder of the shared state of the host."""
    sample: Callable[[], Awaitable[Sequence[Sequence[Gauge] | None]]]
    """Returns the gauges of each worker."""
    workers: Callable[[], Sequence[int | None]]
    """Returns the process id of each worker, by its number."""
    snapshot: Callable[[], SchemaSnapshot]
    """Returns the active schema snapshot."""
    connector: Connector
    """Of the main database."""
    source_connector: Callable[[str | None], Connector]
    """Returns the connector of the database where routines were found, by `Endpoint.catalogue_connection`."""
    entries: RecentEntries
    loop: asyncio.AbstractEventLoop
    """The event loop of the supervisor."""
    keys: Callable[[], KeyRing]
    """Returns the key ring."""
    urls: Callable[[], Sequence[str]]
    """Returns the URLs of the public listeners."""
    invalidate: Callable[[tuple[str, ...]], Coroutine[Any, Any, Invalidation | None]]
    """Makes a worker invalidate the cached responses that have one of these tags."""
    invalidate_entry: Callable[[str, bytes], Coroutine[Any, Any, Invalidation | None]]
    """Makes a worker invalidate the cached response of the endpoint with this name to a request with these arguments, a
    JSON object."""
    identify: Callable[[tuple[tuple[str, str], ...], str], Coroutine[Any, Any, Caller | None]]
    """Makes a worker authenticate request headers that came from this address."""
    events: Callable[[], HubActivity]
    """Returns numbers of events."""
    channels: Callable[[], tuple[frozenset[str], frozenset[str]]]
    """Returns the channels of PostgreSQL that streams need, and those on which the service listens."""
    streams: Callable[[], Coroutine[Any, Any, Sequence[tuple[int, StreamsReport | None]]]]
    """Returns the open event streams of each worker, with its process id."""
    spans: Callable[[str | None], Coroutine[Any, Any, Sequence[tuple[int, SpansReport | None]]]]
    """Returns stored spans of each worker, with its process id: those of the trace with this id; None: the first span
    of each request.
    """
    end_stream: Callable[[int, int], Coroutine[Any, Any, StreamEnd | None]]
    """Makes the worker with this process id end the stream with this number."""

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the event loop of the supervisor, and wait for its result. Must be called in another
        thread.

        Raises what the coroutine raises. If it takes longer than `_WITHIN` seconds, it is cancelled, and `Problem` 503
        is raised.
        """
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result(_WITHIN)
        except TimeoutError:
            future.cancel()
            raise Problem(503, f"there was no result within {_WITHIN:g} seconds; try again later") from None
