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
from typing import TYPE_CHECKING

from rowcall.service.snapshot.garbage_collection import pause_collection

if TYPE_CHECKING:
    from rowcall.core.auth.token_families import Mark
    from rowcall.core.config import Settings
    from rowcall.core.protection.key_ring import KeyRing
    from rowcall.service.events.activity import OpenStreams
    from rowcall.service.log.entry import Entry
    from rowcall.service.log.request_line import RequestRecord
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
    """Port of the first HTTPS listener, for redirects; None: there is none."""
    cores: frozenset[int] | None = None
    """Processor cores of the worker; None: any."""


@dataclass(frozen=True, slots=True)
class Part:
    """Supervisor → worker: one part of a schema snapshot (`service.snapshot.snapshot_transfer`). index: from 0."""

    index: int
    pickled: bytes


@dataclass(frozen=True, slots=True)
class PrepareSnapshot:
    """Supervisor → worker: build the schema snapshot whose parts were sent, while the former one is served. number: of
    the snapshot. part: the last part.
    """

    number: int
    part: Part


@dataclass(frozen=True, slots=True)
class PrepareSnapshotChange:
    """Supervisor → worker that serves the previous snapshot: the changes to it, pickled once for all workers. number:
    of the new snapshot.
    """

    number: int
    pickled: bytes

    @classmethod
    def of(cls, change: SnapshotChange) -> PrepareSnapshotChange:
        """Pickle the change."""
        with pause_collection():
            return cls(change.number, pickle.dumps(change, pickle.HIGHEST_PROTOCOL))

    def snapshot(self, served: SchemaSnapshot) -> SchemaSnapshot:
        """Return the changed snapshot. served: the one that the worker serves. Raises ValueError if the change is not
        based on it.
        """
        change: SnapshotChange = pickle.loads(self.pickled)  # noqa: S301 (from our own process over our own socket pair)
        return change.apply_to(served)


@dataclass(frozen=True, slots=True)
class SnapshotPrepared:
    """Worker → supervisor: the snapshot with this number can be activated, or why it cannot. error: None: it can."""

    number: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ActivateSnapshot:
    """Supervisor → worker: activate the prepared snapshot, which has this number."""

    number: int


@dataclass(frozen=True, slots=True)
class SnapshotActivated:
    """Worker → supervisor: the worker answers requests from the snapshot with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Keys:
    """Supervisor → worker: the key ring, before anything is served and again after each change."""

    ring: KeyRing


@dataclass(frozen=True, slots=True)
class KeyRingRequest:
    """Worker → supervisor: read the key ring again. A request has named a key that the worker does not have; another
    host may have created it.
    """


@dataclass(frozen=True, slots=True)
class TokenUseRequest:
    """Worker → supervisor: asks whether a refresh token is used for the first time.

    number: repeated in the reply. mark: identifies the token. keep_until: when the mark can be deleted, in seconds
    since 1970.
    """

    number: int
    mark: Mark
    keep_until: float


@dataclass(frozen=True, slots=True)
class TokenUseFailure:
    """Worker → supervisor: the use of a token, which was its first, had no effect. The token may be used once more.
    Fields as in `TokenUseRequest`."""

    mark: Mark
    keep_until: float


@dataclass(frozen=True, slots=True)
class TokenUseReply:
    """Supervisor → worker: the reply to `TokenUseRequest`. first: whether the token is used for the first time; None if
    it cannot be determined.
    """

    number: int
    first: bool | None


@dataclass(frozen=True, slots=True)
class Stale:
    """Worker → supervisor: the database no longer fits the snapshot."""


@dataclass(frozen=True, slots=True)
class LogEntries:
    """Worker → supervisor: entries to write to the log."""

    entries: list[Entry | RequestRecord]


@dataclass(frozen=True, slots=True)
class PublishedEvents:
    """Worker → supervisor: events that its requests have published. packed: in the form of `service.events.batches`."""

    packed: bytes


@dataclass(frozen=True, slots=True)
class EventSubscription:
    """Worker → supervisor: send events to this worker, or stop doing so.

    subscribed: whether the worker has open event streams.
    """

    subscribed: bool


@dataclass(frozen=True, slots=True)
class ReplayedEvents:
    """Supervisor → worker: the content of the replay buffer, when the worker starts to receive events. Later events
    follow as `DeliveredEvents`. packed: as for `PublishedEvents`.
    """

    packed: bytes


@dataclass(frozen=True, slots=True)
class DeliveredEvents:
    """Supervisor → worker: events that any worker has published, for the event streams of this worker. packed: as for
    `PublishedEvents`.
    """

    packed: bytes


@dataclass(frozen=True, slots=True)
class UnpublishedNotice:
    """Worker → supervisor: an endpoint that publishes no events has raised a notice of the level of events. path: of
    the endpoint.
    """

    path: str
    severity: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Supervisor → worker: a phase of the graceful shutdown. Requests are still answered.

    unready: report in health checks that the service is not ready. closing: send `Connection: close`. stop_accepting:
    accept no new connections. has_successor: a successor serves already.
    """

    unready: bool = False
    closing: bool = False
    stop_accepting: bool = False
    has_successor: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """Supervisor → worker: finish running requests within `seconds`, and stop."""

    seconds: float


@dataclass(frozen=True, slots=True)
class GaugesRequest:
    """Supervisor → worker: asks for the gauges of the worker. number: repeated in the reply."""

    number: int


@dataclass(frozen=True, slots=True)
class GaugesReply:
    """Worker → supervisor: the reply to `GaugesRequest`: the name (`core.operations.exposition.GAUGES`),
    labels and value of each gauge.
    """

    number: int
    gauges: list[tuple[str, Mapping[str, str], float]]


@dataclass(frozen=True, slots=True)
class InvalidateTags:
    """Supervisor → one worker: invalidate the cached responses with one of these tags, for all workers. number:
    repeated in the reply.
    """

    number: int
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InvalidateEntry:
    """Supervisor → one worker: invalidate the cached response of an endpoint to a request with these arguments, for all
    workers. number: repeated in the reply. endpoint: its method and path. arguments: a JSON object.
    """

    number: int
    endpoint: str
    arguments: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class InvalidationReply:
    """Worker → supervisor: the reply to `InvalidateTags` and `InvalidateEntry`. count: number of invalidated responses.

    error: why the invalidation is not confirmed; None: it is. status: HTTP status for such an error.
    """

    number: int
    count: int
    error: str | None = None
    status: int = 503


@dataclass(frozen=True, slots=True)
class Identify:
    """Supervisor → one worker: asks which user these request headers authenticate. number: repeated in the reply.
    address: of the client.
    """

    number: int
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    address: str


@dataclass(frozen=True, slots=True)
class IdentityReply:
    """Worker → supervisor: the reply to `Identify`. name: None for an anonymous caller. expires: when the sign-in of
    the user ends, in seconds since 1970, infinite if it has no end; 0 for an anonymous caller."""

    number: int
    name: str | None = None
    roles: frozenset[str] = frozenset()
    expires: float = 0.0


@dataclass(frozen=True, slots=True)
class StreamsRequest:
    """Supervisor → worker: asks for the open event streams. number: repeated in the reply."""

    number: int


@dataclass(frozen=True, slots=True)
class StreamsReply:
    """Worker → supervisor: the reply to `StreamsRequest`."""

    number: int
    streams: OpenStreams


@dataclass(frozen=True, slots=True)
class SpansRequest:
    """Supervisor → worker: asks for stored spans.

    number: repeated in the reply. trace: id of their trace; None: the root spans of the latest requests.
    """

    number: int
    trace: str | None


@dataclass(frozen=True, slots=True)
class SpansReply:
    """Worker → supervisor: the reply to `SpansRequest`."""

    number: int
    spans: tuple[SpanEntry, ...]


@dataclass(frozen=True, slots=True)
class EndStream:
    """Supervisor → worker: end an event stream. number: repeated in the reply. stream: number of the stream."""

    number: int
    stream: int


@dataclass(frozen=True, slots=True)
class EndStreamReply:
    """Worker → supervisor: the reply to `EndStream`. found: whether there was such a stream."""

    number: int
    found: bool


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """Worker → supervisor: take a profile of this worker. It has received SIGUSR1."""


@dataclass(frozen=True, slots=True)
class TakeProfile:
    """Supervisor → worker: take a profile of the worker for `seconds`. number: repeated in the reply."""

    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ProfileReply:
    """Worker → supervisor: the reply to `TakeProfile`. text: the profile as collapsed stacks."""

    number: int
    text: str


EventMessage = PublishedEvents | EventSubscription | UnpublishedNotice

WorkerEvent = Stale | KeyRingRequest | TokenUseRequest | TokenUseFailure | ProfileRequest | EventMessage
"""Messages that a worker sends without a question, except log entries."""

Message = (
    Start
    | Keys
    | KeyRingRequest
    | TokenUseRequest
    | TokenUseFailure
    | TokenUseReply
    | Part
    | PrepareSnapshot
    | PrepareSnapshotChange
    | SnapshotPrepared
    | ActivateSnapshot
    | SnapshotActivated
    | Stale
    | LogEntries
    | PublishedEvents
    | EventSubscription
    | ReplayedEvents
    | DeliveredEvents
    | UnpublishedNotice
    | GaugesRequest
    | GaugesReply
    | InvalidateTags
    | InvalidateEntry
    | InvalidationReply
    | Identify
    | IdentityReply
    | StreamsRequest
    | StreamsReply
    | SpansRequest
    | SpansReply
    | EndStream
    | EndStreamReply
    | ProfileRequest
    | TakeProfile
    | ProfileReply
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
        """Return the channel over one end of a socket pair."""
        reader, writer = await asyncio.open_connection(sock=end)
        return cls(reader, writer)

    def send(self, message: Message) -> None:
        """Send a message without waiting; it is dropped if the channel is closed."""
        frame = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        if not self._writer.is_closing():
            self._writer.write(len(frame).to_bytes(4, "big") + frame)

    @property
    def backlog(self) -> int:
        """Bytes of sent messages that wait in this process because the socket is full."""
        return self._writer.transport.get_write_buffer_size()

    async def receive(self) -> Message:
        """Return the next message. Raises `EOFError` when the other process has ended."""
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
        """Close the channel without waiting."""
        self._writer.close()
