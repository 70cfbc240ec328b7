"""An HTTP/2 connection to another server: h2 as its state machine, any number of requests at the same time.

Data that was not read is not acknowledged, so that the server stops when the window of the stream is full. After
GOAWAY, the server completes the streams that it has begun; other requests may be repeated (RFC 9113, 6.8).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings
from h2.connection import ConnectionInputs, H2ConnectionStateMachine

from rowcall.ext.base.http_heads import MAX_FIELDS
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, HttpResponse, OutgoingRequest, response_problem

WINDOW = 1_048_576
"""Bytes that the server may send ahead of the readers of one connection; half of it for one stream."""
MAX_INTERIM = 100
"""Maximum number of interim responses (1xx) to one request."""
_OF_CONNECTION = frozenset(
    {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host", "te"}
)


class _StateMachine(H2ConnectionStateMachine):
    """The states of a connection, which stays open after GOAWAY. h2 regards it as closed, so that further frames of the
    streams in progress are errors. They can arrive together with GOAWAY, before its event is handled.
    """

    def process_input(self, input_: ConnectionInputs) -> list[h2.events.Event]:
        return [] if input_ is ConnectionInputs.RECV_GOAWAY else super().process_input(input_)


class _Stream:
    """One request, and the source of its `HttpResponse`."""

    __slots__ = ("answer", "connection", "continued", "final", "interim", "number", "room", "sender", "sent", "unread")

    def __init__(self, connection: Http2Connection, number: int, final: asyncio.Future[None]) -> None:
        """number: id of the stream. final: completed when the headers of the final response have arrived."""
        self.connection = connection
        self.number = number
        self.final = final
        self.answer = HttpResponse(self)
        self.room: asyncio.Future[None] | None = None
        """Completed when the server accepts further data; None: the request has not waited for that."""
        self.sender: asyncio.Task[None] | None = None
        """Sends the body; None: there is none."""
        self.sent = False
        """The request has been sent completely, with END_STREAM."""
        self.continued: asyncio.Event | None = None
        """Set by an interim response; None: the request does not expect one."""
        self.interim = 0
        """Number of interim responses so far."""
        self.unread = 0
        """Bytes of flow control that are not acknowledged, as the reader has not taken them."""

    def resume_reading(self) -> None:
        self.connection.acknowledge(self)

    def abort(self) -> None:
        self.connection.cancel(self)


class Http2Connection(asyncio.Protocol):
    """A connection. `await connection.send(request)` sends a request and returns its response. `on_free` is called when
    the connection can take another request, or is closed.
    """

    def __init__(self, on_free: Callable[[Any], None]) -> None:
        self._on_free = on_free
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._state: Any = None
        self._streams: dict[int, _Stream] = {}
        self._leaving = False
        self._blocked = False
        self.used = 0
        self.born = self._loop.time()
        self.idle_since = self.born

    @property
    def usable(self) -> bool:
        return self.capacity > 0

    @property
    def capacity(self) -> int:
        """Number of requests that can begin now."""
        if self._transport is None or self._leaving:
            return 0
        most: int = self._state.remote_settings.max_concurrent_streams
        return max(0, most - len(self._streams))

    @property
    def spare(self) -> bool:
        """Whether no request is in progress."""
        return not self._streams

    def retire(self) -> None:
        """Take no further request, and close when the last one has ended."""
        self._leaving = True
        if not self._streams:
            self.close()

    # --- a request -------------------------------------------------------------------------------------------------

    async def send(self, request: OutgoingRequest) -> HttpResponse:
        """Send a request, and return its response when the headers have arrived. Raises `OutboundError`, and the errors
        of the body iterator of the request."""
        if not self.usable:
            raise OutboundError("the connection was closed", unanswered=True)
        self.used += 1
        try:
            number = self._state.get_next_available_stream_id()
        except h2.exceptions.NoAvailableStreamIDError:
            self._leaving = True
            raise OutboundError("the connection has no stream ids left", unanswered=True) from None
        body = request.body
        try:
            self._state.send_headers(number, _fields(request), end_stream=not body)
        except h2.exceptions.ProtocolError as error:
            # h2 may have begun a stream and changed its table of header fields, of which the server knows nothing.
            self.retire()
            raise OutboundError(f"the request cannot be sent over HTTP/2: {error}", unanswered=True) from None
        stream = self._streams[number] = _Stream(self, number, self._loop.create_future())
        stream.sent = not body
        self._flush()
        if body:
            stream.continued = asyncio.Event() if request.expects_continue else None
            stream.sender = self._loop.create_task(self._send(stream, body))
        try:
            await stream.final
        except BaseException:
            self.cancel(stream)
            raise
        return stream.answer

    async def _send(self, stream: _Stream, body: bytes | AsyncIterator[bytes]) -> None:
        """Send a request body. If the iterator raises, the request fails with its error."""
        try:
            if stream.continued is not None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stream.continued.wait(), 1.0)
            if isinstance(body, bytes):
                await self._send_piece(stream, body)
            else:
                async for piece in body:
                    await self._send_piece(stream, piece)
            if stream.number in self._streams:
                self._state.end_stream(stream.number)
                stream.sent = True
                self._flush()
        except h2.exceptions.ProtocolError:
            return  # the stream has ended meanwhile
        except Exception as error:
            self._reset(stream, h2.errors.ErrorCodes.CANCEL)
            self._end(stream, error)

    async def _send_piece(self, stream: _Stream, piece: bytes) -> None:
        """Send a part of a request body, as fast as the server's flow control allows."""
        view = memoryview(piece)
        while view and stream.number in self._streams:
            room = min(self._state.local_flow_control_window(stream.number), self._state.max_outbound_frame_size)
            if room <= 0 or self._blocked:
                stream.room = self._loop.create_future()
                await stream.room
                continue
            self._state.send_data(stream.number, view[:room].tobytes())
            self._flush()
            view = view[room:]

    def acknowledge(self, stream: _Stream) -> None:
        """Allow the server to send as many bytes as the reader of the stream has taken."""
        unread, stream.unread = stream.unread, 0
        if unread and self._transport is not None:
            try:
                self._state.acknowledge_received_data(unread, stream.number)
            except h2.exceptions.ProtocolError:
                return
            self._flush()

    def cancel(self, stream: _Stream) -> None:
        """Reset a stream whose response is not needed; its request fails with `OutboundError`."""
        self._reset(stream, h2.errors.ErrorCodes.CANCEL)
        self._end(stream, OutboundError("the request was cancelled"))

    def _reset(self, stream: _Stream, code: h2.errors.ErrorCodes) -> None:
        """Send RST_STREAM, unless the stream has ended. A stream that either side has not ended counts against the
        limit of the server until it is reset.
        """
        if stream.number in self._streams and self._transport is not None:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self._state.reset_stream(stream.number, code)
                self._flush()

    # --- asyncio.Protocol ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # that of a stream can be written
        self._state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="latin-1"))
        self._state.state_machine = _StateMachine()
        codes = h2.settings.SettingCodes
        self._state.local_settings = h2.settings.Settings(
            client=True,
            initial_values={
                codes.ENABLE_PUSH: 0,
                codes.INITIAL_WINDOW_SIZE: WINDOW // 2,
                codes.MAX_CONCURRENT_STREAMS: 100,
                codes.MAX_HEADER_LIST_SIZE: 131_072,
            },
        )
        self._state.initiate_connection()
        self._state.increment_flow_control_window(WINDOW - 65_535)
        self._flush()

    def data_received(self, data: bytes) -> None:
        try:
            for event in self._state.receive_data(data):
                self._react(event)
        except Exception as error:
            # h2 raises other errors than its own for unexpected data.
            self._fail(OutboundError(f"the server broke the rules of HTTP/2: {error}"))
            return
        self._flush()

    def _react(self, event: Any) -> None:
        """Handle an event of h2 (one of `h2.events`): pass it to its stream, or change the state of the connection."""
        stream = self._streams.get(getattr(event, "stream_id", None) or 0)
        if isinstance(event, h2.events.ConnectionTerminated):
            self._go_away(event.last_stream_id or 0)
        elif isinstance(event, h2.events.WindowUpdated | h2.events.RemoteSettingsChanged):
            self._make_room()
            if isinstance(event, h2.events.RemoteSettingsChanged) and self.usable:
                self._on_free(self)  # the server may allow more streams now
        elif stream is None:
            if isinstance(event, h2.events.DataReceived):
                # Data of a stream that was cancelled counts for the flow control of the whole connection.
                self._state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.ResponseReceived):
            self._begin(stream, event.headers)
        elif isinstance(event, h2.events.InformationalResponseReceived):
            stream.interim += 1
            if stream.interim > MAX_INTERIM:
                self._reject(stream, f"it has more than {MAX_INTERIM} interim responses")
            elif stream.continued is not None:
                stream.continued.set()
        elif isinstance(event, h2.events.DataReceived):
            if not event.data:
                # The reader would take an empty chunk for the end of the body.
                self._state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                return
            stream.unread += event.flow_controlled_length
            stream.answer.paused = True
            stream.answer.add(event.data)
        elif isinstance(event, h2.events.TrailersReceived):
            stream.answer.trailers = [(str(name), str(value)) for name, value in event.headers][:MAX_FIELDS]
        elif isinstance(event, h2.events.StreamEnded):
            if not stream.sent:
                # The server needs no more of the body, and need not reset the stream itself (RFC 9113, 8.1).
                self._reset(stream, h2.errors.ErrorCodes.NO_ERROR)
            self._end(stream, None)
        elif isinstance(event, h2.events.StreamReset):
            refused = event.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
            self._end(stream, OutboundError(f"the server reset the stream ({event.error_code!s})", unanswered=refused))

    def _begin(self, stream: _Stream, headers: Any) -> None:
        """Set status and headers of the response of a stream, and hand it to the sender of the request. An invalid
        response is rejected.
        """
        answer = stream.answer
        status = next((value for name, value in headers if name == ":status"), "")
        # Exactly three digits (RFC 9110, 15).
        answer.status = int(status) if len(status) == 3 and status.isascii() and status.isdigit() else 0
        answer.headers = [(name, value) for name, value in headers if not name.startswith(":")]
        problem = response_problem(answer.status, answer.headers)
        if problem is not None:
            self._reject(stream, problem)
            return
        length = answer.header("content-length")
        answer.length = int(length) if length else None
        if not stream.final.done():
            stream.final.set_result(None)

    def _reject(self, stream: _Stream, problem: str) -> None:
        """Reset a stream whose response is invalid; its request fails with `OutboundError`. problem: what is
        invalid.
        """
        self._reset(stream, h2.errors.ErrorCodes.PROTOCOL_ERROR)
        self._end(stream, OutboundError(f"the response is not valid: {problem}"))

    def connection_lost(self, error: Exception | None) -> None:
        reason = "the connection was closed" if error is None else f"the connection broke: {error}"
        self._leaving = True
        for stream in list(self._streams.values()):
            unanswered = not stream.final.done() and not stream.interim
            self._end(stream, OutboundError(reason, unanswered=unanswered))
        self.close()

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        self._make_room()

    # --- ends ------------------------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Let the streams continue whose body waits for flow control."""
        for stream in self._streams.values():
            if stream.room is not None and not stream.room.done():
                stream.room.set_result(None)

    def _go_away(self, last: int) -> None:
        """End the streams after number `last`, which the server will not process; their requests may be repeated. Take
        no further request.
        """
        self._leaving = True
        for stream in list(self._streams.values()):
            if stream.number > last:
                self._end(stream, OutboundError("the server is going away", unanswered=True))
        if not self._streams:
            self.close()

    def _end(self, stream: _Stream, error: Exception | None) -> None:
        """End a stream: with an error, or None if the response is complete."""
        if self._streams.pop(stream.number, None) is None:
            return
        if stream.sender is not None and error is not None and stream.sender is not asyncio.current_task():
            stream.sender.cancel()
        if stream.room is not None and not stream.room.done():
            stream.room.set_result(None)
        if not stream.final.done():
            stream.final.set_exception(error or OutboundError("the server ended the stream without a response"))
        stream.answer.end(error)
        if not self._streams:
            self.idle_since = self._loop.time()
            if self._leaving:
                self.close()
                return
        self._on_free(self)

    def _fail(self, error: Exception) -> None:
        """Close the connection and end all streams with this error."""
        for stream in list(self._streams.values()):
            self._streams.pop(stream.number, None)
            if stream.sender is not None:
                stream.sender.cancel()
            if not stream.final.done():
                stream.final.set_exception(error)
            stream.answer.end(error)
        self.close()

    def close(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
            self._on_free(self)

    def _flush(self) -> None:
        """Write what h2 has to send to the transport."""
        if self._transport is not None and (data := self._state.data_to_send()):
            self._transport.write(data)


def _fields(request: OutgoingRequest) -> Headers:
    """Return the pseudo-headers and headers of a request, without headers about the connection (RFC 9113, 8.2.2)."""
    host = next((value for name, value in request.headers if name.lower() == "host"), None)
    pseudo = [
        (":method", request.method),
        (":authority", host or request.address.origin.authority),
        (":scheme", request.address.origin.scheme),
        (":path", request.address.target),
    ]
    carried = ((name.lower(), value) for name, value in (*request.headers, *request.framing_headers()))
    return pseudo + [(name, value) for name, value in carried if name not in _OF_CONNECTION]
