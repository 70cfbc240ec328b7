"""C surface of the query string parser: percent-decoding and UTF-8 validation."""

# Decodes `%xx` to a byte and `+` to a blank; leaves a broken escape unchanged. `target` needs room for `length` bytes.
# Returns the number of bytes written.
cdef Py_ssize_t percent_decode(const char *source, Py_ssize_t length, char *target) noexcept nogil

# Returns whether the `length` bytes at `data` are UTF-8 (RFC 3629).
cdef bint is_utf8(const char *data, Py_ssize_t length) noexcept nogil
# Returns the length of the well-formed sequence of 2 to 4 bytes at `data` (RFC 3629), or 0 if there is none, as for
# ASCII. available: number of bytes that may be read at `data`, at least 1.
cdef Py_ssize_t utf8_sequence(const unsigned char *data, Py_ssize_t available) noexcept nogil
