"""Each form of a response through the wrappers of the HTTP server's protocol."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.protocols import ObservedProtocol
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.response.server_timing import TimedProtocol

HEADERS = [("content-type", "text/plain")]
FORMS: dict[str, tuple[Any, ...]] = {
    "response_empty": (),
    "response_bytes": (b"body",),
    "response_str": ("body",),
    "response_file": ("/x",),
    "response_file_range": ("/x", 2, 6),
    "response_stream": (),
}


class _Sink:
    """Records the response, whatever its form is."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def __getattr__(self, form: str) -> Any:
        if form not in FORMS:
            raise AttributeError(form)
        return lambda *call: self.sent.append((form, *call))


@pytest.mark.parametrize("form", FORMS)
def test_a_wrapper_forwards_unchanged_responses(form: str) -> None:
    sink = _Sink()
    getattr(ObservedProtocol(sink), form)(200, HEADERS, *FORMS[form])
    assert sink.sent == [(form, 200, HEADERS, *FORMS[form])]


@pytest.mark.parametrize("form", FORMS)
def test_the_response_to_head_is_sent_without_body(form: str) -> None:
    sink = _Sink()
    writer = getattr(HeadProtocol(sink), form)(200, HEADERS, *FORMS[form])
    ((sent, status, headers),) = sink.sent
    assert (sent, status) == ("response_empty", 200)
    assert dict(headers).get("content-length") == ("4" if form in ("response_bytes", "response_str") else None)
    assert writer is None or writer.send_bytes(b"event") is False


@pytest.mark.parametrize("form", FORMS)
def test_server_timing_is_added_to_every_form_of_response(form: str) -> None:
    sink = _Sink()
    context: Any = RequestContext(None, sink)
    getattr(TimedProtocol(context), form)(200, HEADERS, *FORMS[form])
    sent, status, headers, *rest = sink.sent[0]
    assert (sent, status, tuple(rest)) == (form, 200, FORMS[form])
    assert "queue;dur=" in dict(headers)["server-timing"]
