"""Outgoing requests and their responses, independent of the protocol version."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from rowcall.core.outgoing.address import Address
from rowcall.core.outgoing.guard import RefusedError
from rowcall.ext.base.http_heads import MAX_FIELDS, are_sound, field_problem, request_head
from rowcall.ext.driver.http1_client import ReceivedBody
from rowcall.service.http_client.errors import TooLargeError

Headers = list[tuple[str, str]]

_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_LINE_END = re.compile(r"[\r\n\0]")

MAX_HEAD = 131_072
"""Maximum number of bytes of status lines and headers of one response, including interim responses and trailers."""

SAFE = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
IDEMPOTENT = SAFE | {"PUT", "DELETE"}


def response_problem(status: int, headers: Headers) -> str | None:
    """Return why status and headers are no valid final response, or None.

    `Transfer-Encoding` is framing of HTTP/1.1, and its parser has checked it.
    """
    if not 200 <= status <= 599:
        return "its status is not from 200 to 599"
    fields = [pair for pair in headers if pair[0].lower() != "transfer-encoding"]
    return field_problem(fields, MAX_FIELDS, MAX_HEAD)


class OutgoingRequest:
    """A request: method, address, headers, and a body: bytes, chunks, or None. Host and framing are added when it is
    sent.

    length: of a body in chunks, if known.
    """

    __slots__ = ("address", "body", "expects_continue", "headers", "length", "method")

    def __init__(
        self,
        method: str,
        address: Address,
        headers: Headers,
        body: bytes | AsyncIterator[bytes] | None = None,
        length: int | None = None,
        *,
        expects_continue: bool = False,
    ) -> None:
        """expects_continue: the request has `Expect: 100-continue`. Raises `RefusedError` for a header name or value
        that would break the header section.
        """
        self.method = method
        self.address = address
        self.headers = headers
        self.body = body
        self.length = length
        self.expects_continue = expects_continue
        if are_sound(headers):
            return
        for name, value in headers:
            if not _NAME.fullmatch(name):
                raise RefusedError("the name of a header is not valid")
            if _LINE_END.search(value):
                raise RefusedError(f"the value of the header {name} holds a line end")

    @property
    def repeatable(self) -> bool:
        """Whether the body can be sent again."""
        return self.body is None or isinstance(self.body, bytes)

    def head(self) -> bytes:
        """Return request line and headers of HTTP/1.1. Characters beyond ASCII are encoded as UTF-8, as in HTTP/2."""
        address, framing = self.address, self.framing_headers()
        head = request_head(self.method, address.target, address.origin.authority, self.headers, framing)
        if head is not None:
            return head
        lines = [f"{self.method} {self.address.target} HTTP/1.1"]
        if not any(name.lower() == "host" for name, _ in self.headers):
            lines.append(f"Host: {self.address.origin.authority}")
        lines += [f"{name}: {value}" for name, value in self.headers]
        lines += [f"{name}: {value}" for name, value in framing]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "replace")

    def framing_headers(self) -> Headers:
        """Return the headers about the length of the body and, if it is requested, `Expect: 100-continue`."""
        body = self.body
        if body is None:
            return [("Content-Length", "0")] if self.method in ("POST", "PUT", "PATCH") else []
        framing = [("Content-Length", str(len(body)))] if isinstance(body, bytes) else []
        if not framing:
            framing = [
                ("Transfer-Encoding", "chunked") if self.length is None else ("Content-Length", str(self.length))
            ]
        return [*framing, ("Expect", "100-continue")] if self.expects_continue else framing


class Receiver(Protocol):
    """Receives the result of a request: exactly one of the two methods is called, once."""

    def on_response(self, answer: HttpResponse) -> None:
        """Called when the header section of the response has arrived. Its body may be complete by then."""

    def on_failure(self, error: Exception) -> None:
        """Called when there is no response. error: an `OutboundError`, or an error of the request's body iterator."""


class ResponseWaiter:
    """A receiver for which a task waits."""

    __slots__ = ("_answer",)

    def __init__(self) -> None:
        self._answer: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()

    def on_response(self, answer: HttpResponse) -> None:
        if not self._answer.done():
            self._answer.set_result(answer)

    def on_failure(self, error: Exception) -> None:
        if not self._answer.done():
            self._answer.set_exception(error)

    async def wait(self, give_up: Callable[[], None]) -> HttpResponse:
        """Return the response, or raise the error that `on_failure` got. give_up: called if the task is cancelled
        before a result has arrived; a response that has arrived by then is closed."""
        try:
            return await self._answer
        except asyncio.CancelledError:
            if self._answer.cancelled():
                give_up()
            elif self._answer.exception() is None:
                self._answer.result().close()
            raise


class HttpResponse(ReceivedBody):
    """A response: its header section, and its body as it arrives. It has to be read to its end or closed.

    Its source has the methods `resume_reading()` and `abort()`.
    """

    __slots__ = ()

    def header(self, lowered: str) -> str | None:
        """Return the first value of a header, or None. lowered: its lower-case name."""
        for name, value in self.headers:
            if name.lower() == lowered:
                return value
        return None

    async def chunk(self) -> bytes:
        """Return the next chunk of the body; empty at its end.

        Raises:
            OutboundError: the rest does not arrive.
            Errors of the body iterator of the request, if it fails while the response arrives.
        """
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self.take()

    async def gather(self, limit: int) -> None:
        """Wait until the body is complete, or more than `limit` bytes of it have arrived.

        The data stays in the response, to be read afterwards, even if the wait is cancelled. Raises the errors of
        `chunk`.
        """
        pieces: list[bytes] = []
        size = 0
        try:
            while size <= limit and (piece := await self.chunk()):
                size += len(piece)
                pieces.append(piece)
        finally:
            self._chunks[:0] = pieces
            self.buffered += size

    async def read(self, limit: int | None) -> bytes:
        """Return the whole body. If that fails, the response is closed.

        Raises the errors of `chunk`, and `TooLargeError` if the body is larger than `limit` bytes (None: no limit).
        """
        if self.complete:
            data = self.take()
            if limit is not None and len(data) > limit:
                raise TooLargeError(f"the response is larger than {limit} bytes")
            return data
        pieces: list[bytes] = []
        size = 0
        try:
            while size <= (limit if limit is not None else size) and (piece := await self.chunk()):
                size += len(piece)
                pieces.append(piece)
        except BaseException:
            self.close()
            raise
        if limit is not None and size > limit:
            self.close()
            raise TooLargeError(f"the response is larger than {limit} bytes")
        return b"".join(pieces)

    def close(self) -> None:
        """Abort the response, unless it is complete. The rest is not read."""
        if not self._ended:
            self._source.abort()
