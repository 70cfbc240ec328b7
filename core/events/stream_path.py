"""Where the events of an endpoint are subscribed to (events-3)."""

from __future__ import annotations

import re
from collections.abc import Iterable

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


_SEGMENT = re.compile(r"/\{[^{}/]*?(\??)\}(?=/|$)")
"""A parameter of the endpoint's path, with the slash in front of it."""


def with_parameters(paths: Iterable[str]) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    """For streams behind a path with parameters: what such a request path looks like, and the paths by number of the
    group that has matched, which counts from 1. None where no path has any.

    A parameter stands for any text: a stream is no topic, so what it says chooses nothing. Upper and lower case differ,
    as in all paths of streams.
    """
    match = tuple(path for path in paths if _SEGMENT.search(path))
    return (re.compile("|".join(f"({_pattern(path)})" for path in match)), match) if match else None


def _pattern(path: str) -> str:
    fixed = iter(_SEGMENT.split(path))
    text = re.escape(next(fixed))
    for optional, rest in zip(fixed, fixed, strict=True):
        text += ("(?:/[^/]+)?" if optional else "/[^/]+") + re.escape(rest)
    return text
