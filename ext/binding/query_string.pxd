"""C surface of the query string parser: percent-decoding and UTF-8 validation."""

# Decodes `%xx` and `+`; leaves a broken escape unchanged. `target` needs room for `length` bytes. Returns the length
# written.
cdef Py_ssize_t percent_decode(const char *source, Py_ssize_t length, char *target) noexcept nogil

# Returns whether `length` bytes are UTF-8.
cdef bint is_utf8(const char *data, Py_ssize_t length) noexcept nogil
# Returns the length of the well-formed sequence of 2 to 4 bytes at `data` (RFC 3629), or 0 if there is none.
cdef Py_ssize_t utf8_sequence(const unsigned char *data, Py_ssize_t available) noexcept nogil
