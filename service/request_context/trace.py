"""The trace that a request belongs to, and its correlation id, for code that propagates or reports them (W3C Trace
Context)."""

from __future__ import annotations

from typing import Any, Protocol

from rowcall.service.request_context.protocols import Headers, HeadersProtocol, ObservedProtocol, find_wrapper

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


class CorrelatedProtocol(HeadersProtocol):
    """Sends the correlation id of the request with its response. header: its name in lower case."""

    __slots__ = ("correlation",)

    def __init__(self, protocol: Any, header: str, correlation: str) -> None:
        super().__init__(protocol, [(header, correlation)])
        self.correlation = correlation


def correlation_of(protocol: Any) -> str:
    """Return the correlation id of the request, which an internal subrequest shares with its outer request; empty
    without one.
    """
    while protocol is not None and type(protocol) is not CorrelatedProtocol:
        protocol = getattr(protocol, "inner", None) or getattr(protocol, "outer", None)
    return "" if protocol is None else str(protocol.correlation)


def request_properties(protocol: Any) -> dict[str, str]:
    """Return the properties by which a log entry is related to the entry of its request: correlation id and trace id,
    as far as the request has them. protocol: of the request; None: there is none.
    """
    properties = {}
    if correlation := correlation_of(protocol):
        properties["CorrelationId"] = correlation
    if (trace := trace_of(protocol)) is not None:
        properties["TraceId"] = trace.trace_id
    return properties


def log_extra(protocol: Any) -> dict[str, dict[str, str]]:
    """Return the argument `extra` of a log entry about a request: the properties of `request_properties`."""
    return {"properties": request_properties(protocol)}
