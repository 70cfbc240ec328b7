"""The methods of the output buffer that are not inline. See `buffer.pxd`."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport free, realloc

cdef enum:
    FIRST_CAPACITY = 1024
    # If the allocation is larger than this, it is freed when the buffer is cleared.
    KEPT_CAPACITY = 1 << 20


cdef class Buffer:
    """A growable buffer for the bytes of a response body; Cython code uses the methods of `buffer.pxd`."""

    def __dealloc__(self):
        free(self.data)

    def __len__(self) -> int:
        return self.length

    cdef int grow(self, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t capacity = max(self.capacity * 2, FIRST_CAPACITY)
        cdef char *data
        if self.failed:
            return -1
        while capacity - self.length < size:
            capacity *= 2
        data = <char *>realloc(self.data, capacity)
        if data == NULL:
            # Every later append must fail too, even a smaller one that would have fitted.
            self.failed = True
            self.length = self.capacity
            return -1
        self.data = data
        self.capacity = capacity
        return 0

    cpdef bytes take(self):
        cdef bytes contents
        if self.failed:
            self.clear()
            raise MemoryError("no memory for the response body")
        contents = PyBytes_FromStringAndSize(self.data, self.length)
        self.clear()
        return contents

    cpdef void clear(self) noexcept:
        if self.capacity > KEPT_CAPACITY:
            self.release()
        self.length = 0
        self.failed = False

    cdef void release(self) noexcept:
        free(self.data)
        self.data = NULL
        self.length = 0
        self.capacity = 0
        self.failed = False

    def write(self, text: bytes) -> None:
        """Append `text` unchanged. Raises `MemoryError`."""
        cdef bytes source = text
        if self.append(<const char *>source, len(source)) < 0:
            raise MemoryError("no memory for the response body")


def escape(text: bytes) -> bytes:
    """Return UTF-8 text escaped for the inside of a JSON string, without quotes. Only characters for which RFC 8259,
    section 7 requires it are escaped. Raises `MemoryError`."""
    cdef Buffer buffer = Buffer()
    cdef bytes source = text
    buffer.append_escaped(<const char *>source, len(source))
    return buffer.take()
