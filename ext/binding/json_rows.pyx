"""Transpose a JSON array of objects into one array literal of PostgreSQL for each column, in one pass.

Only values whose conversion cannot fail are accepted, so that the literals give what `json_to_recordset` gives, and no
error can be one of arrays. For everything else the functions return None, and PostgreSQL has to read the JSON.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport memcmp

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.binding.json_object cimport (
    number_end, skip_space, string_end, unescape_string, value_end, word_end,
)
from rowcall.ext.binding.plain_values cimport JSON, NUMERIC, PLAIN_ROOM, TEXT, UUID, Kind, Text, kind_of, plain_value

cdef enum:
    # Maximum number of keys of an object; a table has at most 1600 columns.
    MOST_KEYS = 1600
    # Number of brackets that are open around a value of a row.
    DEPTH = 2
    UUID_SIZE = 36


cdef class ColumnForm:
    """How values of a column are checked. kind: a `ValueKind`, neither `other` nor `composite`. limit: `text`: maximum
    number of bytes; `numeric`: maximum number of digits before the point; -1: none. scale: `numeric`: number of digits
    behind the point, to which PostgreSQL rounds."""

    cdef Kind kind
    cdef Py_ssize_t limit
    cdef Py_ssize_t scale

    def __init__(self, str kind not None, Py_ssize_t limit=-1, Py_ssize_t scale=0):
        self.kind = <Kind>kind_of(kind)
        self.limit = limit
        self.scale = scale


cdef class Column:
    """A column while the rows are read."""

    # None: the values are only validated.
    cdef ColumnForm form
    # The key with its quotes, in the first object of the body; NULL before it is read.
    cdef const char *key
    cdef Py_ssize_t key_size
    # The literal so far: `{` and values, each with a comma.
    cdef Buffer literal
    # For the content of a string with escapes.
    cdef Buffer content


def first_keys(bytes body not None):
    """Return the keys of the first element, without escapes, of a JSON array of objects. None: the text has another
    form, or the keys are repeated, escaped, none, or more than MOST_KEYS. The rest of the text is not read."""
    cdef const char *end = PyBytes_AS_STRING(body) + PyBytes_GET_SIZE(body)
    cdef const char *position = _skip_byte(PyBytes_AS_STRING(body), end, c"[")
    cdef const char *stop
    cdef bint escaped = False
    cdef list keys = []
    position = _skip_byte(position, end, c"{")
    while position != NULL and len(keys) < MOST_KEYS:
        stop = string_end(position, end, &escaped)
        if stop == NULL or escaped:
            return None
        keys.append(position[1:stop - position - 1].decode())
        position = _skip_byte(stop, end, c":")
        if position == NULL:
            return None
        stop = value_end(position, end, DEPTH)
        if _skip_byte(stop, end, c"}") != NULL:
            return tuple(keys) if len(set(keys)) == len(keys) else None
        position = _skip_byte(stop, end, c",")
    return None


def array_literals(bytes body not None, tuple forms not None):
    """Return an array literal for each column of a JSON array of objects.

    forms: `ColumnForm` for each of the `first_keys` in order; None: the column is left out, and its literal is None.
    None is returned if the text is not valid JSON, an object has not these keys in this order, or a value is not
    certainly valid for its column.
    """
    cdef const char *end = PyBytes_AS_STRING(body) + PyBytes_GET_SIZE(body)
    cdef const char *position = _skip_byte(PyBytes_AS_STRING(body), end, c"[")
    cdef const char *next_row
    cdef list columns = [_new_column(form) for form in forms]
    cdef Column column
    # PostgreSQL has no NUL, and says so in an error of its own for JSON.
    if not columns or b"\\u0000" in body:
        return None
    while True:
        position = _read_row(position, end, columns)
        next_row = _skip_byte(position, end, c",")
        if next_row == NULL:
            break
        position = next_row
    if _skip_byte(position, end, c"]") != end:
        return None
    return [None if column.form is None else _literal(column) for column in columns]


cdef Column _new_column(ColumnForm form):
    cdef Column column = Column.__new__(Column)
    column.form = form
    if form is not None:
        column.literal = Buffer()
        column.content = Buffer()
        column.literal.append_char(c"{")
    return column


cdef str _literal(Column column):
    """Return the literal of a column with at least one value. Raises MemoryError."""
    cdef Buffer literal = column.literal
    if literal.failed:
        raise MemoryError
    literal.data[literal.length - 1] = c"}"
    return literal.data[:literal.length].decode()


cdef inline const char *_skip_byte(const char *position, const char *end, char byte) noexcept nogil:
    """Return the position behind a byte, around which there may be white space. NULL: another byte is there, or the
    position is NULL."""
    if position == NULL:
        return NULL
    if position == end or position[0] != byte:
        position = skip_space(position, end)
        if position == end or position[0] != byte:
            return NULL
    return skip_space(position + 1, end)


cdef const char *_read_row(const char *position, const char *end, list columns):
    """Append the values of the object at `position` to the literals; the first object determines the keys. Returns the
    position behind it, or NULL if it is invalid, has other keys, or has a value that is not certainly valid."""
    cdef const char *stop
    cdef bint escaped
    cdef Column column
    cdef char separator = c"{"
    for column in columns:
        position = _skip_byte(position, end, separator)
        if position == NULL:
            return NULL
        if column.key == NULL:
            stop = string_end(position, end, &escaped)
            if stop == NULL or escaped:
                return NULL
            column.key = position
            column.key_size = stop - position
        elif end - position < column.key_size or memcmp(position, column.key, column.key_size) != 0:
            return NULL
        position = _skip_byte(position + column.key_size, end, c":")
        if position == NULL or position == end:
            return NULL
        escaped = False
        if position[0] == c'"':
            stop = string_end(position, end, &escaped)
        elif position[0] == c"-" or c"0" <= position[0] <= c"9":
            stop = number_end(position, end)
        elif position[0] == c"{" or position[0] == c"[":
            stop = value_end(position, end, DEPTH)
        else:
            stop = word_end(position, end)
        if stop == NULL or column.form is not None and not _append(column, position, stop, escaped):
            return NULL
        position = stop
        separator = c","
    return _skip_byte(position, end, c"}")


cdef bint _append(Column column, const char *start, const char *stop, bint escaped) noexcept:
    """Append the JSON value [start, stop) to the literal of its column. Returns whether it is certainly valid for the
    column. escaped: it is a string with escapes."""
    cdef Buffer literal = column.literal
    cdef bint fits = True
    if start[0] == c"n":
        literal.append(b"NULL", 4)
    elif column.form.kind == TEXT:
        fits = _append_text(column, start, stop, escaped)
    elif column.form.kind == JSON:
        fits = not escaped and _has_safe_numbers(start, stop)
        if fits:
            _append_quoted(literal, start, stop - start)
    else:
        fits = not escaped and _append_plain(column, start, stop)
    literal.append_char(c",")
    return fits


cdef bint _append_text(Column column, const char *start, const char *stop, bint escaped) noexcept:
    """Append the content of a string, or the JSON of any other value. Returns and receives what `_append` does."""
    cdef Buffer literal = column.literal
    cdef Buffer content = column.content
    cdef Py_ssize_t size = stop - start
    if escaped:
        if content.reserve(size) < 0:
            literal.failed = True
            return True
        size = unescape_string(start + 1, size - 2, content.data)
        _append_quoted(literal, content.data, size)
    elif start[0] == c'"':
        # Nothing in it has to be escaped, neither in JSON nor in an array literal, and both have the same quotes.
        literal.append(start, size)
        size -= 2
    else:
        _append_quoted(literal, start, size)
    return column.form.limit < 0 or size <= column.form.limit


cdef bint _append_plain(Column column, const char *start, const char *stop) noexcept:
    """Append a number, boolean or the content of a string if it has a plain form, and return whether it has."""
    cdef char room[PLAIN_ROOM]
    cdef Text sent
    if start[0] == c'"':
        start += 1
        stop -= 1
    # PostgreSQL refuses a UUID in parentheses or between blanks.
    if column.form.kind == UUID and (stop - start != UUID_SIZE or start[8] != c"-"):
        return False
    if start == stop or not plain_value(column.form.kind, False, start, stop - start, room, &sent):
        return False
    # None of these forms contains a byte that has a meaning in an array literal.
    column.literal.append(sent.data, sent.length)
    return column.form.kind != NUMERIC or column.form.limit < 0 or _is_in_precision(column.form, sent)


cdef bint _is_in_precision(ColumnForm form, Text number) noexcept nogil:
    """Return whether a decimal number has few enough digits before the point, whatever it is rounded to."""
    cdef Py_ssize_t before = 0
    cdef Py_ssize_t after
    cdef const char *position = number.data
    cdef const char *end = number.data + number.length
    if position[0] == c"-" or position[0] == c"+":
        position += 1
    while position < end and position[0] != c".":
        position += 1
        before += 1
    after = max(0, end - position - 1)
    # Rounding can add one digit: 9.99 may become 10.0.
    return before + (after > form.scale) <= form.limit


cdef bint _has_safe_numbers(const char *position, const char *end) noexcept nogil:
    """Return whether all numbers in a valid JSON value have a plain form of `numeric`, which limits those of jsonb."""
    cdef char room[PLAIN_ROOM]
    cdef Text sent
    cdef const char *start
    cdef bint escaped
    while position < end:
        start = position
        if position[0] == c'"':
            position = string_end(position, end, &escaped)
        elif position[0] == c"-" or c"0" <= position[0] <= c"9":
            position = number_end(position, end)
            if not plain_value(NUMERIC, False, start, position - start, room, &sent):
                return False
        else:
            position += 1
    return True


cdef void _append_quoted(Buffer literal, const char *text, Py_ssize_t size) noexcept:
    """Append an element of an array literal in quotes."""
    cdef char *target
    cdef const char *end = text + size
    if literal.reserve(2 * size + 2) < 0:
        return
    target = literal.data + literal.length
    target[0] = c'"'
    target += 1
    while text < end:
        if text[0] == c'"' or text[0] == c"\\":
            target[0] = c"\\"
            target += 1
        target[0] = text[0]
        target += 1
        text += 1
    target[0] = c'"'
    literal.length = target + 1 - literal.data
