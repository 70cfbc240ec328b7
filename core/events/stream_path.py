"""Where the events of an endpoint are subscribed to (reference 05, 6.2)."""

from __future__ import annotations

from rowcall.core.endpoint.capabilities import Events, NoticeLevel
from rowcall.core.endpoint.endpoint import Endpoint


def level_of(events: Events, default: NoticeLevel) -> NoticeLevel:
    return events.level or default


def stream_path(endpoint: Endpoint, default: NoticeLevel) -> str | None:
    """Path of the stream; None where the endpoint has none. The path of the annotation belongs behind the endpoint's,
    unless it begins with that already."""
    events = endpoint.options.events
    if events is None or not events.subscribe:
        return None
    path = events.path or default.value.lower()
    if path.startswith(endpoint.path):
        return path
    return f"{endpoint.path.rstrip('/')}/{path.lstrip('/')}"
