"""HTTP/1.1 client for simple responses. See `http1_client.pyx`."""

from rowcall.ext.driver.request_context cimport PendingWork


cdef class ReceivedBody:
    cdef public list _chunks
    cdef public bint _ended
    cdef public object _error
    cdef public object _source
    cdef public object _waiter
    cdef public object on_end
    cdef public int status
    cdef public list headers
    cdef public list trailers
    cdef public object length
    cdef public Py_ssize_t buffered
    cdef public bint paused
    cdef public object address

    cpdef add(self, data)
    cpdef end(self, error=*)
    cpdef take(self)
    cdef int _wake(self) except -1


cdef class BasicHttp1Connection:
    cdef public object _transport
    cdef public object _parser
    cdef public int _state
    cdef public ReceivedBody _answer
    cdef public object _receiver
    cdef public Py_ssize_t _left
    cdef public Py_ssize_t _head_bytes
    cdef public bint _without_body
    cdef public bint _sent
    cdef public bint _keeps
    cdef public Py_ssize_t used
    cdef public double idle_since
    cdef readonly object _on_free
    cdef object time

    cpdef _begin(self, ReceivedBody answer, receiver, bint without_body)
    cpdef _hold_back(self, ReceivedBody answer)
    cpdef _complete(self)
    cpdef _freed(self)
    cdef bint _take_plain(self, bytes data) except -1
    cdef int _take_left(self, bytes data) except -1


cdef class PendingHttpResponse(PendingWork):
    cdef public double moment
    cdef public object _answer
    cdef public object _arriving
    cdef dict unwatched
    cdef object finish

    cpdef answered(self, ReceivedBody answer)
    cpdef _finish(self, ReceivedBody answer)
