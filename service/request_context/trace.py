"""The trace that a request belongs to, for code that propagates or reports it (W3C Trace Context)."""

from __future__ import annotations

from typing import Any, Protocol

from rowcall.service.request_context.protocols import Headers, ObservedProtocol, find_wrapper

NAMES = ("traceparent", "tracestate")


class OutgoingTrace(Protocol):
    """One outgoing request as part of a trace. headers: those that propagate the trace."""

    headers: Headers

    def end(self, status: int) -> None:
        """Report the end. status: 0 if there was no response."""


class Trace(Protocol):
    """The trace of one request."""

    @property
    def trace_id(self) -> str:
        """Id of the trace: 32 hexadecimal digits."""

    @property
    def traceparent(self) -> str:
        """Value of the header `traceparent` with the span of this request."""

    @property
    def sampled(self) -> bool:
        """Whether spans of the request are recorded."""

    def begin_outgoing_request(self, method: str, authority: str) -> OutgoingTrace:
        """Begin an outgoing request. authority: host and port of the server."""

    def record_replay(self) -> None:
        """Record that the response is the stored one of a former request."""


class TracedProtocol(ObservedProtocol):
    """Wraps the HTTP server's protocol if requests are traced. Responses pass unchanged."""

    __slots__ = ("trace",)

    def __init__(self, protocol: Any, trace: Trace) -> None:
        super().__init__(protocol)
        self.trace = trace


def trace_of(protocol: Any) -> Trace | None:
    """Return the trace of a request, or None if it is not traced."""
    traced = find_wrapper(protocol, TracedProtocol)
    return None if traced is None else traced.trace
