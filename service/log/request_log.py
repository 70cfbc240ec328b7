"""Middleware between HTTP server and application for the request log and correlation ids.

It is selected once, when a worker starts. Without either, requests go directly to the application.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from typing import Any

from rowcall.service.log.request_line import RequestRecord
from rowcall.service.request_context.protocols import Handle, Headers, ObservedProtocol, find_wrapper
from rowcall.service.request_context.trace import CorrelatedProtocol, correlation_of, trace_of

CLIENT_GONE = 499
"""Logged status of a request whose client has disconnected, as in other servers (nginx)."""


_ID = re.compile(r"[\x21-\x7e]{1,128}")
"""A valid correlation id of a client."""
_TRACE = re.compile(r"[0-9a-f]{2}-(?P<trace>(?!0{32})[0-9a-f]{32})-[0-9a-f]{16}-(?P<flags>[0-9a-f]{2})(?:-.*)?")


class LoggedProtocol(ObservedProtocol):
    """Logs each request with status and duration when its response is sent. A streamed result is logged when it ends
    (`stream_ended`), an event stream when it begins.

    add: receives the request. endpoint: attribute; name of the endpoint, which the application sets; empty without one.
    """

    __slots__ = ("_add", "_began", "_client_gone", "_method", "_status", "endpoint", "path", "trace")

    def __init__(self, add: Callable[[RequestRecord], None], scope: Any, protocol: Any) -> None:
        self.inner = protocol
        self._add = add
        self._method = scope.method
        self._status = 0
        self._client_gone = False
        self._began = time.monotonic()
        self.path = scope.path
        self.endpoint = ""
        self.trace = ""
        """Trace id, if the request is traced."""

    @property
    def correlation(self) -> str:
        return correlation_of(self.inner)

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)
        self._log(status)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, headers, body)
        self._log(status)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.inner.response_str(status, headers, body)
        self._log(status)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, headers, file)
        if file.startswith("/dev/fd/"):
            self._status = status  # logged when the stream ends
        else:
            self._log(status)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_file_range(status, headers, file, start, end)
        self._log(status)

    def response_stream(self, status: int, headers: Headers) -> Any:
        stream = self.inner.response_stream(status, headers)
        self._log(status)
        return stream

    async def client_disconnect(self) -> None:
        """Wait until the client has disconnected. The request is then logged with the status `CLIENT_GONE`."""
        await self.inner.client_disconnect()
        self._client_gone = True

    def stream_ended(self) -> None:
        """Log the request after the last byte of a streamed result was written, or the stream was cut off."""
        self._client_gone = False  # it has a response, however much of it the client has read
        self._log(self._status)

    def log_disconnect(self) -> None:
        """Log a request whose client has disconnected and gets no response."""
        self._client_gone = True
        self._log(CLIENT_GONE)

    def _log(self, status: int) -> None:
        """Log the request with this status, or with `CLIENT_GONE` if its client has disconnected."""
        seconds = time.monotonic() - self._began
        status = CLIENT_GONE if self._client_gone else status
        self._add((time.time(), self._method, self.path, status, seconds, self.endpoint, self.correlation, self.trace))


def with_log(handle: Handle, add: Callable[[RequestRecord], None]) -> Handle:
    """Return `handle` with a request log; `add` receives each request."""
    return lambda scope, protocol: handle(scope, LoggedProtocol(add, scope, protocol))


def with_correlation(handle: Handle, header: str) -> Handle:
    """Return `handle` with correlation ids: the client's id in `header` if valid, else a random one."""
    name = header.lower()

    def handle_correlated(scope: Any, protocol: Any) -> None:
        sent = scope.headers.get(name)
        correlation = sent if sent and _ID.fullmatch(sent) else secrets.token_hex(16)
        handle(scope, CorrelatedProtocol(protocol, name, correlation))

    return handle_correlated


def logging_protocol_of(protocol: Any) -> LoggedProtocol | None:
    """Return the logging protocol in a chain of protocols, or None."""
    return find_wrapper(protocol, LoggedProtocol)


def trace_id(scope: Any, protocol: Any) -> str:
    """Return the member `traceId` of the body of an error: the correlation id of the request; without one, a W3C
    `traceparent` with the id of its trace, or else with the trace id that the client has sent, or else with a random
    one."""
    if correlation := correlation_of(protocol):
        return correlation
    if (request_trace := trace_of(protocol)) is not None:
        return request_trace.traceparent
    parent = _TRACE.fullmatch(scope.headers.get("traceparent") or "")
    trace, flags = (parent["trace"], parent["flags"]) if parent else (secrets.token_hex(16), "00")
    return f"00-{trace}-{secrets.token_hex(8)}-{flags}"
