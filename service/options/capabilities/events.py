"""`Service` → server-sent events: what becomes one, and how streams of them are kept."""

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
    # nginx would collect events in its buffer, and deliver them late.
    ("x-accel-buffering", "no"),
    ("connection", "keep-alive"),
)
_SECTION = "Service:ServerSentEvents:"
_HEADERS, _EXECUTION = "Service:ServerSentEventsResponseHeaders", "Service:ExecutionIdHeaderName"
_FRAMING = frozenset({"content-length", "transfer-encoding", "trailer", "upgrade"})
"""A stream has no end that could be told in front."""


class Way(enum.Enum):
    """How events get to other hosts."""

    NONE = "None"
    REDIS = "Redis"
    POSTGRES = "Postgres"


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Times in seconds, sizes in bytes."""

    level: NoticeLevel = NoticeLevel.INFO
    """Of endpoints that name none."""
    headers: tuple[tuple[str, str], ...] = BUILT_IN_HEADERS
    execution_header: str = "x-npgsqlrest-id"
    warn_unbound: bool = True
    after_commit: bool = False
    """Of endpoints that do not say."""
    authorize: bool = False
    """Streams are for those who may call their endpoint."""
    replay: bool = False
    """Events have ids, and whoever comes back with one gets what came behind it."""
    kept: int = 1000
    """Events kept for that."""
    kept_bytes: int = 16_777_216
    heartbeat: float | None = 30.0
    retry: float | None = None
    """How long clients wait before they come back. None: they decide."""
    ends_slow: bool = False
    """A stream that cannot be sent any more is ended. False: it goes on without its oldest events."""
    queue: int = 1000
    """Events that wait for a slow reader."""
    patience: float = 60.0
    """How long a reader may take nothing while something waits for it."""
    way: Way = Way.NONE
    channel: str = "rowcall_events"
    redis: str = ""


def _require_headers(given: Mapping[str, str | None]) -> None:
    for name, value in given.items():
        if not HEADER_NAME.fullmatch(name):
            raise StartupError(f"{_HEADERS}: {name!r} is not the name of a header")
        if name.lower() in _FRAMING:
            raise StartupError(f"{_HEADERS}: {name} says how long an answer is, and a stream has no end; take it away")
        if any(ord(sign) < 32 and sign != "\t" for sign in value or ""):
            raise StartupError(f"{_HEADERS}:{name} holds a line end or another control character")


def event_options(settings: Settings) -> EventOptions:
    given = settings.text_map(_HEADERS)
    headers = dict(BUILT_IN_HEADERS)
    headers.update((name.lower(), value or "") for name, value in given.items())
    _require_headers(given)
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
        kept=settings.integer(_SECTION + "ReplayEvents", minimum=1),
        kept_bytes=settings.integer(_SECTION + "ReplayMegabytes", minimum=1) * 1_048_576,
        heartbeat=settings.seconds_or_none(_SECTION + "Heartbeat") or None,
        retry=settings.seconds_or_none(_SECTION + "Retry"),
        ends_slow=settings.choice(_SECTION + "SlowReaders") == "End",
        queue=settings.integer(_SECTION + "SlowReaderEvents", minimum=1),
        patience=settings.seconds(_SECTION + "SlowReaderPatience"),
        way=Way(settings.choice(_SECTION + "BetweenHosts")),
        channel=settings.text(_SECTION + "Channel"),
        redis=settings.text_or_none(_SECTION + "RedisConfiguration")
        or settings.text("CacheOptions:RedisConfiguration"),
    )
