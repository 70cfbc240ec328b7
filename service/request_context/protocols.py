"""Wrappers of the HTTP server's protocol, which add headers to every response or observe it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Handle = Callable[[Any, Any], None]
Headers = list[tuple[str, str]]

Wrapper = TypeVar("Wrapper")


def find_wrapper(protocol: Any, kind: type[Wrapper]) -> Wrapper | None:
    """Return the outermost wrapper of this class around the HTTP server's protocol, or None."""
    while protocol is not None and not isinstance(protocol, kind):
        protocol = getattr(protocol, "inner", None)
    return protocol


class ObservedProtocol:
    """Forwards everything. Base class of wrappers that observe or change responses: methods that a wrapper does not
    override forward their response unchanged.
    """

    __slots__ = ("inner",)

    def __init__(self, protocol: Any) -> None:
        self.inner = protocol

    def __call__(self) -> Any:
        return self.inner()

    def __aiter__(self) -> Any:
        return self.inner.__aiter__()

    def client_disconnect(self) -> Any:
        return self.inner.client_disconnect()

    def response_empty(self, status: int, headers: Headers) -> None:
        """Send a response without a body."""
        self.inner.response_empty(status, headers)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        """Send a response with a complete body."""
        self.inner.response_bytes(status, headers, body)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        """Send a response with a complete body, in UTF-8."""
        self.inner.response_str(status, headers, body)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        """Send a file, which the HTTP server reads. file: path; may be that of a streamed body."""
        self.inner.response_file(status, headers, file)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        """Send the bytes of a file from `start` to before `end`."""
        self.inner.response_file_range(status, headers, file, start, end)

    def response_stream(self, status: int, headers: Headers) -> Any:
        """Begin a body whose length is not known, and return the HTTP server's object that sends it. A wrapper can only
        change its headers."""
        return self.inner.response_stream(status, headers)


def leave_uncompressed(protocol: Any) -> None:
    """Exclude the response of a request from compression, also its headers if the body is not sent (HEAD, 304).
    protocol: of the request; the compressing protocol is searched among those that it wraps.
    """
    while protocol is not None and not hasattr(protocol, "compresses"):
        protocol = getattr(protocol, "inner", None)
    if protocol is not None:
        protocol.compresses = False


class HeadersProtocol(ObservedProtocol):
    """Adds headers to every response, behind its own."""

    __slots__ = ("_headers",)

    def __init__(self, protocol: Any, headers: Headers) -> None:
        self.inner = protocol
        self._headers = headers

    def _with_own_headers(self, headers: Headers) -> Headers:
        return [*headers, *self._headers]

    def response_empty(self, status: int, headers: Headers) -> None:
        self.inner.response_empty(status, self._with_own_headers(headers))

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self.inner.response_bytes(status, self._with_own_headers(headers), body)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.inner.response_str(status, self._with_own_headers(headers), body)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        self.inner.response_file(status, self._with_own_headers(headers), file)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        self.inner.response_file_range(status, self._with_own_headers(headers), file, start, end)

    def response_stream(self, status: int, headers: Headers) -> Any:
        return self.inner.response_stream(status, self._with_own_headers(headers))
