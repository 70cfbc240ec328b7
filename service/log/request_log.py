"""What stands between the HTTP server and the application where requests are logged or carry a correlation id.

Chosen once, when a worker starts: without either, requests go straight to the application.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from typing import Any

from rowcall.service.log.request_line import Seen
from rowcall.service.request_context.protocols import Handle, Headers, HeadersProtocol, ObservedProtocol
from rowcall.service.request_context.trace import trace_of

CLIENT_GONE = 499
"""What the log shows for a request that nobody waits for any more, as other servers of the field have it."""


_ID = re.compile(r"[\x21-\x7e]{1,128}")
_TRACE = re.compile(r"[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-[0-9a-f]{16}-(?P<flags>[0-9a-f]{2})(?:-.*)?")


class LoggedProtocol(ObservedProtocol):
    """Tells the request log how a request was answered, and how long after it had arrived."""

    __slots__ = ("_add", "_began", "_gone", "_method", "_status", "endpoint", "path", "trace")

    def __init__(self, add: Callable[[Seen], None], scope: Any, protocol: Any) -> None:
        self.inner = protocol
        self._add = add
        self._method = scope.method
        self._status = 0
        self._gone = False
        self._began = time.monotonic()
        self.path = scope.path
        self.endpoint = ""
        self.trace = ""
        """Its id, where the request is traced."""

    @property
    def correlation(self) -> str:
        return correlation_of(self.inner)

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)
        self._tell(status)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, headers, body)
        self._tell(status)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.inner.response_str(status, headers, body)
        self._tell(status)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, headers, file)
        if file.startswith("/dev/fd/"):
            self._status = status  # told when the stream ends
        else:
            self._tell(status)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_file_range(status, headers, file, start, end)
        self._tell(status)

    def response_stream(self, status: int, headers: Headers) -> Any:
        stream = self.inner.response_stream(status, headers)
        self._tell(status)
        return stream

    async def client_disconnect(self) -> None:
        await self.inner.client_disconnect()
        self._gone = True

    def stream_ended(self) -> None:
        """The last byte of a streamed result has been written, or the stream was cut off."""
        self._gone = False  # it has been answered, whatever it has read of it
        self._tell(self._status)

    def abandoned(self) -> None:
        """The client has gone and is not answered at all."""
        self._gone = True
        self._tell(CLIENT_GONE)

    def _tell(self, status: int) -> None:
        seconds = time.monotonic() - self._began
        status = CLIENT_GONE if self._gone else status
        self._add((time.time(), self._method, self.path, status, seconds, self.endpoint, self.correlation, self.trace))


class CorrelatedProtocol(HeadersProtocol):
    """Sends the id of the request back with its answer."""

    __slots__ = ("correlation",)

    def __init__(self, protocol: Any, header: str, correlation: str) -> None:
        super().__init__(protocol, [(header, correlation)])
        self.correlation = correlation


def with_log(handle: Handle, add: Callable[[Seen], None]) -> Handle:
    """`handle`, each request of which is told to `add`."""
    return lambda scope, protocol: handle(scope, LoggedProtocol(add, scope, protocol))


def with_correlation(handle: Handle, header: str) -> Handle:
    """`handle` for requests that carry an id in `header`: the client's, where it has sent a usable one."""
    name = header.lower()

    def handle_correlated(scope: Any, protocol: Any) -> None:
        given = scope.headers.get(name)
        correlation = given if given and _ID.fullmatch(given) else secrets.token_hex(16)
        handle(scope, CorrelatedProtocol(protocol, name, correlation))

    return handle_correlated


def logged(protocol: Any) -> LoggedProtocol | None:
    """The one that logs, among the protocols that stand one in front of the other."""
    while protocol is not None and type(protocol) is not LoggedProtocol:
        protocol = getattr(protocol, "inner", None)
    return protocol


def correlation_of(protocol: Any) -> str:
    """The correlation id of the request; empty when it has none."""
    while protocol is not None and type(protocol) is not CorrelatedProtocol:
        protocol = getattr(protocol, "inner", None)
    return "" if protocol is None else str(protocol.correlation)


def request_properties(protocol: Any) -> dict[str, str]:
    """What a log line about a request has in common with the line of the request itself."""
    properties = {}
    if correlation := correlation_of(protocol):
        properties["CorrelationId"] = correlation
    if (traced := trace_of(protocol)) is not None:
        properties["TraceId"] = traced.trace_id
    return properties


def trace_id(scope: Any, protocol: Any) -> str:
    """`traceId` of a problem: the correlation id, else the trace of a W3C `traceparent`, else one of our own."""
    if correlation := correlation_of(protocol):
        return correlation
    if (traced := trace_of(protocol)) is not None:
        return traced.traceparent
    parent = _TRACE.fullmatch(scope.headers.get("traceparent") or "")
    trace, flags = (parent["trace"], parent["flags"]) if parent else (secrets.token_hex(16), "00")
    return f"00-{trace}-{secrets.token_hex(8)}-{flags}"
