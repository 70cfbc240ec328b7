"""`Server-Timing` of outgoing requests, if `HttpServer:ServerTiming` is on."""

from __future__ import annotations

from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext


def record_time(context: RequestContext, name: str, seconds: float) -> None:
    """Add `name;dur=12.3` (milliseconds) to the headers of the response."""
    if type(context.protocol) is not HeadProtocol:
        header = ("server-timing", f"{name};dur={seconds * 1000:.3f}")
        context.protocol = HeadersProtocol(context.protocol, [header])
