"""HEAD requests: the steps of GET run, and the body is not sent (RFC 9110 section 9.3.2).

The steps of a route wrap `HeadProtocol` like the HTTP server's own protocol, so their wrappers see the response of GET
with its body, and can tag it or add headers. Code that would do work for the body only, such as streaming it, leaves
that work out if `is_head` returns True.
"""

from __future__ import annotations

from rowcall.service.request_context.protocols import Headers, ObservedProtocol, leave_uncompressed
from rowcall.service.request_context.request_context import RequestContext


def is_head(context: RequestContext) -> bool:
    """Return whether the request is HEAD, so that only the header section of its response is sent."""
    return bool(context.scope.method == "HEAD")


class _BodyNotSent:
    """The writer of a body of which nothing is sent: its reader counts as disconnected."""

    def send_bytes(self, _data: bytes) -> bool:
        return False

    def send_str(self, _data: str) -> bool:
        return False


class HeadProtocol(ObservedProtocol):
    """Wraps the HTTP server's protocol: a response of GET is sent with its header section only, whatever its form."""

    __slots__ = ()

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_empty(status, [*headers, ("content-length", str(len(body)))])

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.response_bytes(status, headers, body.encode())

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        leave_uncompressed(self.inner)
        self.inner.response_empty(status, headers)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_empty(status, headers)

    def response_stream(self, status: int, headers: Headers) -> _BodyNotSent:
        self.inner.response_empty(status, headers)
        return _BodyNotSent()
