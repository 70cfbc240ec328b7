"""Read the options of server-sent events: their source, streams, replay buffer and transport between hosts."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.endpoint.capabilities import NoticeLevel
from rowcall.service.log.options import HEADER_NAME
from rowcall.service.startup_error import StartupError

BUILT_IN_HEADERS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache, no-store, must-revalidate, max-age=0"),
    # nginx would buffer events and deliver them late.
    ("x-accel-buffering", "no"),
    ("connection", "keep-alive"),
)
_SECTION = "Service:ServerSentEvents:"
_HEADERS, _EXECUTION = "Service:ServerSentEventsResponseHeaders", "Service:ExecutionIdHeaderName"
_FRAMING = frozenset({"content-length", "transfer-encoding", "trailer", "upgrade"})
"""Headers that cannot be configured, because they state the length or the framing of a body without an end."""


class Way(enum.Enum):
    """Transport of events to other hosts."""

    NONE = "None"
    REDIS = "Redis"
    POSTGRES = "Postgres"


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Options of server-sent events; times in seconds, sizes in bytes."""

    level: NoticeLevel = NoticeLevel.INFO
    """Level of notices that become events, for endpoints that do not set one."""
    headers: tuple[tuple[str, str], ...] = BUILT_IN_HEADERS
    execution_header: str = "x-npgsqlrest-id"
    warn_unbound: bool = True
    after_commit: bool = False
    """Send events only after commit, for endpoints that do not set it."""
    authorize: bool = False
    """Only callers that may call the endpoint may open its stream."""
    replay: bool = False
    """Events have ids; a client that reconnects with `Last-Event-ID` receives the events after it."""
    replay_events: int = 1000
    """Maximum number of events in the replay buffer."""
    stored_bytes: int = 16_777_216
    heartbeat: float | None = 30.0
    retry: float | None = None
    """Delay after which clients reconnect; None: the client decides."""
    ends_slow: bool = False
    """End a stream whose queue is full; False: drop the oldest events and continue."""
    queue: int = 1000
    """Maximum number of queued events for a slow reader."""
    time_limit: float = 60.0
    """Time after which a stream ends if its reader takes nothing while events are queued."""
    way: Way = Way.NONE
    channel: str = "rowcall_events"
    redis: str = ""


def _require_headers(headers: Mapping[str, str | None]) -> None:
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name):
            raise StartupError(f"{_HEADERS}: {name!r} is not the name of a header")
        if name.lower() in _FRAMING:
            raise StartupError(
                f"{_HEADERS}: {name} states the length of a response, and a stream has no end; remove it"
            )
        if any(ord(sign) < 32 and sign != "\t" for sign in value or ""):
            raise StartupError(f"{_HEADERS}:{name} holds a line end or another control character")


def event_options(settings: Settings) -> EventOptions:
    configured = settings.text_map(_HEADERS)
    headers = dict(BUILT_IN_HEADERS)
    headers.update((name.lower(), value or "") for name, value in configured.items())
    _require_headers(configured)
    execution_header = settings.text(_EXECUTION)
    if not HEADER_NAME.fullmatch(execution_header):
        raise StartupError(f"{_EXECUTION}: {execution_header!r} is not the name of a header")
    return EventOptions(
        level=NoticeLevel(settings.choice("Service:DefaultServerSentEventsEventNoticeLevel")),
        headers=tuple(headers.items()),
        execution_header=execution_header.lower(),
        warn_unbound=settings.flag("Service:WarnUnboundServerSentEventsNotices"),
        after_commit=settings.flag(_SECTION + "AfterCommit"),
        authorize=settings.flag(_SECTION + "AuthorizeOnConnect"),
        replay=settings.flag(_SECTION + "Replay"),
        replay_events=settings.integer(_SECTION + "ReplayEvents"),
        stored_bytes=settings.integer(_SECTION + "ReplayMegabytes") * 1_048_576,
        heartbeat=settings.seconds_or_none(_SECTION + "Heartbeat") or None,
        retry=settings.seconds_or_none(_SECTION + "Retry"),
        ends_slow=settings.choice(_SECTION + "SlowReaders") == "End",
        queue=settings.integer(_SECTION + "SlowReaderEvents"),
        time_limit=settings.seconds(_SECTION + "SlowReaderTimeout"),
        way=Way(settings.choice(_SECTION + "BetweenHosts")),
        channel=settings.text(_SECTION + "Channel"),
        redis=settings.text_or_none(_SECTION + "RedisConfiguration")
        or settings.text("CacheOptions:RedisConfiguration"),
    )
