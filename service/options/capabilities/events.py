"""`Service` → server-sent events: what becomes one, and how streams of them are kept."""

from __future__ import annotations

from dataclasses import dataclass

from rowcall.core.config import Settings
from rowcall.core.endpoint.capabilities import NoticeLevel

BUILT_IN_HEADERS = (
    ("content-type", "text/event-stream"),
    ("cache-control", "no-cache, no-store, must-revalidate, max-age=0"),
    ("connection", "keep-alive"),
)


@dataclass(frozen=True, slots=True)
class EventOptions:
    """Times in seconds, sizes in bytes."""

    level: NoticeLevel = NoticeLevel.INFO
    """Of endpoints that name none."""
    headers: tuple[tuple[str, str], ...] = BUILT_IN_HEADERS
    execution_header: str = "x-npgsqlrest-id"
    warn_unbound: bool = True


def event_options(settings: Settings) -> EventOptions:
    given = settings.text_map("Service:ServerSentEventsResponseHeaders")
    headers = dict(BUILT_IN_HEADERS)
    headers.update((name.lower(), value or "") for name, value in given.items())
    return EventOptions(
        level=NoticeLevel(settings.choice("Service:DefaultServerSentEventsEventNoticeLevel")),
        headers=tuple(headers.items()),
        execution_header=settings.text("Service:ExecutionIdHeaderName").lower(),
        warn_unbound=settings.flag("Service:WarnUnboundServerSentEventsNotices"),
    )
