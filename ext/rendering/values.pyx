"""Renders the PostgreSQL text of one value as JSON without decoding it (rendering-25 to rendering-29, rendering-31 to
rendering-35).

Decoding is strictly layered: one level of quoting is undone completely, then the inner text is parsed by the rule of
the next level. Each depth has its own scratch memory; a part without escapes is read in place.

If the text of a container breaks the grammar of `array_out` or `record_out`, its output is dropped and the whole text
is written as one JSON string.

All texts are borrowed, in UTF-8 and not NUL-terminated: [text, end) is the text of the value, and the byte at `end` is
not read. `depth` is the number of containers around the value. The `read_…` functions read one element or slot at
`text`, whose text they write to their last parameter, and return the position behind it, or NULL if the text is
malformed. The other `render_…` functions that return `bint` return whether the text was well-formed; if it was not,
what they have appended has to be dropped. A failed allocation is recorded in `out.failed` only.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memcmp, memcpy, memmove

from rowcall.ext.base.buffer cimport VECTOR_SLACK, bare_slot_end, is_json_number, unquote
from rowcall.ext.rendering.codecs cimport (
    ARRAY, BLANKABLE, BOOLEAN, COMPOSITE, DATETIME, JSON, NUMBER, RECORD, TEXT, Codecs, Field,
)

cdef enum:
    # The limit of PostgreSQL (MAXDIM).
    MAX_DIMENSIONS = 6
    FIRST_CAPACITY = 256
    # Bytes of scratch memory of one depth that `trim` does not free.
    KEPT_CAPACITY = 1 << 20

# The text of one element or slot, within the value or in scratch memory. `text` is NULL for SQL NULL.
cdef struct Slice:
    const char *text
    const char *end


cdef class Scratch:
    def __dealloc__(self):
        cdef int depth
        for depth in range(MAX_DEPTH):
            free(self.levels[depth])

    cdef char *grow(self, int depth, Py_ssize_t size) noexcept nogil:
        cdef Py_ssize_t capacity = max(self.capacities[depth], FIRST_CAPACITY)
        while capacity < size:
            capacity *= 2
        # Not realloc: the old content is not needed.
        free(self.levels[depth])
        self.levels[depth] = <char *>realloc(NULL, capacity)
        self.capacities[depth] = 0 if self.levels[depth] == NULL else capacity
        return self.levels[depth]

    cdef void trim(self) noexcept nogil:
        cdef int depth
        for depth in range(MAX_DEPTH):
            if self.capacities[depth] > KEPT_CAPACITY:
                free(self.levels[depth])
                self.levels[depth] = NULL
                self.capacities[depth] = 0


cdef int render(
    const Codec *codec, Kind kind, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil:
    if kind == TEXT:
        return out.append_string(text, end - text)
    if kind == NUMBER:
        if is_json_number(text, end):
            return out.append(text, end - text)
        return out.append_string(text, end - text)
    if kind == BOOLEAN:
        return append_boolean(out, text, end)
    if kind == DATETIME:
        return append_datetime(out, text, end)
    if kind == JSON and text < end:
        return out.append(text, end - text)
    return render_container(codec, kind, out, scratch, text, end, depth)


cdef int append_boolean(Buffer out, const char *text, const char *end) noexcept nogil:
    """Append `true` or `false` for the text of a boolean; any other text becomes a string. Returns 0, or -1 if memory
    cannot be allocated."""
    cdef Py_ssize_t size = end - text
    if (size == 1 and text[0] == c't') or (size == 4 and memcmp(text, b"true", 4) == 0):
        return out.append(b"true", 4)
    if (size == 1 and text[0] == c'f') or (size == 5 and memcmp(text, b"false", 5) == 0):
        return out.append(b"false", 5)
    return out.append_string(text, size)


cdef int append_datetime(Buffer out, const char *text, const char *end) noexcept nogil:
    """Append a timestamp as `to_json` writes it: `T` behind the date, minutes in the offset; the blank before BC stays.
    A text without a blank, such as `infinity`, stays as it is. Returns 0, or -1 if memory cannot be allocated."""
    cdef Py_ssize_t position = out.length
    cdef Py_ssize_t tail
    if out.append_string(text, end - text) < 0:
        return -1
    # No escape sequence contains a blank or a sign, so the text can be changed after it was escaped.
    while position < out.length and out.data[position] != c' ':
        position += 1
    if position == out.length:
        return 0
    out.data[position] = c'T'
    while position < out.length and out.data[position] != c'+' and out.data[position] != c'-':
        position += 1
    position += 3
    # An offset of hours only is two digits followed by the closing quote or a blank.
    if position >= out.length or not (is_digit(out.data[position - 2]) and is_digit(out.data[position - 1])):
        return 0
    if position != out.length - 1 and out.data[position] != c' ':
        return 0
    tail = out.length - position
    if out.reserve(3) < 0:
        return -1
    memmove(out.data + position + 3, out.data + position, tail)
    memcpy(out.data + position, b":00", 3)
    out.length += 3
    return 0


cdef inline bint is_digit(char byte) noexcept nogil:
    return c'0' <= byte <= c'9'


cdef int render_container(
    const Codec *codec, Kind kind, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil:
    """Append a container, or its whole text as a string if it breaks its grammar or is too deep. Returns 0, or -1 if
    memory cannot be allocated."""
    cdef Py_ssize_t start = out.length
    cdef bint understood = False
    if depth < MAX_DEPTH:
        if kind == ARRAY:
            understood = render_array(codec, out, scratch, text, end, depth)
        elif kind == COMPOSITE:
            understood = render_composite(codec, out, scratch, text, end, depth)
        elif kind == BLANKABLE:
            understood = render_blankable(codec, out, scratch, text, end, depth)
        elif kind == RECORD:
            understood = render_record(out, scratch, text, end, depth)
    if out.failed:
        return -1
    if understood:
        return 0
    # The part that was appended before the fault was found is dropped.
    out.length = start
    return out.append_string(text, end - text)


# ---- arrays: rendering-31

cdef bint render_array(
    const Codec *codec, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil:
    text = skip_bounds(text, end)
    if text == NULL:
        return False
    return render_body(codec, out, scratch, text, end, depth, 1) == end


cdef const char *skip_bounds(const char *text, const char *end) noexcept nogil:
    """Return the position behind the bounds `[0:2][-1:4]=`, which PostgreSQL prints only if a lower bound is not 1.

    NULL: the bounds are malformed. Without bounds, the position is `text`.
    """
    if text == end or text[0] != c'[':
        return text
    while text < end and text[0] == c'[':
        text = skip_integer(text + 1, end)
        if text == NULL or text == end or text[0] != c':':
            return NULL
        text = skip_integer(text + 1, end)
        if text == NULL or text == end or text[0] != c']':
            return NULL
        text += 1
    if text == end or text[0] != c'=':
        return NULL
    return text + 1


cdef const char *skip_integer(const char *text, const char *end) noexcept nogil:
    """Return the position behind an integer, which may have a minus sign; NULL if there is none."""
    cdef const char *digits
    if text < end and text[0] == c'-':
        text += 1
    digits = text
    while text < end and c'0' <= text[0] <= c'9':
        text += 1
    if text == digits:
        return NULL
    return text


cdef const char *render_body(
    const Codec *codec, Buffer out, Scratch scratch, const char *text, const char *end, int depth, int dimension,
) noexcept nogil:
    """Render the array literal `{…}` that begins at `text`, without bounds, as a JSON array.

    codec: that of the array. depth: number of containers around the array, of which dimensions are none. dimension:
    number of the dimension that begins here, from 1. Returns the position behind the literal, or NULL if the literal is
    malformed.
    """
    cdef char separator
    if text == end or text[0] != c'{' or dimension > MAX_DIMENSIONS:
        return NULL
    out.append_char(c'[')
    text += 1
    if text < end and text[0] == c'}':
        out.append_char(c']')
        return text + 1
    while True:
        if text < end and text[0] == c'{':
            text = render_body(codec, out, scratch, text, end, depth, dimension + 1)
        else:
            text = render_element(codec, out, scratch, text, end, depth, dimension)
        if text == NULL or text == end:
            return NULL
        separator = text[0]
        text += 1
        if separator == c'}':
            out.append_char(c']')
            return text
        if separator != codec.delimiter:
            return NULL
        out.append_char(c',')


cdef const char *render_element(
    const Codec *codec, Buffer out, Scratch scratch, const char *text, const char *end, int depth, int dimension,
) noexcept nogil:
    """Render the element at `text` of an array; return the position behind it, or NULL if it is malformed.

    codec: that of the array. depth: number of containers around the array. dimension: that of the element, from 1.
    """
    cdef Kind kind = codec.element.element_kind
    cdef Slice element
    text = read_element(codec.delimiter, out, scratch, text, end, depth, &element)
    if text == NULL:
        return NULL
    if element.text == NULL:
        out.append(b"null", 4)
        return text
    # In two and more dimensions composites stay tuple strings (rendering-29, rendering-30).
    if dimension > 1 and kind == COMPOSITE:
        kind = TEXT
    render(codec.element, kind, out, scratch, element.text, element.end, depth + 1)
    return text


cdef const char *read_element(
    char delimiter, Buffer out, Scratch scratch, const char *text, const char *end, int depth, Slice *element,
) noexcept nogil:
    cdef const char *start = text
    if text < end and text[0] == c'"':
        return read_quoted(out, scratch, text, end, depth, False, element)
    while text < end and text[0] != delimiter and not is_array_syntax(text[0]):
        text += 1
    if text == start:
        return NULL
    element.text = start
    element.end = text
    # The text NULL in capitals is SQL NULL; a string of these letters would be quoted.
    if text - start == 4 and memcmp(start, b"NULL", 4) == 0:
        element.text = NULL
    return text


cdef inline bint is_array_syntax(char byte) noexcept nogil:
    return byte == c'}' or byte == c'{' or byte == c'"' or byte == c'\\'


# ---- tuples: rendering-32

cdef bint render_composite(
    const Codec *codec, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil:
    cdef Py_ssize_t index
    cdef const Field *field
    cdef Slice slot
    if text == end or text[0] != c'(':
        return False
    text += 1
    # The key of the first field begins with the brace.
    if codec.field_count == 0:
        out.append(b"{}", 2)
        return end - text == 1 and text[0] == c')'
    for index in range(codec.field_count):
        field = &codec.fields[index]
        text = read_slot(out, scratch, text, end, depth, &slot)
        if text == NULL or text == end or text[0] != (c')' if index == codec.field_count - 1 else c','):
            return False
        text += 1
        out.append_padded(field.key, field.key_length)
        if slot.text == NULL:
            out.append(b"null", 4)
        else:
            render(field.codec, field.codec.field_kind, out, scratch, slot.text, slot.end, depth + 1)
    out.append_char(c'}')
    return text == end


cdef bint render_blankable(
    const Codec *codec, Buffer out, Scratch scratch, const char *text, const char *end, int depth,
) noexcept nogil:
    cdef Py_ssize_t nulls = end - text - 1
    # If all fields are NULL, the text is `(,,)`, with one comma less than fields. `render_composite` handles everything
    # else, also a wrong number of fields.
    if nulls > 0 and nulls == codec.field_count and text[0] == c'(' and text[nulls] == c')':
        while nulls > 1 and text[nulls - 1] == c',':
            nulls -= 1
        if nulls == 1:
            return out.append(b"null", 4) == 0
    return render_composite(codec, out, scratch, text, end, depth)


cdef bint render_record(Buffer out, Scratch scratch, const char *text, const char *end, int depth) noexcept nogil:
    cdef char separator = c'['
    cdef Slice slot
    if text == end or text[0] != c'(':
        return False
    while True:
        out.append_char(separator)
        text = read_slot(out, scratch, text + 1, end, depth, &slot)
        if text == NULL or text == end:
            return False
        if slot.text == NULL:
            out.append(b"null", 4)
        else:
            out.append_string(slot.text, slot.end - slot.text)
        separator = text[0]
        if separator == c')':
            out.append_char(c']')
            return text + 1 == end
        if separator != c',':
            return False


cdef const char *read_slot(
    Buffer out, Scratch scratch, const char *text, const char *end, int depth, Slice *slot,
) noexcept nogil:
    cdef const char *start = text
    if text < end and text[0] == c'"':
        return read_quoted(out, scratch, text, end, depth, True, slot)
    text = bare_slot_end(text, end)
    slot.text = start
    slot.end = text
    # No text between two commas is SQL NULL; the empty string would be quoted.
    if text == start:
        slot.text = NULL
    return text


cdef inline const char *read_quoted(
    Buffer out, Scratch scratch, const char *text, const char *end, int depth, bint doubled, Slice *inside,
) noexcept nogil:
    """Undo one level of quoting; return the position behind the closing quote, or NULL if there is none, or no memory
    (`out.failed`).

    text: begins with the quote. depth: number of containers around the value, each with scratch memory of its own.
    doubled: a quote inside may be written as two quotes, as in a composite. inside: receives the unquoted text, which
    is in the scratch memory of `depth` until the next value of this depth is read.
    """
    cdef char *room = scratch.reserve(depth, end - text + VECTOR_SLACK)
    if room == NULL:
        out.failed = True
        return NULL
    text += 1
    inside.text = room
    inside.end = unquote(room, &text, end, doubled)
    if inside.end == NULL:
        return NULL
    return text


def render_value(codecs: Codecs, oid: int, text: bytes | None) -> bytes:
    """Return the JSON of one value as a column of a row, in UTF-8. oid: OID of its type. text: that of the server; None
    is SQL NULL. Raises MemoryError."""
    cdef Codecs registry = codecs
    cdef Buffer out = Buffer()
    cdef const Codec *codec = registry.resolve(oid)
    cdef bytes source
    cdef const char *start
    if text is None:
        return b"null"
    source = text
    start = source
    render(codec, codec.kind, out, Scratch(), start, start + len(source), 0)
    return out.take()
