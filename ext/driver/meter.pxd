"""The metrics of one endpoint, and the protocol wrapper that counts one request. See `meter.pyx`."""

from rowcall.ext.driver.request_context cimport RequestContext


cdef class Meter:
    cdef Py_buffer view
    cdef bint held
    cdef double *numbers
    cdef object gone

    cdef void observe(self, int histogram, double seconds) noexcept nogil
    cdef void count(self, int status) noexcept nogil
    cpdef add(self, str column, double amount=*)
    cpdef begin(self)
    cpdef done(self, double began, int status)
    cpdef refused(self, int status)


cdef class MeteredProtocol:
    cdef Meter meter
    cdef RequestContext context
    cdef readonly object inner
    cdef double began
    cdef int status
    # The method is HEAD: the body of the response is not sent.
    cdef bint bodiless
    # The client has disconnected.
    cdef bint left

    cdef int answered(self, int status, Py_ssize_t sent) except -1
