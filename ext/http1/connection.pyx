"""Connections of the HTTP/1.1 server, as protocols of uvloop's transports (RFC 9112).

`data_received` parses a request, hands it to the application and sends the response. If the application responds before
`handle` returns, the same call goes on with the next request of the received bytes. Requests of one connection are
handled one after another. Everything that one call of `data_received` sends leaves in one system call.

The application sees a `Scope` and a `RequestProtocol`, whose methods are those of granian's RSGI protocol.

docs/internals/http-engine.md has the states and invariants.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.math cimport INFINITY
from libc.string cimport memchr, memcmp

from rowcall.ext.base.clock cimport now
from rowcall.ext.base.response_guard cimport response_problem
from rowcall.ext.http1.chunked_body cimport ChunkedBody
from rowcall.ext.http1.request_head cimport RequestHead
from rowcall.ext.http1.response_head cimport (
    CHUNKED, CLOSE, Framing, IMPLIED, KEEP_ALIVE, NO_BODY, Persistence, UNTIL_CLOSE, WITH_LENGTH, response_message,
    says_close, stated_length)
from rowcall.ext.http1.scope cimport Scope

from rowcall.ext.base.response_guard import InvalidResponseError
from rowcall.ext.http1.request_head import ERRORS

cdef extern from "<poll.h>" nogil:
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd *descriptors, unsigned long count, int timeout)
    int POLLHUP, POLLERR

cdef extern from "<sys/ioctl.h>" nogil:
    int ioctl(int descriptor, unsigned long request, int *value)
    unsigned long TIOCOUTQ

cdef enum:
    READ_AHEAD = 65536      # bytes behind a request that are read before it has been answered
    DISCARD_MOST = 65536    # most unread bytes of a body that are discarded, so that the connection can stay open
    GATHERED = 65536        # bytes up to which a body is copied behind its head, so that both are one piece
    PREFACE_SIZE = 24

# For how many seconds input is dropped after the last response of a connection.
cdef double LINGER_SECONDS = 2.0
# Seconds between the interim response of `check_hang_up` and the check whether the client has sent a reset.
cdef double HANG_UP_CHECK_SECONDS = 0.02

cdef bytes PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
cdef bytes CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
cdef bytes PROCESSING = b"HTTP/1.1 102 Processing\r\n\r\n"
cdef bytes INTERNAL_ERROR_BODY = b'{"title":"Internal Server Error","status":500}'
cdef list PROBLEM = [("content-type", "application/problem+json")]


cdef class Http1Server:
    """The connections of one listener, with their settings and callbacks.

    loop: the event loop. handle(scope, protocol): handles a request; raises nothing. problem_body(status, detail):
    returns the body (bytes) of the response to a request that cannot be parsed. own_headers: headers, besides the
    content type, of the responses that the server makes itself: to such requests, and if `handle` fails.
    send_file(protocol, status, headers, path, start, end): responds with the bytes from `start` to before `end` of a
    file, or up to its end if `end` is None. take_http2(transport, data): takes over a connection that begins with the
    HTTP/2 preface (RFC 9113, 3.4); None: the preface is refused. closed_error: exception class raised by a read of a
    body whose connection has ended. on_closed(connection): called when a connection has ended. head_limit: maximum
    number of bytes of request line and header section. line_limit: bytes of the request line beyond which an incomplete
    head is refused; 0: no separate limit. The application checks the line of a complete head. body_buffer: bytes of an
    unread body at which reading from the client pauses, at least READ_AHEAD. keep_alive: False: each connection is
    closed after its first response. idle_seconds: time limit for a head, counted from the last byte sent.
    unread_seconds: time for which a client may leave sent bytes unread. gather_from, gather_seconds: the server is busy
    if at least `gather_from` requests are in progress, or if as many responses have followed each other within
    `gather_seconds` each. Then complete responses are sent together at the end of the turn of the event loop, so that a
    client with many connections is woken once; except a response that follows one of the same connection.
    """

    def __init__(self, loop, handle, problem_body, send_file, take_http2, closed_error, on_closed, *,
                 Py_ssize_t head_limit, Py_ssize_t line_limit, Py_ssize_t body_buffer, bint keep_alive,
                 double idle_seconds, double unread_seconds, Py_ssize_t gather_from,
                 double gather_seconds, own_headers=()):
        self.loop = loop
        self.handle = handle
        self.problem_body = problem_body
        self.problem_headers = [*PROBLEM, *own_headers]
        self.send_file = send_file
        self.take_http2 = take_http2
        self.closed_error = closed_error
        self.on_closed = on_closed
        self.head_limit = head_limit
        self.line_limit = line_limit
        self.body_buffer = max(body_buffer, READ_AHEAD)
        self.keep_alive = keep_alive
        self.idle_seconds = idle_seconds
        self.unread_seconds = unread_seconds
        self.gather_seconds = gather_seconds
        self.gather_from = gather_from
        self.connections = set()
        self.unsent = []
        self.send_method = self._send_gathered
        self.last_response = -INFINITY

    def check(self):
        """Close connections whose time limit has passed, and look for clients that have left during a request. Has to
        be called periodically."""
        cdef Connection connection
        cdef double moment = now()
        for connection in list(self.connections):
            connection.check(moment)

    def end_idle(self):
        """Close the connections that have no request now. Every other connection is closed when its response is
        complete."""
        cdef Connection connection
        self.closing = True
        for connection in list(self.connections):
            connection.end_if_idle()

    def abort(self):
        """Close all connections at once; data that is not sent yet is dropped."""
        cdef Connection connection
        for connection in list(self.connections):
            connection.abort()

    cdef bint record_response(self, Connection connection) except -1:
        """Record a complete response; return whether it is sent at the end of this turn of the event loop."""
        # A single client waits for each of its responses, so there is nothing to gather, however fast it is.
        cdef bint gathers
        self.dense = self.dense + 1 if connection.last_sent - self.last_response < self.gather_seconds else 0
        gathers = <void*>connection != self.last_connection and max(self.running, self.dense) >= self.gather_from
        self.last_response = connection.last_sent
        self.last_connection = <void*>connection
        return gathers

    cdef int send_later(self, Connection connection) except -1:
        """Send the output of a connection at the end of this turn of the event loop."""
        if not self.unsent:
            self.loop.call_soon(self.send_method)
        self.unsent.append(connection)
        return 0

    def _send_gathered(self):
        """Send the output of the connections for which `send_later` was called."""
        cdef Connection connection
        cdef list unsent = self.unsent
        self.unsent = []
        for connection in unsent:
            connection.gathered = False
            if connection.output:
                connection._write()


cdef class Connection:
    """One connection: the protocol of its transport. `server` counts it in `connections` until it has ended."""

    def __init__(self, Http1Server server not None):
        self.server = server
        self.output = []
        self.fresh = True
        server.connections.add(self)

    # The protocol of asyncio

    def connection_made(self, transport):
        self.transport = transport
        peer = transport.get_extra_info("peername")
        own = transport.get_extra_info("sockname")
        self.client = _address(peer) if type(peer) is tuple else ""
        self.local = _address(own) if type(own) is tuple else (own or "")
        self.last_sent = now()
        if self.waiting_for_admission:
            self._pause_reading()

    def wait_for_admission(self):
        """Read nothing from the client until `admit` is called."""
        self.waiting_for_admission = True
        if self.transport is not None:
            self._pause_reading()

    def admit(self):
        """Start reading after `wait_for_admission`."""
        self.waiting_for_admission = False
        self.last_sent = now()
        self._control_reading()

    def data_received(self, bytes data not None):
        if self.phase >= LINGERING:
            return
        # Offsets of a head refer to its own bytes object, so a new object for all pending bytes does not affect it.
        if self.pending is None:
            self.pending = data
            self.position = 0
        else:
            self.pending = self.pending[self.position:] + data
            self.position = 0
        self._advance()

    def eof_received(self):
        """Go on without input: the client still gets the responses to the requests it has sent (RFC 9112, 9.6)."""
        self.eof = True
        if self.phase == RUNNING:
            self.request.end_of_input()
        elif self.phase == READING_HEAD and self.pending is not None:
            self._advance()
        elif self.phase < CLOSING:
            self.close()
        return True

    def pause_writing(self):
        self.writing_paused = True

    def resume_writing(self):
        self.writing_paused = False
        self.last_sent = now()
        if self.writable is not None:
            writable = self.writable
            self.writable = None
            if not writable.done():
                writable.set_result(None)
        if self.phase == READING_HEAD and self.pending is not None:
            self._advance()

    def connection_lost(self, error):
        cdef RequestProtocol request = self.request
        self._stop_running()
        self.phase = DETACHED
        self.server.connections.discard(self)
        self.pending = None
        self.output = []
        self.request = None
        if self.writable is not None and not self.writable.done():
            self.writable.set_result(None)
        self.writable = None
        if request is not None:
            request.record_disconnect()
        self.server.on_closed(self)

    # Requests

    cdef int _advance(self) except -1:
        """Process the received bytes until more input or the response of the application is needed; send the output.

        Does nothing if it is already running: the running call processes the bytes.
        """
        if self.advancing:
            return 0
        self.advancing = True
        try:
            while self._step():
                pass
        finally:
            self.advancing = False
            self._flush()
        self._control_reading()
        return 0

    cdef bint _step(self) except -1:
        """Do what the phase demands with the received bytes. Returns whether the next phase may do more now."""
        if self.phase == READING_HEAD:
            return self.pending is not None and not self.writing_paused and self._take_head()
        if self.phase == RUNNING:
            self._feed()
            return False
        if self.phase == DISCARDING:
            self._feed()
            self.request.pieces.clear()
            if self.request.body_broken:
                self.close()
                return False
            if not self.request.body_complete:
                return False
            self.request = None
            self.phase = READING_HEAD
            return True
        return False

    cdef bint _take_head(self) except -1:
        """Parse the next head and hand its request to the application.

        Returns False if the head is incomplete or refused, or if the application has not completed its response yet.
        """
        cdef RequestHead head
        cdef Scope scope
        cdef RequestProtocol request
        cdef Py_ssize_t end
        # False also while only the start of the preface has arrived.
        if self.fresh and self._begins_http2():
            return False
        head = RequestHead.__new__(RequestHead)
        end = head.parse(self.pending, self.position)
        if end < 0:
            status, detail = ERRORS[<Py_ssize_t>(0 - end)]
            self._refuse(status, detail)
            return False
        if self._exceeds_limits(head, end):
            return False
        if end == 0:
            if self.eof:
                self.close()
            return False
        self.fresh = False
        self.position = end
        scope = Scope.__new__(Scope)
        scope.head = head
        scope.client = self.client
        scope.server = self.local
        request = RequestProtocol.__new__(RequestProtocol)
        request.connection = self
        request.server = self.server
        request.head = head
        request.remaining = head.content_length
        if head.content_length < 0:
            request.chunks = ChunkedBody.__new__(ChunkedBody)
        request.body_complete = head.content_length == 0
        request.pieces = []
        self.request = request
        self.phase = RUNNING
        self.running = True
        self.server.running += 1
        self._feed()
        # The request has waited for the response to the one in front, and the rest of its body will not arrive.
        request.input_ended = self.eof and not request.body_complete
        self.server.handle(scope, request)
        return self.phase != RUNNING

    cdef bint _begins_http2(self) except -1:
        """Return whether the first bytes are the preface of HTTP/2 or the start of one; False if the server has no
        `take_http2`. A connection whose preface is complete is handed over to it."""
        cdef Py_ssize_t size = PyBytes_GET_SIZE(self.pending)
        if memcmp(PyBytes_AS_STRING(self.pending), PyBytes_AS_STRING(PREFACE), min(size, PREFACE_SIZE)) != 0:
            return False
        if self.server.take_http2 is None:
            return False
        if size >= PREFACE_SIZE:
            data = self.pending
            self.pending = None
            self.phase = DETACHED
            self.server.connections.discard(self)
            self.server.take_http2(self.transport, data)
        return True

    cdef bint _exceeds_limits(self, RequestHead head, Py_ssize_t end) except -1:
        """Refuse a head that exceeds a size limit, even an incomplete one. Returns whether the head was refused.

        end: offset behind the head; 0 if the head is incomplete. Of a complete head, only the size of the whole is
        checked here; the application checks the request line.
        """
        cdef Py_ssize_t size = (end if end else PyBytes_GET_SIZE(self.pending)) - self.position
        cdef Py_ssize_t line_limit = self.server.line_limit
        if line_limit and size > line_limit and end == 0 and memchr(
                PyBytes_AS_STRING(self.pending) + self.position, 10, line_limit) == NULL:
            self._refuse(414, f"the request line is longer than {line_limit} bytes")
            return True
        if size > self.server.head_limit:
            limit = self.server.head_limit
            self._refuse(431, f"the request line and the headers are larger than {limit} bytes together")
            return True
        return False

    cdef int _feed(self) except -1:
        """Pass the received bytes of the body to the request."""
        cdef RequestProtocol request = self.request
        cdef Py_ssize_t end
        if self.pending is None or request.body_complete or request.body_broken:
            return 0
        end = PyBytes_GET_SIZE(self.pending)
        if self.position < end:
            self.position = request.take(self.pending, self.position, end)
        if self.position >= end:
            self.pending = None
        return 0

    cdef int _stop_running(self) except -1:
        """Record that no request is in progress any more."""
        if self.running:
            self.running = False
            self.server.running -= 1
        return 0

    cdef int _refuse(self, int status, str detail) except -1:
        """Respond to an invalid head, and end the connection, because the start of the next request is unknown. detail:
        a sentence for the body of the response."""
        body = self.server.problem_body(status, detail)
        self.output.append(response_message(status, self.server.problem_headers, WITH_LENGTH, len(body), CLOSE, body))
        self._linger()
        return 0

    cdef int respond(self, bytes message, bytes body) except -1:
        """Queue the bytes of the present response, which `_flush` sends. body: bytes that follow `message`, or None."""
        self.output.append(message)
        if body is not None:
            self.output.append(body)
        self.last_sent = now()
        return 0

    cdef int complete(self, bint close) except -1:
        """Go on with the next request after a complete response, or end the connection.

        close: the response has announced that the connection ends.
        """
        cdef RequestProtocol request = self.request
        self._stop_running()
        if self.pending is not None and self.position >= PyBytes_GET_SIZE(self.pending):
            self.pending = None
        # If the client has closed its sending half, requests that it has sent before are still answered.
        if close or (self.eof and self.pending is None):
            self.request = None
            if self.pending is None and request.body_complete:
                self.phase = CLOSING
            else:
                self._linger()
        elif request.body_complete:
            self.request = None
            self.phase = READING_HEAD
        else:
            self.phase = DISCARDING
        if not self.advancing:
            self._advance()
        return 0

    cdef int _flush(self) except -1:
        """Send the output now or, behind a complete response, at the end of this turn of the event loop; close the
        transport (CLOSING) or its sending half (LINGERING) behind it."""
        if self.output and not (self.phase == READING_HEAD and self._gather_output()):
            self._write()
        if self.phase == CLOSING:
            self.transport.close()
        elif self.phase == LINGERING and self.deadline == 0:
            self.deadline = now() + LINGER_SECONDS
            self.transport.write_eof()
        return 0

    cdef bint _gather_output(self) except -1:
        """Let the server send the output at the end of this turn of the event loop, if it gathers responses now
        (`Http1Server.record_response`); return whether it will, also if that was arranged before."""
        if not self.gathered and self.server.record_response(self):
            self.gathered = True
            self.server.send_later(self)
        return self.gathered

    cdef int _write(self) except -1:
        """Pass the output to the transport."""
        output = self.output
        self.output = []
        if self.transport is not None and not self.transport.is_closing():
            if len(output) == 1:
                self.transport.write(output[0])
            else:
                self.transport.writelines(output)
        return 0

    cdef int send_now(self) except -1:
        """Send the output, unless the running `_advance` does so when it ends."""
        if not self.advancing:
            self._flush()
        return 0

    cdef bint has_more(self) noexcept:
        """Return whether bytes behind the present request have been received."""
        return self.pending is not None and self.position < PyBytes_GET_SIZE(self.pending)

    # Reading ahead

    cdef int _control_reading(self) except -1:
        """Pause reading while enough input is buffered or the connection waits for admission, resume it otherwise."""
        cdef bint pause = self.waiting_for_admission
        if self.phase == RUNNING:
            pause = (self.pending is not None and self.request.body_complete
                     and PyBytes_GET_SIZE(self.pending) - self.position >= READ_AHEAD) or self.request.is_ahead()
        elif self.phase == READING_HEAD and self.writing_paused:
            pause = self.pending is not None
        if pause:
            self._pause_reading()
        elif self.reading_paused and self.phase < CLOSING and not self.eof:
            self.reading_paused = False
            self.transport.resume_reading()
        return 0

    cdef int _pause_reading(self) except -1:
        if not self.reading_paused and not self.eof and not self.transport.is_closing():
            self.reading_paused = True
            self.transport.pause_reading()
        return 0

    # The end

    cdef int _linger(self) except -1:
        """Begin LINGERING; `_flush` then sends the output and closes the sending half of the connection. If the client
        sends nothing any more, nothing has to be dropped, and the connection closes."""
        self.phase = CLOSING if self.eof else LINGERING
        self.pending = None
        self.request = None
        self.deadline = 0
        return 0

    cdef int close(self) except -1:
        """Close the connection when everything is sent."""
        self._stop_running()
        self.phase = CLOSING
        if not self.advancing:
            self._flush()
        return 0

    cdef int abort(self) except -1:
        """Close the connection at once; data that is not sent yet is dropped."""
        if self.transport is not None and self.phase != DETACHED:
            self._stop_running()
            self.phase = CLOSING
            self.output = []
            self.transport.abort()
        return 0

    cdef int end_if_idle(self) except -1:
        """Close the connection if it has no request and no received bytes."""
        if self.phase == READING_HEAD and self.pending is None and self.transport is not None:
            self.close()
        return 0

    cdef int check(self, double moment) except -1:
        """Close the connection if a time limit has passed; look for a client that has left during a request.

        moment: the present time, as `now()` has it. Called by `Http1Server.check`.
        """
        if self.transport is None or self.phase == DETACHED:
            return 0
        if self.phase == RUNNING:
            if self.eof:
                self.request.check_hang_up()
            return 0
        if self.phase == LINGERING:
            # The time limit begins when the client has received the response.
            if self._is_receiving(moment):
                self.deadline = moment + LINGER_SECONDS
            elif moment > self.deadline:
                self.abort()
            return 0
        if self.waiting_for_admission:
            return 0
        if self.transport.get_write_buffer_size():
            if not self._is_receiving(moment):
                self.abort()
        elif moment - self.last_sent > self.server.idle_seconds and not self._is_receiving(moment):
            self.close()
        return 0

    cdef bint _is_receiving(self, double moment) except -1:
        """Return whether the client has not received all sent bytes, and its time to take more of them has not passed.

        moment: the present time, as `now()` has it. Has to be called periodically while the transport has unsent bytes.
        """
        cdef Py_ssize_t unsent = self.transport.get_write_buffer_size()
        # A client that takes sent bytes counts as active, even if it takes few of them.
        if unsent and unsent != self.unsent:
            self.last_sent = moment
            self.unsent = unsent
        if moment - self.last_sent > self.server.unread_seconds:
            return False
        # If the transport has handed everything to the system, the buffer of the system may still be full.
        return unsent > 0 or self._is_unread()

    cdef bint _is_unread(self) except -1:
        """Return whether the client has not received all sent bytes; False if the system does not report that."""
        cdef int bytes_left = 0
        return ioctl(self.descriptor(), TIOCOUTQ, &bytes_left) == 0 and bytes_left > 0

    cdef int descriptor(self) except -2:
        """Return the file descriptor of the connection; -1 if the transport has no socket."""
        connection = self.transport.get_extra_info("socket")
        return -1 if connection is None else connection.fileno()

    cdef bint hung_up(self) except -1:
        """Return whether both directions of the connection have ended.

        A client that has only closed its sending half still reads, so the result is False.
        """
        cdef pollfd descriptor
        descriptor.fd = self.descriptor()
        descriptor.events = 0
        descriptor.revents = 0
        return poll(&descriptor, 1, 0) > 0 and descriptor.revents & (POLLHUP | POLLERR) != 0


cdef class RequestProtocol:
    """One request on its connection: its body, and the response to it.

    Each `response_*` method sends a complete response, except `response_stream`. The first invalid response of a
    request raises `InvalidResponseError`, and the caller may then send another response; if that is invalid too, the
    client gets a plain 500. A `response_*` method sends nothing if the client has left or a response has begun.
    """

    # The body of the request

    cdef Py_ssize_t take(self, bytes data, Py_ssize_t at, Py_ssize_t end) except -1:
        """Read the bytes of the body in `data[at:end]`. Returns the offset of the first byte that was not read.

        end: the size of `data`.
        """
        cdef Py_ssize_t size, count = len(self.pieces)
        if self.chunks is None:
            size = end - at if end - at < self.remaining else <Py_ssize_t>self.remaining
            self.pieces.append(data if size == PyBytes_GET_SIZE(data) else data[at:at + size])
            self.remaining -= size
            self.body_complete = self.remaining == 0
            at += size
        else:
            at = self.chunks.decode(data, at, self.pieces)
            # Bytes that have arrived together are one piece: chunks may have a single byte each, and handling a piece
            # takes as long as handling thousands of bytes.
            if len(self.pieces) > count + 1:
                self.pieces[count:] = [b"".join(self.pieces[count:])]
            self.body_complete = self.chunks.complete
            self.body_broken = self.chunks.broken
        for piece in self.pieces[count:]:
            self.waiting_bytes += PyBytes_GET_SIZE(<bytes>piece)
        self._wake_reader()
        return at

    cdef bint is_ahead(self) noexcept:
        """Return whether reading from the client should pause, because enough unread bytes of the body wait."""
        return not self.body_complete and not self.whole and self.waiting_bytes >= self.server.body_buffer

    cdef int _wake_reader(self) except -1:
        """Complete the waiting read, if it can be completed now."""
        reader = self.reader
        if reader is None or (self.whole and not (self.body_complete or self.body_broken or self.input_ended)):
            return 0
        if not self.whole and not self.pieces and not (self.body_complete or self.body_broken or self.input_ended):
            return 0
        self.reader = None
        if not reader.done():
            self._resolve(reader)
        return 0

    cdef int _resolve(self, reader) except -1:
        """Complete the future of a read with the whole body, the next piece, an empty piece for a broken body, the
        end of the body (StopAsyncIteration) or `closed_error`. reader: the future, which is not done."""
        if self.whole:
            if not self.body_complete:
                reader.set_exception(self.server.closed_error("the body is incomplete"))
                return 0
            reader.set_result(self._whole_body())
        elif self.pieces:
            piece = self.pieces.pop(0)
            self.waiting_bytes -= PyBytes_GET_SIZE(<bytes>piece)
            reader.set_result(piece)
            if self.connection is not None and self.connection.reading_paused:
                self.connection._control_reading()
        elif self.body_broken:
            # Like granian: a broken body ends with empty pieces, without StopAsyncIteration.
            reader.set_result(b"")
        elif self.body_complete:
            reader.set_exception(StopAsyncIteration())
        else:
            reader.set_exception(self.server.closed_error("the body is incomplete"))
        return 0

    cdef bytes _whole_body(self):
        """Return the pieces that were not read yet, as one."""
        pieces = self.pieces
        self.pieces = []
        self.waiting_bytes = 0
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    cdef object _read(self):
        """Return a future of the next piece, or of the whole body if `whole` is set; both are bytes. What it raises:
        see `_resolve`."""
        reader = self.server.loop.create_future()
        if self.pieces and not self.whole or self.body_complete or self.body_broken or self.input_ended:
            self._resolve(reader)
            return reader
        self.reader = reader
        self._say_continue()
        return reader

    cdef int _say_continue(self) except -1:
        """Send the response 100 to a client that sends its body only after it (RFC 9110, 10.1.1)."""
        if self.head.expects_continue and not self.continued and not self.begun and self.connection is not None:
            self.continued = True
            # A client that has sent a part of its body does not wait.
            if not self.waiting_bytes:
                self.connection.output.append(CONTINUE)
                self.connection.send_now()
        return 0

    def __call__(self):
        """Return a future of the whole body, in bytes. It raises `closed_error` if the body stays incomplete."""
        self.whole = True
        future = self._read()
        if self.connection is not None and self.connection.reading_paused:
            self.connection._control_reading()
        return future

    def received_body(self):
        """Return the whole body (bytes) if it has been received completely, else None; then `__call__` waits for it.
        Must not be called after a part of the body was read."""
        if not self.body_complete:
            return None
        self.whole = True
        body = self._whole_body()
        if self.connection is not None and self.connection.reading_paused:
            self.connection._control_reading()
        return body

    def __aiter__(self):
        return self

    def __anext__(self):
        """Return a future of the next part of the body, which is empty if the body is broken. The future raises
        `closed_error` if the connection ends before. Raises StopAsyncIteration behind the last part."""
        self.whole = False
        if not self.pieces and self.body_complete:
            raise StopAsyncIteration
        return self._read()

    cdef int end_of_input(self) except -1:
        """Record that the client has closed its sending half, and wake the tasks that wait for more input."""
        self.input_ended = not self.body_complete
        self._wake_reader()
        if self.watchers:
            self.check_hang_up()
        return 0

    # The client

    def client_disconnect(self):
        """Return a future that is done, with None, when the client leaves before the response is complete.

        If the connection has already ended at the time of the call, the future is done at once if no response had
        begun, and never done otherwise. It is never done either after a complete response.
        """
        future = self.server.loop.create_future()
        if self.connection is None:
            if not self.begun:
                future.set_result(None)
            return future
        if self.watchers is None:
            self.watchers = []
        self.watchers.append(future)
        if self.connection.eof:
            self.check_hang_up()
        return future

    cdef int check_hang_up(self) except -1:
        """Check whether a client that has closed its sending half still reads, and wake the watchers if it does not.

        Over TCP, a full close looks like a half-close until the server sends something: then the client's system
        answers with a reset. A client that waits for its response ignores an interim response (RFC 9110, 15.2).
        """
        cdef Connection connection = self.connection
        if connection is None or not self.watchers:
            return 0
        if connection.hung_up():
            self._notify_watchers()
            # uvloop reads nothing behind the end of the input, and so does not report that the connection has ended.
            connection.abort()
        # `client` is empty over a Unix socket, where a full close is visible to `hung_up`. Within a response, or to
        # HTTP/1.0, no interim response can be sent: the half-close counts as the end.
        elif connection.client and (self.begun or self.head.minor_version == 0):
            self._notify_watchers()
        elif connection.client and not self.probed:
            self.probed = True
            connection.output.append(PROCESSING)
            connection.send_now()
            self.server.loop.call_later(HANG_UP_CHECK_SECONDS, self._check_again)
        return 0

    def _check_again(self):
        """Check once more, after the time within which a reset would have arrived."""
        self.check_hang_up()

    cdef int _notify_watchers(self) except -1:
        """Resolve the futures of `client_disconnect`."""
        watchers = self.watchers
        self.watchers = None
        if watchers:
            for watcher in watchers:
                if not watcher.done():
                    watcher.set_result(None)
        return 0

    cdef int record_disconnect(self) except -1:
        """Record that the connection has ended, and wake all waiting tasks."""
        self.connection = None
        self.input_ended = not self.body_complete
        self._wake_reader()
        self._notify_watchers()
        return 0

    # The response

    cdef int _check(self, status, headers, Py_ssize_t length) except -1:
        """Return 1 if the response may be sent, 0 if a plain 500 was sent instead.

        Raises `InvalidResponseError` for the first invalid response. length: bytes of the body, -1 if unknown.
        """
        problem = response_problem(status, headers, length)
        if problem is None:
            return 1
        if not self.rejected:
            self.rejected = True
            raise InvalidResponseError(problem)
        self.fail()
        return 0

    cdef bint _may_answer(self) noexcept:
        """Return whether no response has begun and the client has not left."""
        return self.connection is not None and not self.begun

    cdef bint _has_no_body(self, int status) noexcept:
        """Return whether a response has no body because of its status or the method HEAD (RFC 9110, 6.4.1)."""
        return status == 204 or status == 304 or self._is_head()

    cdef bint _is_head(self) noexcept:
        return self.head.method_length == 4 and memcmp(self.head.text + self.head.method, b"HEAD", 4) == 0

    cdef bint _closes(self, headers) except -1:
        """Return whether the connection has to be closed after a response with these headers. The connection must not
        have ended."""
        if not self.head.keep_alive or not self.server.keep_alive or self.server.closing:
            return True
        if self.connection.eof and not self.connection.has_more():
            return True
        # The unread rest of a body has to be read before the next request: not if it is long or its length is unknown.
        if not self.body_complete:
            if self.body_broken or self.chunks is not None or self.remaining > DISCARD_MOST:
                return True
            # The client may or may not send the body now, so the start of the next request is unknown.
            if self.head.expects_continue and not self.continued:
                return True
        return says_close(headers)

    cdef int _respond(self, int status, headers, bytes body) except -1:
        """Send a complete response, which has been checked, and separate this request from its connection. body: None
        for a response of `response_empty`."""
        cdef bint close = self._closes(headers)
        cdef bint bodiless = self._has_no_body(status)
        cdef Py_ssize_t size = 0 if body is None else PyBytes_GET_SIZE(body)
        # The response to HEAD has the headers of the response to GET, also Content-Length (RFC 9110, 9.3.2).
        cdef Framing framing = NO_BODY if bodiless and (body is None or not self._is_head()) else WITH_LENGTH
        cdef Persistence persistence = CLOSE if close else IMPLIED if self.head.minor_version else KEEP_ALIVE
        cdef bint gathered = size <= GATHERED
        cdef Connection connection = self.connection
        # Before `complete`, which may handle the next request of the connection.
        self.begun = True
        self.connection = None
        self.watchers = None
        message = response_message(
            status, headers, framing, size, persistence, body if gathered and size and not bodiless else None)
        connection.respond(message, None if gathered or bodiless else body)
        connection.complete(close)
        return 0

    def response_empty(self, status, headers):
        if self._may_answer() and self._check(status, headers, -1):
            self._respond(status, headers, None)

    def response_bytes(self, status, headers, body):
        if self._may_answer() and self._check(status, headers, len(body)):
            self._respond(status, headers, body if type(body) is bytes else bytes(body))

    def response_str(self, status, headers, body):
        self.response_bytes(status, headers, (<str?>body).encode())

    def fail(self):
        """Send a plain 500, unless a response has begun or the client has left."""
        if self._may_answer():
            self._respond(500, self.server.problem_headers, INTERNAL_ERROR_BODY)

    def response_file(self, status, headers, file):
        if not self._may_answer() or not self._check(status, headers, -1):
            return
        if self.stream is not None and file == self.stream.name:
            self._begin_stream(status, headers)
        else:
            self.server.send_file(self, status, headers, file, 0, None)

    def response_file_range(self, status, headers, file, start, end):
        if self._may_answer() and self._check(status, headers, end - start):
            self.server.send_file(self, status, headers, file, start, end)

    def prepare_stream(self):
        """Return a writer for a response that is sent in parts.

        The response begins when `response_file` is called with the name of the writer as its file.
        """
        self.stream = StreamWriter.__new__(StreamWriter)
        self.stream.request = self
        return self.stream

    def response_stream(self, status, headers):
        """Begin a response that is sent in parts, and return the writer of its body.

        Raises `InvalidResponseError` for every invalid response.
        """
        self.prepare_stream()
        if self._may_answer():
            problem = response_problem(status, headers, -1)
            if problem is not None:
                self.rejected = True
                raise InvalidResponseError(problem)
            self._begin_stream(status, headers)
        return self.stream

    cdef int _begin_stream(self, int status, headers) except -1:
        """Send the head of a response that has been checked, and open its writer, `stream`."""
        cdef StreamWriter stream = self.stream
        cdef Connection connection = self.connection
        cdef Framing framing
        cdef Persistence persistence
        stream.connection = connection
        stream.remaining = stated_length(headers)
        stream.close_behind = self._closes(headers)
        if stream.remaining >= 0:
            framing = WITH_LENGTH
        elif self.head.minor_version:
            framing = CHUNKED
        else:
            framing = UNTIL_CLOSE
            stream.close_behind = True
        stream.chunked = framing == CHUNKED
        stream.bodiless = self._has_no_body(status)
        if stream.bodiless:
            framing = NO_BODY
        persistence = CLOSE if stream.close_behind else IMPLIED if self.head.minor_version else KEEP_ALIVE
        self.begun = True
        connection.respond(response_message(status, headers, framing, stream.remaining, persistence, None), None)
        connection.send_now()
        return 0


cdef class StreamWriter:
    """The writer of the body of one response that is sent in parts."""

    name = "/dev/fd/response"
    """Passed to `response_file` instead of the path of a file, begins the response of the writer."""

    @property
    def open(self):
        """True while parts of the body can be sent."""
        return self.connection is not None and self.connection.phase == RUNNING \
            and not self.connection.transport.is_closing()

    def send_bytes(self, data):
        """Send one part. data: bytes of any length. Returns False if the client has left or the response is not open.

        Raises ValueError if the body becomes longer than its Content-Length.
        """
        if not self.open:
            return False
        if not data or self.bodiless:
            return True
        if self.chunked:
            self.connection.output += (b"%x\r\n" % len(data), data, b"\r\n")
        else:
            if self.remaining >= 0:
                self.remaining -= len(data)
                if self.remaining < 0:
                    raise ValueError("the body is longer than its Content-Length")
            self.connection.output.append(data)
        self.connection.last_sent = now()
        self.connection.send_now()
        return True

    def full(self):
        """Return whether the buffer of the transport is full, so that the sender should wait for `room`."""
        return self.open and self.connection.writing_paused

    def unsent(self):
        """Return the number of bytes that the transport has not handed to the system yet, because the client does not
        take them; 0 if the response is not open."""
        return self.connection.transport.get_write_buffer_size() if self.open else 0

    def room(self):
        """Return a future that is done, with None, when the transport takes more, or the connection has ended."""
        if not self.full():
            future = self.request.server.loop.create_future()
            future.set_result(None)
            return future
        if self.connection.writable is None or self.connection.writable.done():
            self.connection.writable = self.request.server.loop.create_future()
        return self.connection.writable

    def hung_up(self):
        """Return whether the response cannot be sent any more or the client has closed its sending half.

        In the latter case the client may still read.
        """
        return not self.open or self.connection.eof

    def close(self):
        """End the body. If it is shorter than its Content-Length, the connection is aborted."""
        cdef Connection connection = self.connection
        if connection is None:
            return
        if not self.open:
            self._detach()
        elif self.remaining > 0 and not self.bodiless:
            self.abort()
        else:
            if self.chunked and not self.bodiless:
                connection.output.append(b"0\r\n\r\n")
                connection.last_sent = now()
            self._detach()
            connection.complete(self.close_behind)

    def abort(self):
        """Abort the connection, so that the client recognizes the body as incomplete."""
        cdef Connection connection = self.connection
        if connection is not None:
            self._detach()
            connection.abort()

    cdef int _detach(self) except -1:
        """Separate the writer and its request from the connection, which may go on with the next request. From then on,
        nothing can be sent."""
        self.connection = None
        self.request.connection = None
        self.request.watchers = None
        self.request.stream = None
        return 0


cdef str _address(tuple address):
    """Return `host:port` for an address of a socket (host, port, …), with an address of IPv6 in brackets."""
    host = address[0]
    return f"[{host}]:{address[1]}" if ":" in host else f"{host}:{address[1]}"
