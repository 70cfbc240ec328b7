"""HTTP/1.1 client for simple responses: the head arrives in one piece and announces the length of the body.

The classes are bases: subclasses handle all other responses.
"""

from rowcall.ext.base.http_heads import plain_head

cdef enum:
    # Bytes of a body that were not taken, above which reading pauses.
    PAUSE_ABOVE = 262_144
    NOTHING_SENT = 0
    NOTHING_BACK = 1
    HEAD_BACK = 2

IDLE = NOTHING_SENT
WAITING = NOTHING_BACK
"""A request was sent; the final header section has not arrived."""
BODY = HEAD_BACK
CLOSED = 3
"""Values of `_state`."""


cdef class ReceivedBody:
    """A response that is arriving: its status, headers and trailers, the received part of its body, and whether the
    body is complete.

    status: 0 until the head has arrived. headers, trailers: (name, value) pairs of str. source: the connection, with
    `resume_reading()`. on_end: called with this object at the end, successful or not; None: no callback. length: value
    of Content-Length in bytes, or None. buffered: number of bytes that have not been taken. address: URL of the
    response, after redirects.
    """

    def __cinit__(self, source):
        self._source = source
        self._chunks = []
        self.headers = []
        self.trailers = []

    @property
    def complete(self):
        """Whether the whole body has arrived without an error."""
        return self._ended and self._error is None

    @property
    def ended(self):
        """Whether no more data will arrive."""
        return self._ended

    @property
    def has_more(self):
        """Whether data has arrived that has not been taken."""
        return len(self._chunks) > 0

    cpdef add(self, data):
        """Append data (bytes) that has arrived, and wake the waiting code."""
        self._chunks.append(data)
        self.buffered += len(data)
        self._wake()

    cpdef end(self, error=None):
        """Record that no more data will arrive, wake the waiting code and call `on_end`. Only the first call has an
        effect. error: exception that says why the body is incomplete; None: it is complete."""
        if self._ended:
            return
        self._ended = True
        self._error = error
        self._wake()
        if self.on_end is not None:
            self.on_end(self)

    cpdef take(self):
        """Return the data (bytes) that has arrived since the last call, empty if there is none; resume reading if it
        was paused."""
        chunks = self._chunks
        self._chunks = []
        self.buffered = 0
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if self.paused:
            self.paused = False
            self._source.resume_reading()
        return data

    cdef int _wake(self) except -1:
        """Resolve the future of the waiting code, if there is any."""
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)
        return 0


cdef class BasicHttp1Connection:
    """Base of the client's connections, which have one request at a time. Subclasses send it; this class parses its
    response if that is simple: the whole head arrives in one piece, and a Content-Length announces the body.

    Subclasses have `_handle_data(data)`, for data of responses that are not simple, and `_close()`, which is called if
    the connection must not be used again. on_free: called with the connection when it can take another request. time:
    clock of the event loop.
    """

    def __init__(self, on_free, time):
        self._on_free = on_free
        self.time = time
        self._sent = True
        self._keeps = True
        self.idle_since = time()

    @property
    def usable(self):
        """Whether no request is in flight and another one may begin."""
        return self._state == NOTHING_SENT

    cpdef _begin(self, ReceivedBody answer, receiver, bint without_body):
        """Expect the response to a request that is being sent.

        answer: receives the response. receiver: its `on_response(answer)` is called when the head has arrived; None: no
        such call. without_body: the response has no body whatever its headers say, because the method is HEAD.
        """
        self.used += 1
        self._state = NOTHING_BACK
        self._parser = None
        self._head_bytes = 0
        self._without_body = without_body
        self._answer = answer
        self._receiver = receiver

    def data_received(self, bytes data not None):
        # Once a response has needed the full parser, all its further data goes to it.
        if self._parser is None:
            if self._state == NOTHING_BACK and not self._without_body and self._take_plain(data):
                return
            if self._left:
                self._take_left(data)
                return
        self._handle_data(data)

    cdef bint _take_plain(self, bytes data) except -1:
        """Parse the first bytes of a response: the whole head, and perhaps bytes of the body. Return whether the
        response is simple (`plain_head` parses its head); if it is not, nothing has changed.
        """
        cdef ReceivedBody answer = self._answer
        cdef Py_ssize_t length, begin, here
        plain = plain_head(data)
        if plain is None or answer is None:
            return False
        receiver = self._receiver
        self._receiver = None
        answer.status = plain[0]
        answer.headers = plain[1]
        answer.length = plain[2]
        length = plain[2]
        begin = plain[3]
        self._state = HEAD_BACK
        self._keeps = True
        here = len(data) - begin
        if here >= length:
            # Data behind a complete response: the response is valid, but the connection cannot be reused.
            self._keeps = here == length
            if length:
                answer.add(data[begin:begin + length])
            self._complete()
        else:
            self._left = length - here
            if here:
                answer.add(data[begin:])
                self._hold_back(answer)
        if receiver is not None:
            receiver.on_response(answer)
        return True

    cdef int _take_left(self, bytes data) except -1:
        """Take further data of a body of which `_left` bytes are missing. After data beyond its end, which is dropped,
        the connection is not used again."""
        cdef ReceivedBody answer = self._answer
        if answer is None:
            return 0
        if len(data) > self._left:
            self._keeps = False
            data = data[:self._left]
        self._left -= len(data)
        answer.add(data)
        if self._left:
            self._hold_back(answer)
        else:
            self._complete()
        return 0

    cpdef _hold_back(self, ReceivedBody answer):
        """Stop reading while more than PAUSE_ABOVE bytes of `answer` have not been taken, so that the server waits."""
        if answer.buffered > PAUSE_ABOVE and self._transport is not None:
            self._transport.pause_reading()
            answer.paused = True

    cpdef _complete(self):
        """Finish the response, and free or close the connection."""
        cdef ReceivedBody answer = self._answer
        self._answer = None
        self._parser = None
        self._state = NOTHING_SENT
        if answer is not None:
            answer.end()
        if not self._sent:
            # The response has come before the request was sent completely, so no other request can follow.
            self._keeps = False
        self._release()

    cpdef _release(self):
        """Report that the connection is free; close it if it must not be used again."""
        if not self._keeps:
            self._close()
        elif self._state == NOTHING_SENT:
            self.idle_since = self.time()
            self._on_free(self)


cpdef bint is_final_with_body(int status):
    """Return whether a response with this status is final and may have a body. Redirects (3xx) are not final."""
    return (200 <= status < 300 and status != 204 and status != 205) or status >= 400


cdef class PendingHttpResponse(PendingWork):
    """The work of a step that waits for a response of another service.

    Subclasses have `_handle_other_response(answer)`, for a response that is incomplete or leads to a further request,
    and `_record_end(status)`, for a response that is sent on. unwatched: has the requests that wait without a task as
    keys; this object is removed from it when its response is sent on. finish(context, answer, sent_at): sends the
    response on. sent_at: when the request was sent, as time of the event loop.
    """

    def __init__(self, context, dict unwatched not None, finish):
        self.context = context
        self.unwatched = unwatched
        self.finish = finish

    cpdef on_response(self, ReceivedBody answer):
        """Handle a response whose head has arrived: send it on if it is complete and final, and leave any other one to
        `_handle_other_response`."""
        if self._arriving is None and self.context is not None and answer._ended and answer._error is None \
                and is_final_with_body(answer.status):
            self._finish(answer)
        else:
            self._handle_other_response(answer)

    cpdef _finish(self, ReceivedBody answer):
        """Send a complete response on, and continue the request; fail it if `finish` raises."""
        self.unwatched.pop(self, None)
        self._record_end(answer.status)
        try:
            self.finish(self.context, answer, self.sent_at)
        except Exception as error:
            self.fail(error)
            return
        self.advance()
