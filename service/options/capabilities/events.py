"""Read the options of server-sent events: their source, streams, replay buffer and transport between hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rowcall.core.building.service import ServiceOptions
from rowcall.core.cache.options import RedisKeys
from rowcall.core.config import Settings
from rowcall.core.events.options import BUILT_IN_HEADERS, EventOptions
from rowcall.core.sections.values import HEADER_NAME
from rowcall.service.startup_error import StartupError

_HEADERS, _EXECUTION = "Service:ServerSentEventsResponseHeaders", "Service:ExecutionIdHeaderName"
_FRAMING = frozenset({"content-length", "transfer-encoding", "trailer", "upgrade"})
"""Headers that cannot be configured, because they state the length or the framing of a body without an end."""


def _require_headers(headers: Mapping[str, str | None]) -> None:
    """Raise `StartupError` for a header that a stream cannot have. headers: values by name."""
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
    """Return the options of server-sent events. Raises `StartupError` for a header that cannot be sent."""
    service = settings.read(ServiceOptions)
    configured = service.event_headers
    headers = dict(BUILT_IN_HEADERS)
    headers.update((name.lower(), value or "") for name, value in configured.items())
    _require_headers(configured)
    execution_header = service.execution_header
    if not HEADER_NAME.fullmatch(execution_header):
        raise StartupError(f"{_EXECUTION}: {execution_header!r} is not the name of a header")
    options = settings.read(
        EventOptions,
        level=service.event_level,
        headers=tuple(headers.items()),
        execution_header=execution_header.lower(),
        warn_unbound=service.warn_unbound,
    )
    return options if options.redis else replace(options, redis=settings.read(RedisKeys).usable)
