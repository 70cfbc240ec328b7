"""Parse a query string into keys and texts, in one pass over the bytes.

The rules are those of `core.text.query_text`, the slow twin of this module: `+` is a space, empty pieces are skipped, a
key without `=` has an empty text, a broken escape stays unchanged.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy


# The GIL is released for decoding when so many bytes, about 30 µs of work, are to be decoded or have been decoded since
# the last release. Releasing it more often costs more than other threads gain.
cdef Py_ssize_t _SLICE = 16_384


class QueryError(ValueError):
    """A key or its text is not UTF-8, or contains a NUL.

    key: the key as readable text, with U+FFFD in place of bytes that are not UTF-8. reason: what is wrong.
    """

    def __init__(self, key, reason):
        super().__init__(f"{key[:100]!r}: {reason}")
        self.key = key
        self.reason = reason


def parse(str query not None):
    """Return (key, UTF-8 text as bytes) of each piece in order, repeated keys included.

    query: without its question mark, not decoded. Raises `QueryError` for a key or text that is not UTF-8 or contains a
    NUL.
    """
    # A lone surrogate is encoded to bytes that are not UTF-8, which are refused below.
    cdef bytes raw = query.encode("utf-8", "surrogatepass")
    cdef Py_ssize_t size = len(raw)
    cdef char *scratch = <char *>malloc(size + 1)
    if scratch == NULL:
        raise MemoryError
    try:
        return _pairs(raw, size, scratch)
    finally:
        free(scratch)


def parse_form(bytes body not None):
    """Return (key, text) of each piece of a urlencoded form in order, repeated keys included.

    Raises `QueryError` as `parse` does, and `UnicodeDecodeError` if the body itself is not UTF-8. The GIL is released
    for long keys and texts, and after many short ones, so that other threads can run.
    """
    cdef Py_ssize_t size = len(body)
    if not _is_utf8_piece(body, size):
        # Raises UnicodeDecodeError with the position.
        body.decode()
    cdef char *scratch = <char *>malloc(size + 1)
    if scratch == NULL:
        raise MemoryError
    try:
        return [(key, text.decode()) for key, text in _pairs(body, size, scratch)]
    finally:
        free(scratch)


def unescape(bytes text not None):
    """Decode a urlencoded key or value to its bytes. Releases the GIL for a long one."""
    cdef Py_ssize_t size = len(text)
    cdef char *scratch = <char *>malloc(size + 1)
    if scratch == NULL:
        raise MemoryError
    try:
        if size < _SLICE:
            size = percent_decode(text, size, scratch)
        else:
            size = _decode_without_gil(text, size, scratch)
        return scratch[:size]
    finally:
        free(scratch)


def has_non_ascii(bytes body not None):
    """Return whether a urlencoded form contains non-ASCII characters, escaped or not. Releases the GIL."""
    cdef const char *data = body
    cdef Py_ssize_t size = len(body)
    cdef bint result
    with nogil:
        result = _beyond_ascii(data, size)
    return result


cdef bint _beyond_ascii(const char *data, Py_ssize_t length) noexcept nogil:
    """Return whether `length` bytes of a urlencoded form have a byte from 0x80 on, directly or as an escape `%8x` to
    `%Fx`."""
    cdef Py_ssize_t position
    for position in range(length):
        if <unsigned char>data[position] >= 0x80:
            return True
        if data[position] == c"%" and position + 2 < length:
            if _hex_digit(data[position + 1]) >= 8 and _hex_digit(data[position + 2]) >= 0:
                return True
    return False


cdef list _pairs(const char *position, Py_ssize_t size, char *scratch):
    """Return the pairs of key and text (bytes) in the `size` bytes at `position`. Raises `QueryError`.

    scratch: room for `size` bytes, in which each key and text is decoded.
    """
    cdef const char *end = position + size
    cdef Py_ssize_t with_gil = 0
    cdef const char *stop
    cdef const char *equals
    cdef list result = []
    while position < end:
        stop = <const char *>memchr(position, c"&", end - position)
        if stop == NULL:
            stop = end
        if stop > position:
            equals = <const char *>memchr(position, c"=", stop - position)
            if equals == NULL:
                equals = stop
            result.append(_pair(position, equals, stop, scratch, &with_gil))
        position = stop + 1
    return result


cdef tuple _pair(
    const char *start, const char *equals, const char *stop, char *scratch, Py_ssize_t *with_gil
):
    """Return the key (str) and the text (bytes) of the piece [start, stop). Raises `QueryError`.

    equals: position of the first `=`; `stop` without one. scratch: room for as many bytes as the piece has. with_gil:
    see `_decode_piece`.
    """
    cdef Py_ssize_t length = _decode_piece(start, equals - start, scratch, with_gil)
    cdef bytes key = scratch[:length]
    cdef bytes text = b""
    if equals < stop:
        length = _decode_piece(equals + 1, stop - equals - 1, scratch, with_gil)
        text = scratch[:length]
    if b"\0" in key or b"\0" in text:
        raise QueryError(key.decode("utf-8", "replace"), "holds a NUL character")
    if not _is_utf8_piece(key, len(key)) or not _is_utf8_piece(text, len(text)):
        raise QueryError(key.decode("utf-8", "replace"), "is not valid UTF-8")
    return key.decode(), text


cdef Py_ssize_t _decode_piece(const char *source, Py_ssize_t length, char *target, Py_ssize_t *with_gil) noexcept:
    """Decode the `length` bytes of a key or text into `target`, which needs room for as many; return the number of
    bytes written.

    with_gil: number of bytes decoded since the GIL was last released, which is advanced here. From _SLICE bytes on, the
    GIL is released while this piece is decoded.
    """
    with_gil[0] += length
    if with_gil[0] < _SLICE:
        return percent_decode(source, length, target)
    with_gil[0] = 0
    return _decode_without_gil(source, length, target)


cdef Py_ssize_t _decode_without_gil(const char *source, Py_ssize_t length, char *target) noexcept:
    """Do the same as `percent_decode`, called with the GIL, which is released meanwhile."""
    with nogil:
        length = percent_decode(source, length, target)
    return length


cdef bint _is_utf8_piece(const char *data, Py_ssize_t length) noexcept:
    """Return whether `length` bytes are UTF-8. Called with the GIL, which is released meanwhile for a text of _SLICE
    bytes or more."""
    cdef bint valid
    if length < _SLICE:
        return is_utf8(data, length)
    with nogil:
        valid = is_utf8(data, length)
    return valid


cdef Py_ssize_t percent_decode(const char *source, Py_ssize_t length, char *target) noexcept nogil:
    """Decode `length` bytes into `target`, which needs room for as many bytes; `+` becomes a blank, and a percent sign
    without two digits stays. Returns the number of bytes written."""
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t written = 0
    cdef int high
    cdef int low
    while position < length:
        if source[position] == c"+":
            target[written] = c" "
        elif source[position] == c"%" and position + 2 < length:
            high = _hex_digit(source[position + 1])
            low = _hex_digit(source[position + 2])
            if high >= 0 and low >= 0:
                target[written] = <char>(high * 16 + low)
                position += 2
            else:
                target[written] = c"%"
        else:
            target[written] = source[position]
        position += 1
        written += 1
    return written


cdef inline int _hex_digit(char digit) noexcept nogil:
    """Return the value of a hexadecimal digit, or -1."""
    if c"0" <= digit <= c"9":
        return digit - c"0"
    if c"a" <= digit <= c"f":
        return digit - c"a" + 10
    if c"A" <= digit <= c"F":
        return digit - c"A" + 10
    return -1


cdef bint is_utf8(const char *data, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t sequence
    cdef uint64_t eight
    while position < length:
        if length - position >= 8:
            # Most texts are ASCII: eight bytes without a high bit are skipped at once.
            memcpy(&eight, data + position, 8)
            if not eight & <uint64_t>0x8080808080808080:
                position += 8
                continue
        if <unsigned char>data[position] < 0x80:
            position += 1
            continue
        sequence = utf8_sequence(<const unsigned char *>data + position, length - position)
        if sequence == 0:
            return False
        position += sequence
    return True


cdef Py_ssize_t utf8_sequence(const unsigned char *data, Py_ssize_t available) noexcept nogil:
    """Return the length of the multi-byte UTF-8 sequence at `data`; 0 if it is not valid (RFC 3629, 4).

    available: number of bytes that may be read at `data`, at least 1.
    """
    cdef unsigned char first = data[0]
    if available < 2 or data[1] & 0xC0 != 0x80:
        return 0
    if 0xC2 <= first <= 0xDF:
        return 2
    if available < 3 or data[2] & 0xC0 != 0x80:
        return 0
    # An overlong form (E0), or a surrogate (ED).
    if first == 0xE0 and data[1] < 0xA0 or first == 0xED and data[1] > 0x9F:
        return 0
    if 0xE0 <= first <= 0xEF:
        return 3
    if available < 4 or data[3] & 0xC0 != 0x80:
        return 0
    # An overlong form (F0), or a character above U+10FFFF (F4).
    if first == 0xF0 and data[1] < 0x90 or first == 0xF4 and data[1] > 0x8F:
        return 0
    return 4 if 0xF0 <= first <= 0xF4 else 0
