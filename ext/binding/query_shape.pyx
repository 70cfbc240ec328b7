"""Replace the values of a query string of PostgREST's interface by marks, in one pass over the characters.

`core.postgrest.request.shapes.shape_of` is the slow twin of this module. The pass creates no Python object but the
values and the shape, because it runs for each request.
"""

from cpython.unicode cimport PyUnicode_DecodeASCII, PyUnicode_DecodeUTF8
from libc.string cimport memchr, memcmp, memcpy

from rowcall.ext.binding.query_string cimport percent_decode

cdef extern from "Python.h":
    void *PyUnicode_DATA(object text)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    bint PyUnicode_IS_ASCII(object text)

cdef extern from "string.h":
    void *memmem(const void *text, size_t size, const void *part, size_t length) nogil

cdef enum:
    # Maximum number of characters of a query string for which a shape is made.
    LONGEST = 2048
    # Maximum number of characters of a shape: 10 more for each mark, and a part with a mark has two, such as `=&`.
    LONGEST_SHAPE = 12_298


def shape_of(str query not None, is_operation=None):
    """Return (shape, values): the query string with a mark in place of each operand of a simple comparison, and these
    operands in order, decoded. Return None if the query string is too long or has characters for which no shape is
    made.

    is_operation(text): for a call of a function, returns whether a decoded value is an operation; every other value is
    an argument of the function, and is replaced too. Without `is_operation`, only operands are replaced.
    """
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(query)
    if size > LONGEST or not PyUnicode_IS_ASCII(query):
        return None
    cdef const char *position = <const char *>PyUnicode_DATA(query)
    cdef const char *end = position + size
    if memchr(position, c";", size) != NULL or memchr(position, 0, size) != NULL:
        return None
    if memmem(position, size, b"%00", 3) != NULL:
        return None
    cdef char[LONGEST_SHAPE] shape
    cdef char *written = shape
    cdef const char *stop
    cdef const char *value
    cdef list values = []
    while position <= end:
        stop = <const char *>memchr(position, c"&", end - position)
        if stop == NULL:
            stop = end
        value = _extract_value(position, stop, is_operation, values)
        if value == NULL:
            value = stop
            memcpy(written, position, stop - position)
            written += stop - position
        else:
            memcpy(written, position, value - position)
            written = _write_mark(written + (value - position), len(values) - 1)
        if stop < end:
            written[0] = c"&"
            written += 1
        position = stop + 1
    if not values:
        return query, ()
    return PyUnicode_DecodeASCII(shape, written - shape, NULL), tuple(values)


cdef const char *_extract_value(const char *start, const char *stop, object is_operation, list values) except? NULL:
    """Find the text that a mark replaces in a part `name=value` of the query string, [start, stop): append it, decoded,
    to `values`, and return its position, from which it goes up to `stop`. Return NULL if nothing is replaced."""
    cdef const char *value = _skip_name(start, stop)
    cdef const char *operand
    cdef str text
    if value == NULL:
        return NULL
    operand = _skip_operator(value, stop)
    if operand != NULL:
        values.append(_decode_text(operand, stop - operand))
        return operand
    if is_operation is None:
        return NULL
    text = _decode_text(value, stop - value)
    if _begins_like_operation(text) and is_operation(text):
        return NULL
    values.append(text)
    return value


cdef const char *_skip_name(const char *start, const char *stop) noexcept:
    """Return the position after the first `=` of a part; NULL without one, and if the name is reserved."""
    cdef const char *equals = <const char *>memchr(start, c"=", stop - start)
    cdef const char *word
    if equals == NULL:
        return NULL
    word = equals
    while word > start and (word - 1)[0] != c".":
        word -= 1
    if _is_reserved(word, equals - word):
        return NULL
    return equals + 1


cdef bint _is_reserved(const char *word, Py_ssize_t length) noexcept:
    """Return whether a name, or the last word of a path, is that of a parameter of the query language."""
    if length == 2:
        return memcmp(word, b"or", 2) == 0
    if length == 3:
        return memcmp(word, b"and", 3) == 0
    if length == 5:
        return memcmp(word, b"order", 5) == 0 or memcmp(word, b"limit", 5) == 0
    if length == 6:
        return memcmp(word, b"select", 6) == 0 or memcmp(word, b"offset", 6) == 0
    if length == 7:
        return memcmp(word, b"columns", 7) == 0
    return length == 11 and memcmp(word, b"on_conflict", 11) == 0


cdef const char *_skip_operator(const char *value, const char *stop) noexcept:
    """Return the position after `not.` and the operator of a simple comparison; NULL for any other value."""
    if stop - value >= 4 and memcmp(value, b"not.", 4) == 0:
        value += 4
    if stop - value >= 3 and value[2] == c".":
        if memcmp(value, b"eq", 2) == 0 or memcmp(value, b"gt", 2) == 0 or memcmp(value, b"lt", 2) == 0:
            return value + 3
    elif stop - value >= 4 and value[3] == c".":
        if memcmp(value, b"neq", 3) == 0 or memcmp(value, b"gte", 3) == 0 or memcmp(value, b"lte", 3) == 0:
            return value + 4
    return NULL


cdef bint _begins_like_operation(str text):
    """Return whether a text begins like every operation: with a word in lower case before `.` or `(`."""
    cdef Py_UCS4 character
    for character in text:
        if not c"a" <= character <= c"z":
            return character == c"." or character == c"("
    return False


cdef str _decode_text(const char *text, Py_ssize_t length):
    """Decode percent-encoding, and `+` as a blank. Bytes that are not UTF-8 become U+FFFD. length: at most LONGEST."""
    cdef char[LONGEST] decoded
    if memchr(text, c"%", length) == NULL and memchr(text, c"+", length) == NULL:
        return PyUnicode_DecodeASCII(text, length, NULL)
    return PyUnicode_DecodeUTF8(decoded, percent_decode(text, length, decoded), b"replace")


cdef char *_write_mark(char *target, Py_ssize_t place) noexcept:
    """Write `%00`, a number of at most four digits and `%00`, and return the position after them."""
    cdef Py_ssize_t power = 1
    memcpy(target, b"%00", 3)
    target += 3
    while power * 10 <= place:
        power *= 10
    while power > 0:
        target[0] = <char>(c"0" + place // power % 10)
        target += 1
        power //= 10
    memcpy(target, b"%00", 3)
    return target + 3
