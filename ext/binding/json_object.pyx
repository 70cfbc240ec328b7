"""Split a JSON body into slices of its text, in one pass and without intermediate objects.

`core.text.json_text` is the slow twin of this module. There and in the tests, orjson decides what is valid JSON. This
module does not call orjson, which builds every value although only the text is needed, and refuses numbers beyond a
double (`1e400`) that PostgreSQL's numeric accepts. Nesting costs one bit per level, never a stack frame.
"""

from libc.stdint cimport uint8_t
from libc.string cimport memcmp, memset

from rowcall.ext.binding.query_string cimport utf8_sequence

cdef enum:
    MAX_DEPTH = 1024
    DEPTH_BYTES = 128


MOST_MEMBERS = 2048
"""Maximum number of members of the object in a body, as in `core.text.json_text`."""


class JsonError(ValueError):
    """The text is not the expected JSON; the message says why."""


def members(bytes body not None):
    """Return the members of the object in `body` in order, as pairs of the decoded key and the unparsed value (UTF-8).

    A body that is empty or only white space counts as an empty object. Raises `JsonError`, also if a key occurs twice
    or there are more than MOST_MEMBERS.
    """
    cdef const char *start = body
    cdef const char *end = start + len(body)
    cdef const char *position = skip_space(start, end)
    cdef const char *stop
    cdef bint escaped = False
    cdef dict result = {}
    if position == end:
        return []
    if position[0] != c"{":
        raise JsonError("the body is not a JSON object")
    position = skip_space(position + 1, end)
    if position < end and position[0] == c"}":
        return _finish_object(result, position + 1, end)
    while True:
        stop = string_end(position, end, &escaped)
        if stop == NULL:
            raise _invalid()
        key = _content(position, stop, escaped).decode()
        if key in result:
            raise JsonError(f"the key {key[:100]!r} is there twice")
        if len(result) >= MOST_MEMBERS:
            raise JsonError(f"an object has more than {MOST_MEMBERS} keys")
        position = skip_space(stop, end)
        if position == end or position[0] != c":":
            raise _invalid()
        position = skip_space(position + 1, end)
        stop = value_end(position, end, 1)
        if stop == NULL:
            raise _invalid()
        result[key] = position[:stop - position]
        position = skip_space(stop, end)
        if position == end:
            raise _invalid()
        if position[0] == c"}":
            return _finish_object(result, position + 1, end)
        if position[0] != c",":
            raise _invalid()
        position = skip_space(position + 1, end)


cdef list _finish_object(dict result, const char *position, const char *end):
    """Return `result`, the members, as pairs if only white space is in [position, end), the text behind the object.
    Raises `JsonError` otherwise."""
    if skip_space(position, end) != end:
        raise _invalid()
    return list(result.items())


cdef object _invalid():
    return JsonError("the body is not valid JSON")


def elements(bytes array not None):
    """Return the unparsed elements of a JSON array, which is the whole text, without white space around it. Raises
    `JsonError` for any other text."""
    cdef const char *start = array
    cdef const char *end = start + len(array)
    cdef const char *position
    cdef const char *stop
    cdef list result = []
    if start == end or start[0] != c"[" or value_end(start, end, 0) != end:
        raise JsonError("not an array")
    # The array is valid, so the end of each element is found, and a bracket or comma follows.
    position = skip_space(start + 1, end)
    while position[0] != c"]":
        stop = value_end(position, end, 1)
        result.append(position[:stop - position])
        position = skip_space(stop, end)
        if position[0] == c",":
            position = skip_space(position + 1, end)
    return result


def unescape(bytes string not None):
    """Return the content of a JSON string as UTF-8. Raises `JsonError` for any other text and for a NUL in it."""
    cdef const char *start = string
    cdef const char *end = start + len(string)
    cdef bint escaped = False
    if string_end(start, end, &escaped) != end:
        raise JsonError("not a string")
    content = _content(start, end, escaped)
    if b"\0" in content:
        raise JsonError("holds a NUL character (\\u0000)")
    return content


cdef bytes _content(const char *start, const char *stop, bint escaped):
    """Return the unescaped content (UTF-8) of the valid string [start, stop), which begins and ends with its quotes.

    escaped: whether it contains a backslash.
    """
    cdef Py_ssize_t length = stop - start - 2
    cdef bytes content = start[1:length + 1]
    if not escaped:
        return content
    cdef bytearray target = bytearray(length)
    cdef Py_ssize_t written = unescape_string(content, length, target)
    return bytes(target[:written])


cdef const char *skip_space(const char *position, const char *end) noexcept nogil:
    while position < end and (
        position[0] == c" " or position[0] == c"\n" or position[0] == c"\r" or position[0] == c"\t"
    ):
        position += 1
    return position


cdef const char *string_end(const char *position, const char *end, bint *escaped) noexcept nogil:
    cdef unsigned char byte
    cdef Py_ssize_t length
    escaped[0] = False
    if position == end or position[0] != c'"':
        return NULL
    position += 1
    while position < end:
        byte = <unsigned char>position[0]
        if byte == c'"':
            return position + 1
        if byte == c"\\":
            escaped[0] = True
            length = _escape_length(position, end)
        elif byte < 0x20:
            # A control character has to be escaped.
            return NULL
        elif byte < 0x80:
            length = 1
        else:
            length = utf8_sequence(<const unsigned char *>position, end - position)
        if length == 0:
            return NULL
        position += length
    return NULL


cdef Py_ssize_t _escape_length(const char *position, const char *end) noexcept nogil:
    """Return the number of bytes of the escape at `position`, where a backslash is: 2, 6, or 12 for a surrogate pair;
    0 for an invalid escape, such as half of a pair."""
    cdef int unit
    if end - position < 2:
        return 0
    if position[1] != c"u":
        return 2 if _escaped_byte(position[1]) != 0 else 0
    unit = _unit(position, end)
    if unit < 0 or 0xDC00 <= unit <= 0xDFFF:
        return 0
    if not 0xD800 <= unit <= 0xDBFF:
        return 6
    return 12 if 0xDC00 <= _unit(position + 6, end) <= 0xDFFF else 0


cdef int _unit(const char *position, const char *end) noexcept nogil:
    """Return the UTF-16 unit of the escape `\\uXXXX` at `position`, or -1 if there is no such escape before `end`."""
    cdef int unit = 0
    cdef int index
    cdef char digit
    if end - position < 6 or position[0] != c"\\" or position[1] != c"u":
        return -1
    for index in range(2, 6):
        digit = position[index]
        if c"0" <= digit <= c"9":
            unit = unit * 16 + digit - c"0"
        elif c"a" <= digit <= c"f":
            unit = unit * 16 + digit - c"a" + 10
        elif c"A" <= digit <= c"F":
            unit = unit * 16 + digit - c"A" + 10
        else:
            return -1
    return unit


cdef char _escaped_byte(char letter) noexcept nogil:
    """Return the character of the escape `\\letter`, or 0 if there is no such escape."""
    if letter == c'"' or letter == c"\\" or letter == c"/":
        return letter
    if letter == c"n":
        return c"\n"
    if letter == c"t":
        return c"\t"
    if letter == c"r":
        return c"\r"
    if letter == c"b":
        return c"\b"
    if letter == c"f":
        return c"\f"
    return 0


cdef Py_ssize_t unescape_string(const char *content, Py_ssize_t length, char *target) noexcept nogil:
    cdef const char *position = content
    cdef const char *end = content + length
    cdef char *written = target
    cdef int unit
    while position < end:
        if position[0] != c"\\":
            written[0] = position[0]
            written += 1
            position += 1
        elif position[1] != c"u":
            written[0] = _escaped_byte(position[1])
            written += 1
            position += 2
        else:
            unit = _unit(position, end)
            position += 6
            # The string is valid, so the second half of a pair follows the first one (RFC 8259, section 7).
            if 0xD800 <= unit <= 0xDBFF:
                unit = 0x10000 + ((unit - 0xD800) << 10) + (_unit(position, end) - 0xDC00)
                position += 6
            written += _write_utf8(unit, written)
    return written - target


cdef Py_ssize_t _write_utf8(int point, char *target) noexcept nogil:
    """Write a code point, which is no surrogate, as UTF-8; return the number of bytes, 1 to 4, for which `target` needs
    room."""
    if point < 0x80:
        target[0] = <char>point
        return 1
    if point < 0x800:
        target[0] = <char>(0xC0 | point >> 6)
        target[1] = <char>(0x80 | point & 0x3F)
        return 2
    if point < 0x10000:
        target[0] = <char>(0xE0 | point >> 12)
        target[1] = <char>(0x80 | point >> 6 & 0x3F)
        target[2] = <char>(0x80 | point & 0x3F)
        return 3
    target[0] = <char>(0xF0 | point >> 18)
    target[1] = <char>(0x80 | point >> 12 & 0x3F)
    target[2] = <char>(0x80 | point >> 6 & 0x3F)
    target[3] = <char>(0x80 | point & 0x3F)
    return 4


cdef const char *number_end(const char *position, const char *end) noexcept nogil:
    if position < end and position[0] == c"-":
        position += 1
    # No digit may follow a leading zero: the number ends behind it, and the caller finds the digit misplaced.
    if position < end and position[0] == c"0":
        position += 1
    else:
        position = _digits_end(position, end)
    if position != NULL and position < end and position[0] == c".":
        position = _digits_end(position + 1, end)
    if position != NULL and position < end and (position[0] == c"e" or position[0] == c"E"):
        position += 1
        if position < end and (position[0] == c"+" or position[0] == c"-"):
            position += 1
        position = _digits_end(position, end)
    return position


cdef const char *_digits_end(const char *position, const char *end) noexcept nogil:
    """Return the position behind one or more digits at `position`, or NULL if there is none."""
    cdef const char *start = position
    while position < end and c"0" <= position[0] <= c"9":
        position += 1
    return position if position > start else NULL


cdef const char *word_end(const char *position, const char *end) noexcept nogil:
    if end - position >= 4 and (memcmp(position, b"true", 4) == 0 or memcmp(position, b"null", 4) == 0):
        return position + 4
    if end - position >= 5 and memcmp(position, b"false", 5) == 0:
        return position + 5
    return NULL


cdef inline const char *_scalar_end(const char *position, const char *end) noexcept nogil:
    """Return the position behind the string, number or word at `position`; NULL if it is invalid."""
    cdef bint escaped
    if position == end:
        return NULL
    if position[0] == c'"':
        return string_end(position, end, &escaped)
    if position[0] == c"-" or c"0" <= position[0] <= c"9":
        return number_end(position, end)
    return word_end(position, end)


cdef const char *value_end(const char *position, const char *end, int depth) noexcept nogil:
    """Validate the value at `position`. Returns the position behind it; NULL if it is invalid or nested too deeply.

    depth: number of open brackets around the value, at most MAX_DEPTH.
    """
    # One bit for each open bracket: 1 for an object, 0 for an array.
    cdef uint8_t objects[DEPTH_BYTES]
    cdef int base = depth
    cdef bint in_object
    memset(objects, 0, DEPTH_BYTES)
    while True:
        # A value begins here.
        if position < end and (position[0] == c"{" or position[0] == c"["):
            if depth == MAX_DEPTH:
                return NULL
            in_object = position[0] == c"{"
            # The bit of this depth may be left from a bracket that was closed.
            objects[depth >> 3] = (objects[depth >> 3] & ~(1 << (depth & 7))) | (in_object << (depth & 7))
            depth += 1
            position = skip_space(position + 1, end)
            if position == end or position[0] != (c"}" if in_object else c"]"):
                if in_object:
                    position = _key_end(position, end)
                    if position == NULL:
                        return NULL
                continue
        else:
            position = _scalar_end(position, end)
            if position == NULL or depth == base:
                return position
            position = skip_space(position, end)
        # A value, or an empty container, ends here: close all brackets that end here too.
        while True:
            if position == end:
                return NULL
            in_object = objects[(depth - 1) >> 3] >> ((depth - 1) & 7) & 1
            if position[0] == c",":
                position = skip_space(position + 1, end)
                break
            if position[0] != (c"}" if in_object else c"]"):
                return NULL
            position += 1
            depth -= 1
            if depth == base:
                return position
            position = skip_space(position, end)
        if in_object:
            position = _key_end(position, end)
            if position == NULL:
                return NULL


cdef const char *_key_end(const char *position, const char *end) noexcept nogil:
    """Return the position behind `"key" :` and the following white space, or NULL if there is no such text."""
    cdef bint escaped
    position = string_end(position, end, &escaped)
    if position == NULL:
        return NULL
    position = skip_space(position, end)
    if position == end or position[0] != c":":
        return NULL
    return skip_space(position + 1, end)
