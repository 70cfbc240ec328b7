"""The decoder of one chunked message body."""


cdef class ChunkedBody:
    # What is expected next: a `State` of `chunked_body.pyx`.
    cdef int state
    # Bytes of the present chunk that have not been read.
    cdef long long remaining
    # Digits of the size and bytes of the extension read in the present line.
    cdef Py_ssize_t line_bytes
    # Bytes of all trailer lines read so far.
    cdef Py_ssize_t trailer_bytes
    cdef readonly bint complete
    cdef readonly bint broken

    cdef Py_ssize_t decode(self, bytes data, Py_ssize_t at, list pieces) except -1
    cdef bint _step(self, unsigned char byte) noexcept
