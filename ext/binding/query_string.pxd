"""C surface of the query string: percent-decoding, and what may be sent to PostgreSQL as text."""

cdef Py_ssize_t percent_decode(const char *source, Py_ssize_t length, char *target) noexcept nogil
"""Decodes `%xx` and `+`; a broken escape stays. `target` needs room for `length` bytes. Gives the length written."""

cdef bint is_utf8(const char *data, Py_ssize_t length) noexcept nogil
cdef Py_ssize_t utf8_sequence(const unsigned char *data, Py_ssize_t available) noexcept nogil
"""Length of the well-formed sequence of 2 to 4 bytes at `data` (RFC 3629), 0 when there is none."""
