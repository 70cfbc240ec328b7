"""Paths of event streams (events-3)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rowcall.core.endpoint.capabilities import Events, NoticeLevel
from rowcall.core.endpoint.endpoint import Endpoint


def level_of(events: Events, default: NoticeLevel) -> NoticeLevel:
    return events.level or default


def stream_path(endpoint: Endpoint, default: NoticeLevel) -> str | None:
    """Return the path of the stream of an endpoint; None: it has no stream.

    The path of the annotation is appended to that of the endpoint, unless it already begins with that path. default:
    level whose name is used if `Events.path` is None, whatever the level of the endpoint is.
    """
    events = endpoint.options.events
    if events is None or not events.subscribe:
        return None
    path = events.path or default.value.lower()
    if path.startswith(endpoint.path):
        return path
    return f"{endpoint.path.rstrip('/')}/{path.lstrip('/')}"


_SEGMENT = re.compile(r"/\{[^{}/]*?(\??)\}(?=/|$)")
"""A parameter in the path of the endpoint, with the slash in front of it."""


def client_stream_path(endpoint: Endpoint, default: NoticeLevel) -> str | None:
    """Return the path that clients request for the stream of an endpoint, without optional parameters, whose `?` would
    begin the query string; None: it has no stream. Other parameters stay as they are written: any value fits. default:
    as for `stream_path`."""
    path = stream_path(endpoint, default)
    return None if path is None else _SEGMENT.sub(lambda match: "" if match[1] else match[0], path)


def with_parameters(paths: Iterable[str]) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    """Return a pattern, for `fullmatch` of request paths, of all streams with path parameters, and the paths of these
    streams.

    The n-th group of the pattern, from 1, matches requests for the n-th path. None: no path has parameters.

    A parameter matches any segment: a stream is not a topic, so its value selects nothing. An optional one may be
    missing. Upper and lower case differ, as in all paths of streams.
    """
    match = tuple(path for path in paths if _SEGMENT.search(path))
    return (re.compile("|".join(f"({_pattern(path)})" for path in match)), match) if match else None


def _pattern(path: str) -> str:
    """Return the regular expression for request paths of the stream with this path."""
    fixed = iter(_SEGMENT.split(path))
    text = re.escape(next(fixed))
    for optional, rest in zip(fixed, fixed, strict=True):
        text += ("(?:/[^/]+)?" if optional else "/[^/]+") + re.escape(rest)
    return text
