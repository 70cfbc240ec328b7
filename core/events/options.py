"""Options of server-sent events."""

from __future__ import annotations

import enum

from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.core.sections.declaration import choice, flag, integer, interval, section, text
from rowcall.core.sections.values import bytes_of_megabytes, none_for_zero, or_empty

BUILT_IN_HEADERS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache, no-store, must-revalidate, max-age=0"),
    # nginx would buffer events and deliver them late.
    ("x-accel-buffering", "no"),
    ("connection", "keep-alive"),
)


class Way(enum.Enum):
    """Transport of events to other hosts."""

    NONE = "None"
    REDIS = "Redis"
    POSTGRES = "Postgres"


def _ends(word: str) -> bool:
    return word == "End"


@section("Service:ServerSentEvents", "Server-sent events: settings of all streams.")
class EventOptions:
    """Options of server-sent events; times in seconds, sizes in bytes."""

    after_commit: bool = flag(
        "AfterCommit",
        False,
        "Publish events after the commit of their transaction, and not at all after a rollback, for endpoints "
        "without `sse_after_commit`. false: publish at once, so that a long routine can report its progress.",
    )
    authorize: bool = flag(
        "AuthorizeOnConnect",
        False,
        "Only callers that may call the stream's endpoint may subscribe. false: all may subscribe, and each "
        "event is filtered.",
    )
    replay: bool = flag(
        "Replay",
        False,
        "Send events with ids; a client that reconnects with `Last-Event-ID` receives the missed events.",
    )
    replay_events: int = integer("ReplayEvents", 1000, "Maximum number of events in the replay buffer.", minimum=1)
    stored_bytes: int = integer(
        "ReplayMegabytes",
        16,
        "Maximum size of the messages in the replay buffer.",
        minimum=1,
        maximum=4096,
        convert=bytes_of_megabytes,
    )
    heartbeat: float | None = interval(
        "Heartbeat",
        "30 seconds",
        "Interval of comments in streams, which keep proxies from closing idle connections. null: none.",
        nullable=True,
        convert=none_for_zero,
    )
    retry: float | None = interval("Retry", None, "Delay after which clients reconnect. null: the client decides.")
    ends_slow: bool = choice(
        "SlowReaders",
        "DropOldest End",
        "DropOldest",
        "For a slow reader with a full queue: drop its oldest events and send an event named `gap`, or end its stream.",
        convert=_ends,
    )
    queue: int = integer("SlowReaderEvents", 1000, "Maximum number of queued events for a slow reader.", minimum=1)
    time_limit: float = interval(
        "SlowReaderTimeout",
        "60 seconds",
        "A stream ends if its reader takes no events for this time while some are queued.",
    )
    way: Way = choice(
        "BetweenHosts",
        Way,
        "None",
        "Transport of events to other hosts: Redis, LISTEN and NOTIFY of the main database, or none.",
    )
    channel: str = text("Channel", "rowcall_events", "Name of the stream in Redis, or of the channel in PostgreSQL.")
    redis: str = text(
        "RedisConfiguration",
        None,
        "Connection string of Redis. null: CacheOptions:RedisConfiguration.",
        secret=True,
        convert=or_empty,
    )
    level: NoticeLevel = NoticeLevel.INFO
    """Level of notices that become events, for endpoints that do not set one."""
    headers: tuple[tuple[str, str], ...] = BUILT_IN_HEADERS
    execution_header: str = "x-npgsqlrest-id"
    warn_unbound: bool = True
