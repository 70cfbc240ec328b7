"""`Server-Timing` of outgoing requests, if `HttpServer:ServerTiming` is on."""

from __future__ import annotations

from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext


def record_time(context: RequestContext, name: str, seconds: float) -> None:
    """Add the header `Server-Timing: name;dur=12.3` to the response; `seconds` is sent in milliseconds."""
    context.protocol = HeadersProtocol(context.protocol, [("server-timing", f"{name};dur={seconds * 1000:.3f}")])
