"""What cannot be a header of a stream, or of a request, is reported at the start."""

from __future__ import annotations

import pytest

from rowcall.core.config import assemble
from rowcall.core.config.tree import Section
from rowcall.core.events.options import EventOptions
from rowcall.core.sections.errors import ConfigError
from rowcall.service.options.capabilities.events import event_options
from rowcall.service.startup_error import StartupError

HEADERS = "Service:ServerSentEventsResponseHeaders"


def options(key: str, value: str) -> EventOptions:
    return event_options(assemble(Section(), [(key, value)], {}).settings)


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (f"{HEADERS}:Content-Length", "5", "Content-Length states the length of a response, and a stream has no end"),
        (f"{HEADERS}:X y", "5", "'X y' is not the name of a header"),
        (f"{HEADERS}:X-Z", "a\r\nSet-Cookie: b", "X-Z holds a line end"),
        ("Service:ExecutionIdHeaderName", "my id", "'my id' is not the name of a header"),
    ],
)
def test_an_invalid_header_stops_the_start(key: str, value: str, why: str) -> None:
    with pytest.raises((ConfigError, StartupError), match=why):
        options(key, value)


def test_configured_stream_headers_are_added_to_the_built_in_ones() -> None:
    headers = dict(options(f"{HEADERS}:X-Accel-Buffering", "no").headers)
    assert headers == {**dict(EventOptions().headers), "x-accel-buffering": "no"}


def test_a_built_in_stream_header_can_be_replaced() -> None:
    assert dict(options(f"{HEADERS}:Cache-Control", "no-store").headers)["cache-control"] == "no-store"
