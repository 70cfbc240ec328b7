"""A query string as keys and texts, one pass over the bytes. The rules are those of `core.text.query_text`, its slow twin:
`+` is a space, empty pieces are skipped, a key without `=` has an empty text, a broken escape stays as it is."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcpy


class QueryError(ValueError):
    """A key or its text is not UTF-8, or holds a NUL."""

    def __init__(self, key, reason):
        super().__init__(f"{key!r}: {reason}")
        self.key = key
        self.reason = reason


def parse(str query not None):
    """Key and UTF-8 text of each piece, in order. Raises `QueryError`."""
    # A lone surrogate becomes bytes that are no UTF-8, and is refused with the rest of them.
    cdef bytes raw = query.encode("utf-8", "surrogatepass")
    cdef Py_ssize_t size = len(raw)
    cdef char *scratch = <char *>malloc(size + 1)
    if scratch == NULL:
        raise MemoryError
    try:
        return _pairs(raw, size, scratch)
    finally:
        free(scratch)


cdef list _pairs(const char *position, Py_ssize_t size, char *scratch):
    cdef const char *end = position + size
    cdef const char *stop
    cdef const char *equals
    cdef list found = []
    while position < end:
        stop = <const char *>memchr(position, c"&", end - position)
        if stop == NULL:
            stop = end
        if stop > position:
            equals = <const char *>memchr(position, c"=", stop - position)
            if equals == NULL:
                equals = stop
            found.append(_pair(position, equals, stop, scratch))
        position = stop + 1
    return found


cdef tuple _pair(const char *start, const char *equals, const char *stop, char *scratch):
    cdef Py_ssize_t length = percent_decode(start, equals - start, scratch)
    cdef bytes key = scratch[:length]
    cdef bytes text = b""
    if equals < stop:
        length = percent_decode(equals + 1, stop - equals - 1, scratch)
        text = scratch[:length]
    if b"\0" in key or b"\0" in text:
        raise QueryError(key.decode("utf-8", "replace"), "holds a NUL character")
    if not is_utf8(key, len(key)) or not is_utf8(text, len(text)):
        raise QueryError(key.decode("utf-8", "replace"), "is not valid UTF-8")
    return key.decode(), text


cdef Py_ssize_t percent_decode(const char *source, Py_ssize_t length, char *target) noexcept nogil:
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
    cdef unsigned char first = data[0]
    if available < 2 or data[1] & 0xC0 != 0x80:
        return 0
    if 0xC2 <= first <= 0xDF:
        return 2
    if available < 3 or data[2] & 0xC0 != 0x80:
        return 0
    # Shorter forms exist (E0), or it would be a surrogate (ED).
    if first == 0xE0 and data[1] < 0xA0 or first == 0xED and data[1] > 0x9F:
        return 0
    if 0xE0 <= first <= 0xEF:
        return 3
    if available < 4 or data[3] & 0xC0 != 0x80:
        return 0
    # Shorter forms exist (F0), or it would be above U+10FFFF (F4).
    if first == 0xF0 and data[1] < 0x90 or first == 0xF4 and data[1] > 0x8F:
        return 0
    return 4 if 0xF0 <= first <= 0xF4 else 0
