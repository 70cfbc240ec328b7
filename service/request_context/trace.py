"""The trace that a request belongs to, for those who pass it on or tell it (W3C Trace Context)."""

from __future__ import annotations

from typing import Any, Protocol

from rowcall.service.request_context.protocols import Headers, ObservedProtocol

NAMES = ("traceparent", "tracestate")


class Outgoing(Protocol):
    """One request to another server, as part of a trace. headers: what tells the other server."""

    headers: Headers

    def end(self, status: int) -> None:
        """0: there was no answer."""


class Trace(Protocol):
    """Of one request."""

    @property
    def trace_id(self) -> str: ...

    @property
    def traceparent(self) -> str: ...

    @property
    def sampled(self) -> bool: ...

    def outgoing(self, method: str, authority: str) -> Outgoing:
        """A request to another server begins."""


class TracedProtocol(ObservedProtocol):
    """Stands in for the HTTP server's protocol where requests are traced."""

    __slots__ = ("trace",)

    def __init__(self, protocol: Any, trace: Trace) -> None:
        super().__init__(protocol)
        self.trace = trace


class PassingProtocol(TracedProtocol):
    """Of a request that nothing is told of: answers pass as they are."""

    __slots__ = ("response_bytes", "response_empty", "response_file", "response_file_range", "response_str")

    def __init__(self, protocol: Any, trace: Trace) -> None:
        super().__init__(protocol, trace)
        self.response_empty = protocol.response_empty
        self.response_bytes = protocol.response_bytes
        self.response_str = protocol.response_str
        self.response_file = protocol.response_file
        self.response_file_range = protocol.response_file_range


def trace_of(protocol: Any) -> Trace | None:
    """None where the request is not traced."""
    while protocol is not None and not isinstance(protocol, TracedProtocol):
        protocol = getattr(protocol, "inner", None)
    return None if protocol is None else protocol.trace
