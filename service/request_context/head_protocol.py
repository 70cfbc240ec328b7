"""HEAD requests: the steps of GET run, and the body is not sent (RFC 9110 section 9.3.2).

The steps of a route wrap `HeadProtocol` like the HTTP server's own protocol, so their wrappers see the response of GET
with its body, and can tag it or add headers. Only what the body would cost in other ways asks for `is_head`.
"""

from __future__ import annotations

from rowcall.service.request_context.protocols import Headers, ObservedProtocol
from rowcall.service.request_context.request_context import RequestContext


def is_head(context: RequestContext) -> bool:
    """Return whether the request is HEAD, so that only the header section of its response is sent."""
    return bool(context.scope.method == "HEAD")


class HeadProtocol(ObservedProtocol):
    """Wraps the HTTP server's protocol: a response of GET is sent with its header section only."""

    __slots__ = ()

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, headers)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_empty(status, [*headers, ("content-length", str(len(body)))])
