cdef class ChunkedBody:
    cdef int state
    cdef long long remaining
    cdef Py_ssize_t line_bytes
    cdef Py_ssize_t trailer_bytes
    cdef readonly bint complete
    cdef readonly bint broken

    cdef Py_ssize_t decode(self, bytes data, Py_ssize_t at, list pieces) except -1
    cdef bint _step(self, unsigned char byte) noexcept
