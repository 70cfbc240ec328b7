"""Checks whether a value has a plain form: one of the forms that nearly every request uses.

`core.binding.conversion` has all forms and all reasons for a refusal. A plain form can be checked in one pass, in a few
nanoseconds, and PostgreSQL receives the text itself or a fixed rearrangement of it.

`plain_value` ignores white space around a value, except of the kinds from TEXT on. In the functions that it calls,
`text` has `length` bytes, at least 1, without white space around it. The functions that write a text write it to
`room`, which has PLAIN_ROOM bytes, and return the number of bytes written, or 0 if the value has no plain form.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

cdef enum:
    # Most digits of an integer that fit into 64 bits for certain.
    SAFE_DIGITS = 19
    # A real or double of at most this many characters, without exponent, is never out of range.
    SAFE_FLOAT = 30
    # A real or double with a mantissa of at most SAFE_MANTISSA characters and an exponent of at most SAFE_EXPONENT is
    # never out of range.
    SAFE_MANTISSA = 15
    SAFE_EXPONENT = 20
    # A numeric of at most this many characters, without exponent, is never out of range.
    SAFE_NUMERIC = 1000
    # Most digits of the fraction of a second.
    MAX_FRACTION = 9

# The values of `ValueKind`, in the order of `Kind`.
KINDS = (
    "smallint", "integer", "bigint", "float", "numeric", "boolean", "uuid",
    "timestamptz", "timestamp", "date", "time", "timetz", "text", "json", "other", "composite",
)  # fmt: skip


cdef int kind_of(str name) except -1:
    return KINDS.index(name)


cdef bint plain_value(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room, Text *sent) noexcept nogil:
    sent.data = text
    sent.length = length
    if kind >= TEXT:
        # A composite may be a JSON object, whose members have to be read.
        return kind != COMPOSITE
    # A client that writes `+7` in a query string sends a space.
    while length > 0 and _is_space(text[0]):
        text += 1
        length -= 1
    while length > 0 and _is_space(text[length - 1]):
        length -= 1
    if length == 0:
        return False
    sent.data = text
    sent.length = length
    if kind == BIGINT:
        return _is_integer(text, length, <uint64_t>9223372036854775807)
    if kind == INTEGER:
        return _is_integer(text, length, 2147483647)
    if kind == SMALLINT:
        return _is_integer(text, length, 32767)
    if kind == FLOAT:
        return length <= SAFE_FLOAT and _is_decimal(text, length) or _is_scientific(text, length)
    if kind == NUMERIC:
        return length <= SAFE_NUMERIC and _is_decimal(text, length)
    sent.data = room
    if kind == BOOLEAN:
        sent.length = _boolean(text, length, room)
    elif kind == UUID:
        sent.length = _uuid(text, length, room)
    elif kind == DATE:
        sent.length = _date(text, length, room) if length == 10 else 0
    elif kind == TIME or kind == TIMETZ:
        sent.length = _time(kind, utc, text, length, room)
    else:
        sent.length = _timestamp(kind, utc, text, length, room)
    return sent.length > 0


cdef inline bint _is_digit(char byte) noexcept nogil:
    return c"0" <= byte <= c"9"


cdef inline bint _is_space(char byte) noexcept nogil:
    return byte == c" " or c"\t" <= byte <= c"\r"


cdef bint _is_integer(const char *text, Py_ssize_t length, uint64_t limit) noexcept nogil:
    """Return whether the text is an integer from -`limit` - 1 to `limit`, of at most SAFE_DIGITS digits."""
    # 19 digits always fit into 64 bits, so the sum below does not overflow.
    cdef Py_ssize_t position = 1 if text[0] == c"-" or text[0] == c"+" else 0
    cdef uint64_t number = 0
    if length == position or length - position > SAFE_DIGITS:
        return False
    while position < length:
        if not _is_digit(text[position]):
            return False
        number = number * 10 + <uint64_t>(text[position] - c"0")
        position += 1
    return number <= limit + (text[0] == c"-")


cdef bint _is_decimal(const char *text, Py_ssize_t length) noexcept nogil:
    """Return whether the text has the form `[+-]digits[.[digits]]` or `[+-].digits`."""
    cdef Py_ssize_t position = 1 if text[0] == c"-" or text[0] == c"+" else 0
    cdef Py_ssize_t start = position
    while position < length and _is_digit(text[position]):
        position += 1
    if position == start and (position + 1 >= length or text[position] != c"." or not _is_digit(text[position + 1])):
        return False
    if position < length and text[position] == c".":
        position += 1
        while position < length and _is_digit(text[position]):
            position += 1
    return position == length


cdef bint _is_scientific(const char *text, Py_ssize_t length) noexcept nogil:
    """Return whether the text is a number like `1.5e-7` that is certainly in the range of real and double."""
    cdef Py_ssize_t mantissa = 0
    cdef int exponent = 0
    while mantissa < length and text[mantissa] != c"e" and text[mantissa] != c"E":
        mantissa += 1
    if mantissa == 0 or mantissa > SAFE_MANTISSA or mantissa + 1 >= length or not _is_decimal(text, mantissa):
        return False
    text += mantissa + 1
    length -= mantissa + 1
    if text[0] == c"+" or text[0] == c"-":
        text += 1
        length -= 1
    if length < 1 or length > 3:
        return False
    while length > 0:
        if not _is_digit(text[0]):
            return False
        exponent = exponent * 10 + (text[0] - c"0")
        text += 1
        length -= 1
    return exponent <= SAFE_EXPONENT


cdef Py_ssize_t _boolean(const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write `true` or `false` for these words in any case; return the length, or 0 for another text."""
    cdef Py_ssize_t position
    cdef const char *word = b"true" if length == 4 else b"false"
    if length != 4 and length != 5:
        return 0
    for position in range(length):
        if (text[position] | 0x20) != word[position]:
            return 0
    memcpy(room, word, length)
    return length


cdef Py_ssize_t _uuid(const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write a UUID in lower case with dashes; return its length, 36, or 0 for another text.

    The 32 digits may be in any case, have the four dashes or none, and be in braces or parentheses.
    """
    cdef Py_ssize_t position = 0
    cdef Py_ssize_t written = 0
    cdef char byte
    if (length == 38 or length == 34) and (
        text[0] == c"{" and text[length - 1] == c"}" or text[0] == c"(" and text[length - 1] == c")"
    ):
        text += 1
        length -= 2
    if length != 36 and length != 32:
        return 0
    while written < 36:
        if written == 8 or written == 13 or written == 18 or written == 23:
            if length == 36:
                if text[position] != c"-":
                    return 0
                position += 1
            room[written] = c"-"
        else:
            byte = text[position]
            if c"A" <= byte <= c"F":
                byte = byte | 0x20
            if not (_is_digit(byte) or c"a" <= byte <= c"f"):
                return 0
            room[written] = byte
            position += 1
        written += 1
    return written


cdef int _pair(const char *text) noexcept nogil:
    """Return the number that the two bytes at `text` stand for; 1000, which exceeds every limit, if one is no digit."""
    if _is_digit(text[0]) and _is_digit(text[1]):
        return (text[0] - c"0") * 10 + text[1] - c"0"
    return 1000


cdef Py_ssize_t _date(const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write the day like `2026-03-01` with which the text begins; return its length, 10, or 0 if there is none or the
    day does not exist. length: at least 10."""
    cdef int century = _pair(text)
    cdef int of_century = _pair(text + 2)
    cdef int month = _pair(text + 5)
    cdef int day = _pair(text + 8)
    cdef int year = century * 100 + of_century
    if text[4] != c"-" or text[7] != c"-" or century > 99 or of_century > 99 or year == 0:
        return 0
    if not 1 <= month <= 12 or not 1 <= day <= _days(year, month):
        return 0
    memcpy(room, text, 10)
    return 10


cdef int _days(int year, int month) noexcept nogil:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


cdef Py_ssize_t _clock(const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write the time like `10:00:00`, with up to MAX_FRACTION digits of fraction, with which the text begins; return
    its length, or 0 if there is none."""
    cdef Py_ssize_t end = 8
    if length < 8 or text[2] != c":" or text[5] != c":":
        return 0
    if _pair(text) > 23 or _pair(text + 3) > 59 or _pair(text + 6) > 59:
        return 0
    if length > 8 and text[8] == c".":
        end = 9
        while end < length and end < 9 + MAX_FRACTION and _is_digit(text[end]):
            end += 1
        if end == 9:
            return 0
    memcpy(room, text, end)
    return end


cdef Py_ssize_t _time(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write a time without an offset; return its length or 0. kind: TIME; or TIMETZ, for which the text gets the offset
    of UTC if `utc` is set, and has no plain form otherwise."""
    cdef Py_ssize_t written = _clock(text, length, room)
    if written == 0 or written != length:
        return 0
    if kind == TIME:
        return written
    return written + _utc_suffix(room + written) if utc else 0


cdef Py_ssize_t _timestamp(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write a day and a time with a blank between them, followed by the offset if the kind is TIMESTAMPTZ; return the
    length or 0.

    kind: TIMESTAMP or TIMESTAMPTZ. A TIMESTAMP has no offset in the text, or `Z` if `utc` is set. A TIMESTAMPTZ has `Z`
    or an offset; if `utc` is set, it may have none and gets that of UTC. All other texts have no plain form.
    """
    cdef Py_ssize_t clock
    cdef Py_ssize_t written
    if length < 19 or _date(text, length, room) == 0:
        return 0
    if text[10] != c"T" and text[10] != c" " and text[10] != c"t":
        return 0
    clock = _clock(text + 11, length - 11, room + 11)
    if clock == 0:
        return 0
    room[10] = c" "
    written = 11 + clock
    text += written
    length -= written
    if kind == TIMESTAMP:
        return written if length == 0 or utc and length == 1 and (text[0] == c"Z" or text[0] == c"z") else 0
    if length == 0:
        return written + _utc_suffix(room + written) if utc else 0
    if length == 1 and (text[0] == c"Z" or text[0] == c"z"):
        return written + _utc_suffix(room + written)
    length = _offset(text, length, room + written)
    return written + length if length > 0 else 0


cdef inline Py_ssize_t _utc_suffix(char *room) noexcept nogil:
    """Write the offset of UTC; return its length."""
    memcpy(room, b"+00", 3)
    return 3


cdef Py_ssize_t _offset(const char *text, Py_ssize_t length, char *room) noexcept nogil:
    """Write an offset, `+02` for `+02` and `+02:00`, `+05:30` unchanged; return its length, or 0 for another text.

    An offset that begins with `-00`, or of 16 hours or more, has no plain form.
    """
    cdef int hours
    cdef int minutes = 0
    if length != 3 and length != 6 or text[0] != c"+" and text[0] != c"-":
        return 0
    hours = _pair(text + 1)
    if length == 6:
        if text[3] != c":":
            return 0
        minutes = _pair(text + 4)
    if hours > 15 or minutes > 59 or text[0] == c"-" and hours == 0:
        return 0
    length = 3 if minutes == 0 else 6
    memcpy(room, text, length)
    return length
