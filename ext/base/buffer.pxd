"""A growable byte buffer: what a response body is written into.

A failed allocation sticks: every later append does nothing and returns -1 as well, and `take` raises. So a caller
may write a whole value and look once, at its end. Nothing here touches a Python object except `take`.
"""

cimport cython
from libc.string cimport memcpy


cdef extern from "json_text.h" nogil:
    char *json_escape(char *target, const char *text, const char *end) noexcept
    char *unquote(char *target, const char **position, const char *end, bint doubled) noexcept
    void copy_text(char *target, const char *text, Py_ssize_t size) noexcept
    const char *bare_slot_end(const char *text, const char *end) noexcept
    bint is_json_number(const char *text, const char *end) noexcept

cdef enum:
    # Text is escaped a piece at a time, so that the room reserved for the worst case stays small.
    ESCAPE_PIECE = 4096
    ESCAPE_GROWTH = 6
    # What the vector loops may write beyond their result.
    VECTOR_SLACK = 16
    # Bytes behind a text for `append_padded`.
    PADDING = 16


@cython.final
cdef class Buffer:
    cdef char *data
    cdef Py_ssize_t length
    cdef Py_ssize_t capacity
    cdef bint failed

    # Makes room for `size` more bytes: 0, or -1 when there is no memory.
    cdef int grow(self, Py_ssize_t size) noexcept nogil
    # The contents as bytes (one copy); empties the buffer. MemoryError if an append failed.
    cpdef bytes take(self)
    # Empties the buffer; keeps a moderate allocation for the next response.
    cpdef void clear(self) noexcept
    # Gives the memory back at once.
    cdef void release(self) noexcept

    cdef inline int reserve(self, Py_ssize_t size) noexcept nogil:
        if self.capacity - self.length >= size:
            return 0
        return self.grow(size)

    cdef inline int append(self, const char *text, Py_ssize_t size) noexcept nogil:
        if self.reserve(size) < 0:
            return -1
        copy_text(self.data + self.length, text, size)
        self.length += size
        return 0

    # The same for text with PADDING readable bytes behind it, such as a key: no length is looked at for each copy.
    cdef inline int append_padded(self, const char *text, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t copied = 0
        if self.reserve(size + PADDING) < 0:
            return -1
        while True:
            memcpy(self.data + self.length + copied, text + copied, PADDING)
            copied += PADDING
            if copied >= size:
                break
        self.length += size
        return 0

    cdef inline int append_char(self, char byte) noexcept nogil:
        if self.reserve(1) < 0:
            return -1
        self.data[self.length] = byte
        self.length += 1
        return 0

    # Appends text escaped for the inside of a JSON string, without quotes.
    cdef inline int append_escaped(self, const char *text, Py_ssize_t size) noexcept nogil:
        cdef const char *end = text + size
        cdef Py_ssize_t piece
        while text < end:
            piece = min(end - text, ESCAPE_PIECE)
            if self.reserve(piece * ESCAPE_GROWTH + VECTOR_SLACK) < 0:
                return -1
            self.length = json_escape(self.data + self.length, text, text + piece) - self.data
            text += piece
        return 0

    # Appends text as a JSON string, quotes included.
    cdef inline int append_string(self, const char *text, Py_ssize_t size) noexcept nogil:
        if size > ESCAPE_PIECE:
            self.append_char(c'"')
            self.append_escaped(text, size)
            return self.append_char(c'"')
        if self.reserve(size * ESCAPE_GROWTH + VECTOR_SLACK + 2) < 0:
            return -1
        self.data[self.length] = c'"'
        self.length = json_escape(self.data + self.length + 1, text, text + size) - self.data
        self.data[self.length] = c'"'
        self.length += 1
        return 0
