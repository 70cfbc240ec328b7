"""Connections of the HTTP/1.1 server (docs/internals/http-engine.md has their states and invariants).

Everything runs with the GIL on the thread of the event loop. Methods that return int without another description return
0. Times are in seconds of the monotonic clock (`now()`); offsets and sizes are in bytes.
"""

from rowcall.ext.http1.chunked_body cimport ChunkedBody
from rowcall.ext.http1.request_head cimport RequestHead


cdef enum Phase:
    READING_HEAD    # the next head has not been received, or not completely
    RUNNING         # the application handles a request
    DISCARDING      # the response is complete; the unread rest of the body of its request is read and dropped
    LINGERING       # the last response is complete; input is dropped, so that no reset overtakes the response
    CLOSING         # the transport closes when everything is sent
    DETACHED        # the transport is closed, or another protocol has taken it over


# Fields are described in `connection.pyx`.
cdef class Http1Server:
    cdef object handle, problem_body, send_file, take_http2, closed_error, loop, on_closed
    cdef list problem_headers   # of responses with a body of `problem_body`, and of those of `fail`
    cdef Py_ssize_t head_limit, line_limit, body_buffer
    cdef bint keep_alive
    cdef double idle_seconds, unread_seconds, gather_seconds
    cdef Py_ssize_t running     # number of connections with a request in progress
    cdef Py_ssize_t dense       # number of responses that have followed each other within `gather_seconds`
    cdef Py_ssize_t gather_from
    cdef double last_response   # time of the last complete response
    cdef void *last_connection  # its connection, which may have ended
    cdef readonly set connections
    cdef list unsent            # connections whose output is sent at the end of this turn of the event loop
    cdef object send_method     # `_send_gathered`
    cdef public bint closing    # every response says `Connection: close`, and its connection is closed behind it

    cdef bint record_response(self, Connection connection) except -1
    cdef int send_later(self, Connection connection) except -1


cdef class Connection:
    cdef Http1Server server
    cdef readonly object transport
    cdef str client, local      # addresses of the peer and of the listener, as `Scope` has them
    cdef bytes pending          # received bytes, parsed up to `position`; None if all are parsed
    cdef Py_ssize_t position    # offset in `pending`
    cdef list output            # bytes that are not passed to the transport yet
    cdef RequestProtocol request  # the present request; None if there is none
    cdef Phase phase
    cdef bint fresh             # no request has been parsed: the HTTP/2 preface is possible
    cdef bint advancing         # `_advance` is running, and sends the output when it ends
    cdef bint running           # the server counts its request in `running`
    cdef bint gathered          # the connection is in `unsent` of the server
    cdef bint reading_paused    # the transport does not read
    cdef bint writing_paused    # the buffer of the transport is full
    cdef bint eof               # the client has closed its sending half
    cdef bint waiting_for_admission
    cdef double last_sent       # time when the client last took or was sent something, as `now()` has it
    cdef double deadline        # time when LINGERING ends; 0: `_flush` has not sent the last response yet
    cdef Py_ssize_t unsent      # bytes in the buffer of the transport at the last check
    cdef object writable        # future that is done when the transport takes more; None without a waiting task

    cdef int _advance(self) except -1
    cdef bint _step(self) except -1
    cdef bint _take_head(self) except -1
    cdef bint _begins_http2(self) except -1
    cdef bint _exceeds_limits(self, RequestHead head, Py_ssize_t end) except -1
    cdef int _feed(self) except -1
    cdef int _refuse(self, int status, str detail) except -1
    cdef int respond(self, bytes message, bytes body) except -1
    cdef int complete(self, bint close) except -1
    cdef int _stop_running(self) except -1
    cdef int _flush(self) except -1
    cdef bint _gather_output(self) except -1
    cdef int _write(self) except -1
    cdef int send_now(self) except -1
    cdef bint has_more(self) noexcept
    cdef int _control_reading(self) except -1
    cdef int _pause_reading(self) except -1
    cdef int _linger(self) except -1
    cdef int close(self) except -1
    cdef int abort(self) except -1
    cdef int end_if_idle(self) except -1
    cdef int check(self, double moment) except -1
    cdef bint _is_receiving(self, double moment) except -1
    cdef bint _is_unread(self) except -1
    cdef int descriptor(self) except -2
    cdef bint hung_up(self) except -1


cdef class RequestProtocol:
    cdef Connection connection      # None once the response is complete or the connection has ended
    cdef Http1Server server
    cdef RequestHead head
    cdef ChunkedBody chunks         # None for a body with a length
    cdef list pieces                # parts of the body that were received, but not read by the application
    cdef long long remaining        # bytes of a body with a length that have not been received
    cdef Py_ssize_t waiting_bytes   # number of bytes in `pieces`
    cdef bint body_complete         # the whole body has been received
    cdef bint body_broken           # the chunked body is invalid
    cdef bint input_ended           # the rest of an incomplete body will never arrive
    cdef bint whole                 # the application reads the whole body at once
    cdef bint begun                 # the first bytes of the response have been queued
    cdef bint rejected              # an invalid response has raised its error
    cdef bint continued             # the client has been asked for its body, by a response 100
    cdef bint probed                # `check_hang_up` has sent its interim response
    cdef object reader              # future of the read that waits for a piece or for the whole body; None without one
    cdef list watchers              # futures of `client_disconnect`, or None
    cdef StreamWriter stream        # writer of a response in parts that has been prepared; None without one

    cdef Py_ssize_t take(self, bytes data, Py_ssize_t at, Py_ssize_t end) except -1
    cdef bint is_ahead(self) noexcept
    cdef int _wake_reader(self) except -1
    cdef int _resolve(self, reader) except -1
    cdef bytes _whole_body(self)
    cdef object _read(self)
    cdef int _say_continue(self) except -1
    cdef int end_of_input(self) except -1
    cdef int check_hang_up(self) except -1
    cdef int _notify_watchers(self) except -1
    cdef int record_disconnect(self) except -1
    cdef int _check(self, status, headers, Py_ssize_t length) except -1
    cdef bint _may_answer(self) noexcept
    cdef bint _has_no_body(self, int status) noexcept
    cdef bint _is_head(self) noexcept
    cdef bint _closes(self, headers) except -1
    cdef int _respond(self, int status, headers, bytes body) except -1
    cdef int _begin_stream(self, int status, headers) except -1


cdef class StreamWriter:
    cdef RequestProtocol request
    cdef Connection connection      # None before the response has begun and after it has ended
    cdef long long remaining        # bytes of the stated Content-Length that are still to be sent; -1 without it
    cdef bint chunked
    cdef bint bodiless              # the parts are dropped, because the response has no body
    cdef bint close_behind          # the connection ends with this response

    cdef int _detach(self) except -1
