"""Messages between the supervisor and a worker, over a socket pair that only these two processes have.

A frame is four bytes of length and a pickle. The end of the stream informs each side that the other has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rowcall.service.snapshot.garbage_collection import paused

if TYPE_CHECKING:
    from rowcall.core.auth.token_families import Mark
    from rowcall.core.config import Settings
    from rowcall.core.protection.key_ring import KeyRing
    from rowcall.service.events.activity import OpenStreams
    from rowcall.service.log.entry import Entry
    from rowcall.service.log.request_line import Seen
    from rowcall.service.options.worker import WorkerOptions
    from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, SnapshotChange
    from rowcall.service.sockets.listeners import Listener
    from rowcall.service.tracing.span_entry import SpanEntry


@dataclass(frozen=True, slots=True)
class Start:
    """Supervisor → worker, first: everything that does not depend on the catalogue."""

    options: WorkerOptions
    settings: Settings
    listeners: tuple[Listener, ...]
    """Open in the worker under the same numbers."""
    https_port: int | None = None
    cores: frozenset[int] | None = None
    """Processor cores of the worker; None: any."""


@dataclass(frozen=True, slots=True)
class Part:
    """Supervisor → worker: a part of the snapshot it has to build (`service.snapshot.snapshot_transfer`), from 0 on."""

    index: int
    pickled: bytes


@dataclass(frozen=True, slots=True)
class PrepareSnapshot:
    """Supervisor → worker: build this schema snapshot, whose last part is included, beside the one being served."""

    number: int
    part: Part


@dataclass(frozen=True, slots=True)
class PrepareSnapshotChange:
    """Supervisor → worker that serves the previous snapshot: the changes to it, pickled once for all workers."""

    number: int
    pickled: bytes

    @classmethod
    def of(cls, change: SnapshotChange) -> PrepareSnapshotChange:
        with paused():
            return cls(change.number, pickle.dumps(change, pickle.HIGHEST_PROTOCOL))

    def snapshot(self, served: SchemaSnapshot) -> SchemaSnapshot:
        """Return the changed snapshot. served: the one that the worker serves. Raises ValueError if the change is not
        based on it.
        """
        change: SnapshotChange = pickle.loads(self.pickled)  # noqa: S301 (from our own process over our own socket pair)
        return change.applied(served)


@dataclass(frozen=True, slots=True)
class SnapshotPrepared:
    """Worker → supervisor: the snapshot can be activated, or why it cannot."""

    number: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ActivateSnapshot:
    """Supervisor → worker: activate the prepared snapshot."""

    number: int


@dataclass(frozen=True, slots=True)
class Serving:
    """Worker → supervisor: the snapshot is active."""

    number: int


@dataclass(frozen=True, slots=True)
class Keys:
    """Supervisor → worker: the key ring, before anything is served and again after each change."""

    ring: KeyRing


@dataclass(frozen=True, slots=True)
class KeysWanted:
    """Worker → supervisor: a request came with a key that is not in the ring; another host may have made it."""


@dataclass(frozen=True, slots=True)
class TokenUsed:
    """Worker → supervisor: asks whether a refresh token is used for the first time. number: of the question."""

    number: int
    mark: Mark
    keep_until: float


@dataclass(frozen=True, slots=True)
class TokenJudged:
    """Supervisor → worker: the answer to `TokenUsed`. None: unknown."""

    number: int
    first: bool | None


@dataclass(frozen=True, slots=True)
class Stale:
    """Worker → supervisor: the database no longer fits the snapshot."""


@dataclass(frozen=True, slots=True)
class Logged:
    """Worker → supervisor: entries to write to the log."""

    entries: list[Entry | Seen]


@dataclass(frozen=True, slots=True)
class EventsPublished:
    """Worker → supervisor: events of its requests, packed (`service.events.batches`)."""

    packed: bytes


@dataclass(frozen=True, slots=True)
class EventsWanted:
    """Worker → supervisor: it has event streams, or has none any more."""

    wanted: bool


@dataclass(frozen=True, slots=True)
class EventsSoFar:
    """Supervisor → worker with streams: the events of the replay buffer. Events published from now on follow."""

    packed: bytes


@dataclass(frozen=True, slots=True)
class EventsArrived:
    """Supervisor → worker: events of any worker, for its streams."""

    packed: bytes


@dataclass(frozen=True, slots=True)
class NoticeNotPublished:
    """Worker → supervisor: an endpoint has raised a notice that would be an event if it published any."""

    path: str
    severity: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Supervisor → worker: the process prepares to end; requests are served as usual.

    unready: report so in health checks. closing: send `Connection: close`. deaf: accept no new connections. succeeded:
    another process serves already.
    """

    unready: bool = False
    closing: bool = False
    deaf: bool = False
    succeeded: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Supervisor → worker: finish running requests within `seconds`, and stop."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Supervisor → worker: asks for the gauges. number: of the question."""

    number: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """Worker → supervisor: the answer to `Sample`: names, labels and values (`core.operations.exposition.GAUGES`)."""

    number: int
    gauges: list[tuple[str, Mapping[str, str], float]]


@dataclass(frozen=True, slots=True)
class InvalidateTags:
    """Supervisor → one worker: invalidate the cached responses with one of these tags, for all workers. number: of the
    question.
    """

    number: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidateEntry:
    """Supervisor → one worker: invalidate the cached response of an endpoint to a request with these arguments, for all
    workers. number: of the question. endpoint: its method and path.
    """

    number: int
    endpoint: str
    arguments: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Invalidated:
    """Worker → supervisor: the answer to `InvalidateTags` and `InvalidateEntry`. error: why it is not confirmed."""

    number: int
    count: int
    error: str | None = None
    status: int = 503


@dataclass(frozen=True, slots=True)
class Identify:
    """Supervisor → one worker: asks which user these request headers authenticate. number: of the question. address: of
    the client.
    """

    number: int
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    address: str


@dataclass(frozen=True, slots=True)
class Identified:
    """Worker → supervisor: the answer to `Identify`. name: None for an anonymous caller. expires: in seconds since
    1970.
    """

    number: int
    name: str | None = None
    roles: frozenset[str] = frozenset()
    expires: float = 0.0


@dataclass(frozen=True, slots=True)
class ReportStreams:
    """Supervisor → worker: asks for the open event streams. number: of the question."""

    number: int


@dataclass(frozen=True, slots=True)
class StreamsReported:
    """Worker → supervisor: the answer to `ReportStreams`."""

    number: int
    streams: OpenStreams


@dataclass(frozen=True, slots=True)
class ReportSpans:
    """Supervisor → worker: asks for stored spans. number: of the question. trace: id of their trace; None: the first
    spans of the last requests.
    """

    number: int
    trace: str | None


@dataclass(frozen=True, slots=True)
class SpansReported:
    """Worker → supervisor: the answer to `ReportSpans`."""

    number: int
    spans: tuple[SpanEntry, ...]


@dataclass(frozen=True, slots=True)
class EndStream:
    """Supervisor → worker: end an event stream. number: of the question. stream: number of the stream."""

    number: int
    stream: int


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """Worker → supervisor: the answer to `EndStream`. found: whether there was such a stream."""

    number: int
    found: bool


@dataclass(frozen=True, slots=True)
class ProfileWanted:
    """Worker → supervisor: a signal has requested a profile of it."""


@dataclass(frozen=True, slots=True)
class TakeProfile:
    """Supervisor → worker: profile yourself for `seconds`. number: of the question."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProfileTaken:
    """Worker → supervisor: the answer to `TakeProfile`."""

    number: int
    text: str


EventMessage = EventsPublished | EventsWanted | NoticeNotPublished

WorkerEvent = Stale | KeysWanted | TokenUsed | ProfileWanted | EventMessage
"""Messages that a worker sends without a question, except log entries."""

Message = (
    Start
    | Keys
    | KeysWanted
    | TokenUsed
    | TokenJudged
    | Part
    | PrepareSnapshot
    | PrepareSnapshotChange
    | SnapshotPrepared
    | ActivateSnapshot
    | Serving
    | Stale
    | Logged
    | EventsPublished
    | EventsWanted
    | EventsSoFar
    | EventsArrived
    | NoticeNotPublished
    | Sample
    | Sampled
    | InvalidateTags
    | InvalidateEntry
    | Invalidated
    | Identify
    | Identified
    | ReportStreams
    | StreamsReported
    | ReportSpans
    | SpansReported
    | EndStream
    | StreamEnded
    | ProfileWanted
    | TakeProfile
    | ProfileTaken
    | Leave
    | Stop
)


class Channel:
    """One end of the channel. `receive` raises `EOFError` when the other process has ended."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> Channel:
        reader, writer = await asyncio.open_connection(sock=end)
        return cls(reader, writer)

    def send(self, message: Message) -> None:
        frame = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        if not self._writer.is_closing():
            self._writer.write(len(frame).to_bytes(4, "big") + frame)

    @property
    def backlog(self) -> int:
        """Bytes that have been sent and that the other side has not read."""
        return self._writer.transport.get_write_buffer_size()

    async def receive(self) -> Message:
        try:
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            frame = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError("the other side of the channel is gone") from error
        message: Message = pickle.loads(frame)  # noqa: S301 (from our own process over our own socket pair)
        return message

    async def finish(self) -> None:
        """Close the channel after everything has been written."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def close(self) -> None:
        self._writer.close()
