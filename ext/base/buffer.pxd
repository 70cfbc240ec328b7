"""A growable byte buffer, into which response bodies are written.

After a failed allocation, every later append does nothing and returns -1 as well, and `take` raises. Therefore a caller
may write a whole value and check for failure once, at the end. Appends return 0 or -1. Only `take` touches a Python
object.

In all methods, `size` is in bytes, and `text` is not NUL-terminated, is only read during the call, and must not point
into the buffer, which may move. Methods that do not name an encoding copy any bytes.
"""

cimport cython
from libc.string cimport memcpy


# `json_text.h` says what each function does and how much room `target` needs.
cdef extern from "json_text.h" nogil:
    char *json_escape(char *target, const char *text, const char *end) noexcept
    char *unquote(char *target, const char **position, const char *end, bint doubled) noexcept
    void copy_text(char *target, const char *text, Py_ssize_t size) noexcept
    const char *bare_slot_end(const char *text, const char *end) noexcept
    bint is_json_number(const char *text, const char *end) noexcept

cdef enum:
    # Text is escaped in pieces of this size, so that the space reserved for the worst case stays small.
    ESCAPE_PIECE = 4096
    ESCAPE_GROWTH = 6
    # Bytes that the vector loops may write beyond their result.
    VECTOR_SLACK = 16
    # Readable bytes that `append_padded` needs behind a text.
    PADDING = 16


@cython.final
cdef class Buffer:
    # The allocation, which the buffer owns; NULL before the first append. It is not NUL-terminated.
    cdef char *data
    # Bytes written, and bytes allocated.
    cdef Py_ssize_t length
    cdef Py_ssize_t capacity
    # An allocation has failed since the buffer was last emptied.
    cdef bint failed

    # Enlarges the allocation for `size` more bytes. Returns 0, or -1 if the allocation failed, now or before.
    cdef int grow(self, Py_ssize_t size) noexcept nogil
    # Returns the contents as bytes (one copy) and empties the buffer. Raises MemoryError if an append failed.
    cpdef bytes take(self)
    # Empties the buffer. An allocation of at most KEPT_CAPACITY is reused for the next response.
    cpdef void clear(self) noexcept
    # Empties the buffer and frees its memory at once.
    cdef void release(self) noexcept

    # Makes room for `size` more bytes, if there is none yet, so that they can be written at `data + length`. Returns 0,
    # or -1 if the allocation failed.
    cdef inline int reserve(self, Py_ssize_t size) noexcept nogil:
        if self.capacity - self.length >= size:
            return 0
        return self.grow(size)

    # Appends the bytes unchanged.
    cdef inline int append(self, const char *text, Py_ssize_t size) noexcept nogil:
        if self.reserve(size) < 0:
            return -1
        copy_text(self.data + self.length, text, size)
        self.length += size
        return 0

    # Appends text that has PADDING readable bytes behind it, such as a key. Copies of constant size need no branches on
    # the length.
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

    # Appends UTF-8 text escaped for the inside of a JSON string, without quotes.
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

    # Appends UTF-8 text as a JSON string, quotes included.
    cdef inline int append_string(self, const char *text, Py_ssize_t size) noexcept nogil:
        if size > ESCAPE_PIECE:
            self.append_char(c'"')
            self.append_escaped(text, size)
            return self.append_char(c'"')
        # A short text is written without further checks: the room is enough even if every byte has to be escaped.
        if self.reserve(size * ESCAPE_GROWTH + VECTOR_SLACK + 2) < 0:
            return -1
        self.data[self.length] = c'"'
        self.length = json_escape(self.data + self.length + 1, text, text + size) - self.data
        self.data[self.length] = c'"'
        self.length += 1
        return 0
