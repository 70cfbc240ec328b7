"""What operators see of the events: numbers of a host, and the open streams of a worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rowcall.core.auth.claims import IdentityClaims
    from rowcall.service.events.broadcaster import Broadcaster

_MOST_STREAMS = 300
"""Most streams of a worker that are listed."""


@dataclass(frozen=True, slots=True)
class HubActivity:
    """Numbers of events of a host since the start. published: by its requests. received: from other hosts. notified: by
    PostgreSQL, for each channel. stored: number in the replay buffer at the moment. most: number that it can hold.
    """

    published: int
    received: int
    notified: dict[str, int]
    stored: int
    most: int


@dataclass(frozen=True, slots=True)
class StreamEntry:
    """An open event stream. number: among those of its worker. channel: of PostgreSQL; empty if the stream has the
    notices of routines. user: name of the user; None for an anonymous caller. address: `host:port` of the client.
    began: in seconds since 1970. waiting: number of events that the reader has not taken yet. dropped: number of events
    that the reader has missed.
    """

    number: int
    path: str
    channel: str
    user: str | None
    address: str
    began: float
    waiting: int
    dropped: int


@dataclass(frozen=True, slots=True)
class OpenStreams:
    """The open event streams of a worker. count: of all. streams: the oldest ones, at most 300."""

    count: int
    streams: tuple[StreamEntry, ...]


def open_streams(events: Broadcaster, claims: IdentityClaims) -> OpenStreams:
    """Return the open event streams of this worker. claims: say which claim is the name of a user."""
    streams = events.open_streams()
    return OpenStreams(
        len(streams),
        tuple(
            StreamEntry(
                stream.number,
                stream.path,
                stream.viewer.channel,
                None if stream.viewer.user is None else claims.name_of(stream.viewer.user),
                stream.client,
                stream.began,
                stream.waiting,
                stream.dropped,
            )
            for stream in streams[:_MOST_STREAMS]
        ),
    )
