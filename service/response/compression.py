"""Compression of responses, between the application and the HTTP server, if configured.

A complete body is compressed at once, on the event loop. Results of many rows are not: they are streamed from a certain
size on. A single large value blocks the worker during its compression. A streamed body is compressed part by part, each
flushed, so that rows that have been read are not held back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import brotli

from rowcall.core.http.compression import Compression
from rowcall.service.request_context.protocols import Handle, Headers, ObservedProtocol
from rowcall.service.response.streaming import Coder

_GZIP_WINDOW = 16 + zlib.MAX_WBITS


_ABOUT_BYTES = frozenset(
    {"content-encoding", "content-range", "content-digest", "repr-digest", "digest", "content-md5"}
)
"""Headers, mainly from other services, that would be wrong for a compressed body."""


class _Brotli:
    """Compresses one body with Brotli, as `Coder` describes."""

    def __init__(self, level: int) -> None:
        self._compressor = brotli.Compressor(quality=level)

    def part(self, data: bytes) -> bytes:
        return bytes(self._compressor.process(data) + self._compressor.flush())

    def end(self) -> bytes:
        return bytes(self._compressor.finish())


class _Gzip:
    """Compresses one body with gzip, as `Coder` describes."""

    def __init__(self, level: int) -> None:
        self._compressor = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)

    def part(self, data: bytes) -> bytes:
        return self._compressor.compress(data) + self._compressor.flush(zlib.Z_SYNC_FLUSH)

    def end(self) -> bytes:
        return self._compressor.flush()


_CODERS: dict[str, Callable[[int], Coder]] = {"br": _Brotli, "gzip": _Gzip}
"""Compressors of streamed bodies by content coding."""


def _whole(coding: str, level: int, body: bytes) -> bytes:
    """Compress a complete body. coding: `br` or `gzip`."""
    if coding == "br":
        return bytes(brotli.compress(body, quality=level))
    return zlib.compress(body, level, _GZIP_WINDOW)


class CompressedProtocol(ObservedProtocol):
    """Compresses bodies of suitable types, with a coding that the client accepts. accepted: value of
    `Accept-Encoding`. compresses: attribute; False: the response is sent as it is (`leave_uncompressed`).
    """

    __slots__ = ("_accepted", "_options", "_streaming", "compresses")

    def __init__(self, protocol: Any, options: Compression, accepted: str) -> None:
        super().__init__(protocol)
        self._options = options
        self._accepted = accepted
        self._streaming: str | None = None
        self.compresses = True

    def response_empty(self, status: int, headers: Headers) -> None:
        """Send a response without a body. One to HEAD, or with status 304, gets the headers that the compressed
        response to GET would have.
        """
        coding = None
        if self._fits(headers):
            coding = self._choose()
            headers = _with_coding(headers, coding)
        if coding is not None:
            headers = [field for field in headers if field[0].lower() != "content-length"]
        if status == 304:
            # It has the headers of the complete response (RFC 9110, 15.4.5), which may have been compressed.
            headers = _with_coding(headers, None)
            headers = headers if self._choose() is None else [*map(_weaken_tag, headers)]
        self.inner.response_empty(status, headers)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        if self._fits(headers):
            coding = self._choose()
            headers = _with_coding(headers, coding)
            if coding is not None:
                body = _whole(coding, self._options.level(coding), body)
        self.inner.response_bytes(status, headers, body)

    def response_str(self, status: int, headers: Headers, body: str) -> None:
        self.response_bytes(status, headers, body.encode())

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        """Send a streamed body, which the compressor of `stream_coder` has compressed, if there is one."""
        if self._fits(headers):
            headers = _with_coding(headers, self._streaming)
        self.inner.response_file(status, headers, file)

    def response_file_range(self, status: int, headers: Headers, file: str, start: int, end: int) -> None:
        """Send a part of a file, uncompressed: its header Content-Range counts the bytes of the file."""
        self.inner.response_file_range(status, headers, file, start, end)

    def stream_coder(self, headers: Headers) -> Coder | None:
        """Return the compressor for the body that `response_file` is about to begin; None: it is not compressed."""
        self._streaming = coding = self._choose() if self._fits(headers) else None
        return None if coding is None else _CODERS[coding](self._options.level(coding))

    def _choose(self) -> str | None:
        """Return the coding for this client; None: it accepts none, or the response is not compressed."""
        return self._options.choose(self._accepted) if self.compresses else None

    def _fits(self, headers: Headers) -> bool:
        """Return whether a response with these headers may be compressed."""
        names = {name.lower(): value for name, value in headers}
        if not _ABOUT_BYTES.isdisjoint(names):
            return False
        if any(name.lower() == "cache-control" and "no-transform" in value.lower() for name, value in headers):
            return False
        return self._options.fits(names.get("content-type", ""))


def _with_coding(headers: Headers, coding: str | None) -> Headers:
    """Return the headers for a coding; None: the body is not compressed. They include `Vary` in this case too, as the
    response depends on what the client accepts (RFC 9110, 12.5.5).
    """
    if coding is not None:
        headers = [*map(_weaken_tag, headers), ("content-encoding", coding)]
    return headers if _varies(headers) else [*headers, ("vary", "Accept-Encoding")]


def _varies(headers: Headers) -> bool:
    """Whether the headers already state that the response depends on Accept-Encoding."""
    lists = (value.lower().split(",") for name, value in headers if name.lower() == "vary")
    return any(word.strip() in ("accept-encoding", "*") for words in lists for word in words)


def _weaken_tag(field: tuple[str, str]) -> tuple[str, str]:
    """Return a header field; if it is a strong entity tag, as a weak one. The tag of a file identifies its uncompressed
    bytes, and a download resumed with a strong tag must have the same bytes (RFC 9110, 8.8.3.3).
    """
    name, value = field
    return (name, f"W/{value}") if name.lower() == "etag" and value.startswith('"') else field


def with_compression(handle: Handle, options: Compression, is_secure: Callable[[Any], bool]) -> Handle:
    """Wrap `handle` for clients that accept compression; responses to all others are unchanged. is_secure: whether the
    request of a scope came over https.
    """

    def handle_compressed(scope: Any, protocol: Any) -> None:
        accepted = scope.headers.get_all("accept-encoding")
        if accepted and (options.https or not is_secure(scope)):
            protocol = CompressedProtocol(protocol, options, ",".join(accepted))
        handle(scope, protocol)

    return handle_compressed
