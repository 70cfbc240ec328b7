"""HTTP/1.1 client for simple responses. Fields without a comment are described in `http1_client.pyx`."""

from rowcall.ext.driver.request_context cimport PendingWork


cdef class ReceivedBody:
    # The pieces (bytes) that have arrived and have not been taken.
    cdef public list _chunks
    cdef public bint _ended
    # Why the body is incomplete; None: it is not known to be.
    cdef public object _error
    cdef public object _source
    # Future that is resolved at the next piece or the end; None: no code waits.
    cdef public object _waiter
    cdef public object on_end
    # 0 until the head has arrived.
    cdef public int status
    # (name, value) pairs of str; trailers: behind a chunked body.
    cdef public list headers
    cdef public list trailers
    cdef public object length
    cdef public Py_ssize_t buffered
    # The connection is not read until the buffered bytes have been taken.
    cdef public bint paused
    cdef public object address

    cpdef add(self, data)
    cpdef end(self, error=*)
    cpdef take(self)
    cdef int _wake(self) except -1


cdef class BasicHttp1Connection:
    cdef public object _transport
    # The full parser (llhttp) of a response that is not simple; None: it is not needed so far.
    cdef public object _parser
    # IDLE, WAITING, BODY or CLOSED.
    cdef public int _state
    # The response to the request in flight.
    cdef public ReceivedBody _answer
    # Its `on_response` is called when the head has arrived; None: it was called already.
    cdef public object _receiver
    # Bytes of the body of a simple response that have not arrived.
    cdef public Py_ssize_t _left
    # Bytes of an incomplete head that have arrived.
    cdef public Py_ssize_t _head_bytes
    cdef public bint _without_body
    # The request has been sent completely.
    cdef public bint _sent
    # The connection may be used for another request.
    cdef public bint _keeps
    # Number of requests so far.
    cdef public Py_ssize_t used
    # Time of the event loop since which no request is in flight.
    cdef public double idle_since
    cdef readonly object _on_free
    cdef object time

    cpdef _begin(self, ReceivedBody answer, receiver, bint without_body)
    cpdef _hold_back(self, ReceivedBody answer)
    cpdef _complete(self)
    cpdef _release(self)
    cdef bint _take_plain(self, bytes data) except -1
    cdef int _take_left(self, bytes data) except -1


cdef class PendingHttpResponse(PendingWork):
    cdef public double sent_at
    cdef public object _answer
    cdef public object _arriving
    cdef dict unwatched
    cdef object finish

    cpdef on_response(self, ReceivedBody answer)
    cpdef _finish(self, ReceivedBody answer)
