"""The metrics of one endpoint, and the protocol wrapper that counts one request. See `meter.pyx`."""

from rowcall.ext.driver.request_context cimport RequestContext


cdef class Meter:
    # The memory, and its numbers, which are valid while `view` is held.
    cdef Py_buffer view
    cdef bint held
    cdef double *numbers
    cdef object gone

    # histogram: DURATION, WAIT or DATABASE of `meter.pyx`.
    cdef void observe(self, int histogram, double seconds) noexcept nogil
    cdef void count(self, int status) noexcept nogil
    cpdef add(self, str column, double amount=*)
    cpdef begin(self)
    cpdef record_end(self, double began, int status)
    cpdef count_refusal(self, int status)


cdef class MeteredProtocol:
    cdef Meter meter
    # None once the steps of the request are done or have failed.
    cdef RequestContext context
    # The protocol object that is wrapped.
    cdef readonly object inner
    # When the request began, in seconds of the monotonic clock.
    cdef double began
    # Status of the response that has begun; 0: none has begun.
    cdef int status
    # The method is HEAD: the body of the response is not sent.
    cdef bint bodiless
    # The client has disconnected.
    cdef bint left

    cdef int record_response(self, int status, Py_ssize_t sent) except -1
