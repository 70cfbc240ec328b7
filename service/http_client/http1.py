"""An HTTP/1.1 connection to another server: a state machine over a transport, with llhttp as parser for responses that
the fast path (`ext.driver.http1_client`) does not handle.

It handles one request at a time. Received data goes to its `HttpResponse`; if this holds too much that was not read,
the transport stops reading, so that a slow reader slows down the server. A connection whose request has ended properly
is free for the next one, whether the response was read or not.

Written for this project because pass-through of proxies is a hot path: a small request in a task takes 50 µs of
processor time, with httpcore (h11) 1,200 and with httpx 1,900 (one connection, uvloop, the same server; Python 3.11).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httptools

from rowcall.ext.base.http_heads import MAX_FIELDS
from rowcall.ext.driver.http1_client import BODY, CLOSED, IDLE, WAITING, BasicHttp1Connection
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import (
    MAX_HEAD,
    HttpResponse,
    OutgoingRequest,
    Receiver,
    ResponseWaiter,
    response_problem,
)

CONTINUE_WITHIN = 1.0
"""Seconds to wait for status 100 before the body is sent nevertheless (RFC 9110, 10.1.1)."""


class Http1Connection(BasicHttp1Connection, asyncio.Protocol):
    """`await connection.send(request)` sends a request and returns its response. `on_free` is called when the
    connection can take another one, or is closed.
    """

    def __init__(self, on_free: Callable[[Http1Connection], None]) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__(on_free, self._loop.time)
        self._headers: list[tuple[str, str]] = []
        self._field_bytes = 0
        self._until_close = False
        self._continue: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._sender: asyncio.Task[None] | None = None
        self._blocked = False
        self.born = self.idle_since

    @property
    def spare(self) -> bool:
        """Whether no request is in progress, and another one may begin."""
        return self.usable

    def retire(self) -> None:
        """Take no further request, and close when the one in progress has ended."""
        self._keeps = False
        if self._state == IDLE:
            self._close()

    # --- a request -------------------------------------------------------------------------------------------------

    async def send(self, request: OutgoingRequest) -> HttpResponse:
        """Send the request. Return its response once the final header section has arrived.

        Raises:
            OutboundError: the connection broke, or the response is invalid.
            Errors of the body iterator of the request.
        """
        arriving = ResponseWaiter()
        self.begin(request, arriving)
        return await arriving.wait(self.abort)

    def begin(self, request: OutgoingRequest, receiver: Receiver) -> None:
        """Send the request. receiver: not called before this returns.

        Raises:
            OutboundError: the connection is closed.
        """
        transport = self._transport
        if transport is None or self._state != IDLE:
            raise OutboundError("the connection was closed", unanswered=True)
        self._begin(HttpResponse(self), receiver, request.method == "HEAD")
        body = request.body
        if body is None or isinstance(body, bytes):
            self._sent = True
            transport.write(request.head() + body if body else request.head())
        else:
            self._sent = False
            self._continue = self._loop.create_future() if request.expects_continue else None
            transport.write(request.head())
            self._sender = self._loop.create_task(self._send(body, chunked=request.length is None))

    async def _send(self, body: AsyncIterator[bytes], *, chunked: bool) -> None:
        """Send a request body as fast as the server reads it. If the iterator raises, the request fails with its
        error. chunked: with the transfer coding, as the length is not known.
        """
        try:
            if self._continue is not None:
                await asyncio.wait({self._continue}, timeout=CONTINUE_WITHIN)
            async for piece in body:
                if self._transport is None:
                    return
                if piece:
                    self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                    await self._wait_for_room()
            if chunked and self._transport is not None:
                self._transport.write(b"0\r\n\r\n")
            self._sent = True
        except Exception as error:  # an error of the body iterator is the error of the request
            self._fail(error)
            return
        if self._state == IDLE:
            self._release()

    async def _wait_for_room(self) -> None:
        """Wait until the transport has room for further data."""
        if self._blocked:
            self._room = self._loop.create_future()
            await self._room

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close at once, without waiting for what may still arrive. A request in progress fails with
        `OutboundError`.
        """
        self._fail(OutboundError("the request was cancelled"))

    # --- asyncio.Protocol ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def _handle_data(self, data: bytes) -> None:
        """Parse received data that the fast path has left to llhttp."""
        if self._parser is None:
            if self._state != WAITING:
                self._fail(OutboundError("the server sent data without a request"))
                return
            self._parser = httptools.HttpResponseParser(self)
            # Lines that end with LF alone may be accepted (RFC 9112, 2.2), and simple servers send them.
            self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
            self._headers = []
            self._field_bytes = 0
            self._until_close = False
        if self._state == WAITING:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(OutboundError("the server requests another protocol"))
            return
        except httptools.HttpParserError as error:
            if self._parser is None:
                # The error is behind a complete response, which is valid; only the connection is not.
                self._close()
                return
            self._fail(OutboundError(f"the response is not HTTP: {error}"))
            return
        if self._state == WAITING and self._head_bytes > MAX_HEAD:
            self._fail(OutboundError(f"the headers of the response are larger than {MAX_HEAD} bytes"))
        elif self._state == BODY and self._answer is not None:
            self._hold_back(self._answer)

    def eof_received(self) -> None:
        if self._state == BODY and self._until_close:
            self._keeps = False
            self._complete()

    def connection_lost(self, error: Exception | None) -> None:
        if self._state == BODY and self._until_close and error is None:
            self._keeps = False
            self._complete()
            return
        unanswered = self._state == WAITING and self._head_bytes == 0
        reason = "the connection was closed" if error is None else f"the connection broke: {error}"
        if self._state == BODY:
            reason = "the connection was closed before the response was complete"
        self._fail(OutboundError(reason, unanswered=unanswered))

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    # --- the parser ------------------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._parser is None:
            self._close_for_surplus()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._answer is None:
            return
        self._field_bytes += len(name) + len(value) + 4
        fields = len(self._headers) + len(self._answer.trailers)
        if self._field_bytes > MAX_HEAD or fields >= MAX_FIELDS:
            self._fail(OutboundError(f"the response has more than {MAX_FIELDS} headers, or more than {MAX_HEAD} bytes"))
            return
        pair = (name.decode("latin-1"), value.decode("latin-1"))
        if self._state == BODY:
            self._answer.trailers.append(pair)
        else:
            self._headers.append(pair)

    def on_headers_complete(self) -> None:
        answer, parser = self._answer, self._parser
        if answer is None or parser is None:
            return
        status = parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            return
        problem = response_problem(status, self._headers)
        if problem is not None:
            self._fail(OutboundError(f"the response is not valid: {problem}"))
            return
        answer.status = status
        answer.headers = self._headers
        self._keeps = parser.should_keep_alive()
        self._state = BODY
        self._until_close = not self._without_body and status not in (204, 304) and not _is_framed(self._headers)
        answer.length = _length(self._headers)
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            # Called later, after the data that arrived together with the head was added.
            self._loop.call_soon(receiver.on_response, answer)
        if self._without_body:
            self._complete()

    def on_body(self, data: bytes) -> None:
        if self._answer is not None:
            self._answer.add(data)
        elif self._parser is None:
            self._close_for_surplus()

    def on_message_complete(self) -> None:
        if self._parser is None:
            return
        if self._state == WAITING:
            # An interim response, which is discarded (RFC 9110, 15.2).
            self._headers = []
            if self._continue is not None and not self._continue.done():
                self._continue.set_result(None)
            return
        self._complete()

    def _close_for_surplus(self) -> None:
        """Close the connection, because data follows a complete response.

        The response is valid, but nothing else on this connection can be trusted: the rest of the surplus would be
        taken for the response to the next request.
        """
        self._keeps = False
        self._close()

    # --- ends ------------------------------------------------------------------------------------------------------

    def _fail(self, error: Exception) -> None:
        """Close the connection, and end the request in progress with this error."""
        answer, self._answer = self._answer, None
        self._parser = None
        self._left = 0
        receiver, self._receiver = self._receiver, None
        if answer is not None:
            answer.end(error)
        self._close()
        if receiver is not None:
            receiver.on_failure(error)

    def _close(self) -> None:
        """Close the connection at once, if it is open, and report that to `on_free`."""
        if self._state == CLOSED:
            return
        self._state = CLOSED
        if self._sender is not None and self._sender is not asyncio.current_task():
            self._sender.cancel()
        self.resume_writing()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        self._on_free(self)

    def close(self) -> None:
        self._close()


def _is_framed(headers: list[tuple[str, str]]) -> bool:
    """Whether the message shows where its body ends; otherwise it ends with the connection (RFC 9112, 6.3)."""
    for name, value in headers:
        lowered = name.lower()
        if lowered == "content-length":
            return True
        if lowered == "transfer-encoding" and value.lower().rstrip().endswith("chunked"):
            return True
    return False


def _length(headers: list[tuple[str, str]]) -> int | None:
    for name, value in headers:
        if name.lower() == "content-length":
            return int(value) if value.isascii() and value.isdigit() else None
    return None
