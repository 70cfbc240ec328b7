"""Requests → arguments for the requests that are plain, which is nearly all of them.

The rules are those of `core.binding.binding`, told once more in C for the plain cases only. Whatever is unusual (a repeated
key, an odd form of a value, an error of any kind) gives None, and `core.binding.binding` decides; so a mistake here can only be
a wrong acceptance, and the tests hold every acceptance against `core.binding.binding`.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memset

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.binding.json_object cimport number_end, skip_space, string_end, unescape_string, value_end, word_end
from rowcall.ext.binding.plain_values cimport (
    BOOLEAN, JSON, NUMERIC, PLAIN_ROOM, TEXT, UUID, Kind, Text, kind_of, plain_value,
)
from rowcall.ext.binding.query_string cimport is_utf8, percent_decode


cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_DATA(object text)


cdef enum:
    NOWHERE = 255
    # Longer escaped values are decoded in memory of their own.
    SCRATCH = 1024


cdef class FastBinder:
    """See `parameters.pyi`."""

    def __init__(self, tuple parameters not None, str query_null not None, bint timestamps_utc):
        cdef Py_ssize_t index
        cdef Slot *slot
        cdef bytes name
        self.count = len(parameters)
        self.utc = timestamps_utc
        self.empty_is_null = query_null == "EmptyString"
        self.word_is_null = query_null == "NullLiteral"
        self.literal = Buffer()
        self.names = tuple([row[0].encode() for row in parameters])
        self.fillings = tuple([None if row[6] is None else row[6].encode() for row in parameters])
        # Two parameters of one name would both get the value: rare enough to be left to the other binder.
        self.usable = self.count <= MAX_PARAMETERS and len(set(self.names)) == self.count
        memset(self.table, NOWHERE, TABLE_SIZE)
        if not self.usable:
            return
        for index in range(self.count):
            slot = &self.slots[index]
            name = self.names[index]
            slot.name = name
            slot.name_length = len(name)
            slot.kind = <Kind>kind_of(parameters[index][1])
            slot.array = parameters[index][2]
            slot.delimiter = c";" if parameters[index][3] == ";" else c","
            slot.bare_elements = slot.kind <= UUID
            slot.empty_is_text = slot.kind == TEXT or slot.kind == JSON
            slot.optional = parameters[index][4]
            slot.filled = parameters[index][5]
            _enter(self.table, slot.name, slot.name_length, <unsigned char>index)

    def bind_query(self, str query not None, dict path_values=None):
        """Mask, values and has-NULL as `core.binding.binding.Binding`, or None."""
        cdef uint64_t present = 0
        cdef list values
        cdef const char *start
        if not self.usable or not PyUnicode_IS_ASCII(query):
            return None
        values = [None] * self.count
        if path_values is not None and not self.place_path(path_values, values, &present):
            return None
        start = PyUnicode_DATA(query)
        if not self.place_query(start, start + len(query), values, &present):
            return None
        return self.finish(values, present)

    def bind_body(self, bytes body not None, dict path_values=None):
        """Mask, values and has-NULL as `core.binding.binding.Binding`, or None."""
        cdef uint64_t present = 0
        cdef list values
        cdef const char *start = body
        if not self.usable:
            return None
        values = [None] * self.count
        if path_values is not None and not self.place_path(path_values, values, &present):
            return None
        if not self.place_body(start, start + len(body), values, &present):
            return None
        return self.finish(values, present)

    cdef int find(self, const char *name, Py_ssize_t length, int expected) noexcept nogil:
        """Index of the parameter, or -1. `expected`: the one after the last found, as clients keep an order."""
        cdef Slot *slot
        cdef uint32_t place
        if expected < self.count:
            slot = &self.slots[expected]
            if slot.name_length == length and memcmp(slot.name, name, length) == 0:
                return expected
        place = _hash(name, length) % TABLE_SIZE
        while self.table[place] != NOWHERE:
            slot = &self.slots[self.table[place]]
            if slot.name_length == length and memcmp(slot.name, name, length) == 0:
                return self.table[place]
            place = (place + 1) % TABLE_SIZE
        return -1

    cdef bint place_path(self, dict path_values, list values, uint64_t *present):
        cdef Py_ssize_t name_length = 0
        cdef Py_ssize_t length = 0
        cdef const char *name
        cdef const char *text
        cdef int index
        for key, value in path_values.items():
            # UTF-8 that is not ASCII may be a lone surrogate, which has none.
            if not PyUnicode_IS_ASCII(key) or not PyUnicode_IS_ASCII(value):
                return False
            name = PyUnicode_AsUTF8AndSize(key, &name_length)
            text = PyUnicode_AsUTF8AndSize(value, &length)
            index = self.find(name, name_length, 0)
            if index < 0:
                continue
            if memchr(text, 0, length) != NULL or not self.place_text(index, text, length, values):
                return False
            present[0] |= <uint64_t>1 << index
        return True

    cdef bint place_query(self, const char *start, const char *end, list values, uint64_t *present):
        cdef const char *position = start
        cdef const char *text
        cdef char scratch[SCRATCH]
        cdef uint64_t from_path = present[0]
        cdef uint64_t seen = 0
        cdef Py_ssize_t length
        cdef int index = -1
        cdef int open_array = -1
        cdef bint escaped
        while position < end:
            start = position
            while position < end and position[0] != c"=" and position[0] != c"&":
                position += 1
            if position == start and (position == end or position[0] == c"&"):
                position += 1
                continue
            # A key with escapes is not found, and so is left to the other binder.
            index = self.find(start, position - start, index + (open_array < 0))
            if index < 0:
                return False
            if open_array >= 0 and index != open_array:
                if not self.close_array(open_array, values):
                    return False
                open_array = -1
            # The elements of an array stand together; anything else that repeats is for the other binder.
            if seen >> index & 1 and index != open_array:
                return False
            seen |= <uint64_t>1 << index
            if position < end and position[0] == c"=":
                position += 1
            text = position
            escaped = False
            while position < end and position[0] != c"&":
                if position[0] == c"%" or position[0] == c"+":
                    escaped = True
                elif position[0] == 0:
                    return False
                position += 1
            length = position - text
            position += 1
            if escaped:
                if length > SCRATCH:
                    return False
                length = percent_decode(text, length, scratch)
                text = scratch
                if memchr(text, 0, length) != NULL or not is_utf8(text, length):
                    return False
            if self.slots[index].array:
                if open_array < 0:
                    self.literal.clear()
                open_array = index
                if from_path >> index & 1 or not self.add_element(index, text, length):
                    return False
            elif not from_path >> index & 1 and not self.place_text(index, text, length, values):
                return False
        present[0] |= seen
        return open_array < 0 or self.close_array(open_array, values)

    cdef bint place_body(self, const char *start, const char *end, list values, uint64_t *present):
        cdef const char *position = skip_space(start, end)
        cdef const char *stop
        cdef uint64_t from_path = present[0]
        cdef uint64_t seen = 0
        cdef int index = -1
        cdef bint escaped = False
        if position == end:
            return True
        if position[0] != c"{":
            return False
        position = skip_space(position + 1, end)
        if position < end and position[0] == c"}":
            return skip_space(position + 1, end) == end
        while True:
            stop = string_end(position, end, &escaped)
            if stop == NULL or escaped:
                return False
            index = self.find(position + 1, stop - position - 2, index + 1)
            if index < 0 or seen >> index & 1:
                return False
            seen |= <uint64_t>1 << index
            position = skip_space(stop, end)
            if position == end or position[0] != c":":
                return False
            position = skip_space(position + 1, end)
            stop = _json_end(position, end, &escaped)
            if stop == NULL:
                return False
            if not from_path >> index & 1 and not self.place_json(index, position, stop, escaped, values):
                return False
            position = skip_space(stop, end)
            if position == end:
                return False
            if position[0] == c"}":
                present[0] |= seen
                return skip_space(position + 1, end) == end
            if position[0] != c",":
                return False
            position = skip_space(position + 1, end)

    cdef bint place_text(self, int index, const char *text, Py_ssize_t length, list values):
        """A value of query or path, with their rules for NULL (reference 01, 7.3)."""
        cdef Slot *slot = &self.slots[index]
        if slot.array:
            return False
        if length == 0 and (self.empty_is_null or not slot.empty_is_text):
            return True
        if self.word_is_null and length == 4 and _is_null_word(text):
            return True
        return self.place_value(index, text, length, values)

    cdef bint place_json(self, int index, const char *text, const char *end, bint escaped, list values):
        """A valid JSON value, by what it begins with (reference 01, 6)."""
        if text[0] == c"n":
            return True
        if self.slots[index].array:
            return self.place_json_array(index, text, end, values)
        if text[0] == c'"':
            if escaped:
                return _place_escaped(self, index, text + 1, end - text - 2, values)
            # A NUL cannot stand in JSON unescaped.
            return self.place_value(index, text + 1, end - text - 2, values)
        return _fits(self.slots[index].kind, text[0]) and self.place_value(index, text, end - text, values)

    cdef bint place_json_array(self, int index, const char *text, const char *end, list values):
        """A valid JSON array of one dimension; the others know more."""
        cdef Slot *slot = &self.slots[index]
        cdef char room[PLAIN_ROOM]
        cdef char scratch[SCRATCH]
        cdef Text element
        cdef const char *stop
        cdef bint escaped = False
        if text[0] != c"[":
            return False
        self.literal.clear()
        text = skip_space(text + 1, end)
        while text[0] != c"]":
            stop = _json_end(text, end, &escaped)
            element.data = text
            element.length = stop - text
            if text[0] == c"n":
                element.data = NULL
            elif text[0] == c'"':
                element.data = text + 1
                element.length -= 2
                if escaped:
                    if element.length > SCRATCH:
                        return False
                    element.length = unescape_string(element.data, element.length, scratch)
                    element.data = scratch
                    if memchr(scratch, 0, element.length) != NULL:
                        return False
            elif text[0] == c"[" and slot.kind != JSON or not _fits(slot.kind, text[0]):
                return False
            if element.data != NULL:
                if element.length == 0 and slot.kind < TEXT:
                    return False
                if not plain_value(slot.kind, self.utc, element.data, element.length, room, &element):
                    return False
            if self.add(index, &element) < 0:
                raise MemoryError
            text = skip_space(stop, end)
            if text[0] == c",":
                text = skip_space(text + 1, end)
        return self.close_array(index, values)

    cdef bint add_element(self, int index, const char *text, Py_ssize_t length):
        """One more value of an array in the query; the rules for NULL hold for each (reference 01, 7.3)."""
        cdef Slot *slot = &self.slots[index]
        cdef char room[PLAIN_ROOM]
        cdef Text element
        element.data = NULL
        element.length = 0
        if length == 0 and (self.empty_is_null or not slot.empty_is_text):
            pass
        elif self.word_is_null and length == 4 and _is_null_word(text):
            pass
        elif not plain_value(slot.kind, self.utc, text, length, room, &element):
            return False
        if self.add(index, &element) < 0:
            raise MemoryError
        return True

    cdef int add(self, int index, const Text *element) noexcept:
        """Writes an element into the literal; no data is NULL. -1 when there is no memory."""
        cdef Buffer literal = self.literal
        cdef Slot *slot = &self.slots[index]
        cdef Py_ssize_t position
        literal.append_char(slot.delimiter if literal.length > 0 else c"{")
        if element.data == NULL:
            return literal.append(b"NULL", 4)
        if slot.bare_elements:
            return literal.append(element.data, element.length)
        # Two quotes, and a backslash before every character at worst.
        if literal.reserve(2 * element.length + 2) < 0:
            return -1
        literal.append_char(c'"')
        for position in range(element.length):
            if element.data[position] == c'"' or element.data[position] == c"\\":
                literal.append_char(c"\\")
            literal.append_char(element.data[position])
        return literal.append_char(c'"')

    cdef bint close_array(self, int index, list values):
        if self.literal.length == 0:
            self.literal.append_char(c"{")
        self.literal.append_char(c"}")
        values[index] = self.literal.take()
        return True

    cdef bint place_value(self, int index, const char *text, Py_ssize_t length, list values):
        cdef char room[PLAIN_ROOM]
        cdef Text sent
        cdef Kind kind = self.slots[index].kind
        if length == 0 and kind < TEXT:
            return False
        if not plain_value(kind, self.utc, text, length, room, &sent):
            return False
        values[index] = PyBytes_FromStringAndSize(sent.data, sent.length)
        return True

    cdef tuple finish(self, list values, uint64_t present):
        """What stands for absent values, and the values in the call; None when a required one is absent."""
        cdef uint64_t every = ~<uint64_t>0 if self.count == 64 else (<uint64_t>1 << self.count) - 1
        cdef bint has_null = False
        cdef int index
        if present != every:
            for index in range(self.count):
                if present >> index & 1:
                    continue
                if self.slots[index].filled:
                    values[index] = self.fillings[index]
                    present |= <uint64_t>1 << index
                elif not self.slots[index].optional:
                    return None
            if present != every:
                values = [values[index] for index in range(self.count) if present >> index & 1]
        for value in values:
            if value is None:
                has_null = True
                break
        return present, values, has_null


cdef inline bint _fits(Kind kind, char first) noexcept nogil:
    """May a JSON value (no string, not null) that begins with `first` be sent to this kind at all?"""
    if kind >= TEXT:
        return True
    if first == c"{" or first == c"[":
        return False
    if first == c"t" or first == c"f":
        return kind == BOOLEAN
    return kind <= NUMERIC


cdef bint _place_escaped(FastBinder binder, int index, const char *content, Py_ssize_t length, list values):
    cdef char scratch[SCRATCH]
    cdef char *target = scratch
    cdef Py_ssize_t written
    if length > SCRATCH:
        target = <char *>malloc(length)
        if target == NULL:
            return False
    try:
        written = unescape_string(content, length, target)
        return memchr(target, 0, written) == NULL and binder.place_value(index, target, written, values)
    finally:
        if target != scratch:
            free(target)


cdef inline const char *_json_end(const char *position, const char *end, bint *escaped) noexcept nogil:
    if position == end:
        return NULL
    if position[0] == c'"':
        return string_end(position, end, escaped)
    if position[0] == c"-" or c"0" <= position[0] <= c"9":
        return number_end(position, end)
    if position[0] == c"{" or position[0] == c"[":
        return value_end(position, end, 1)
    return word_end(position, end)


cdef inline bint _is_null_word(const char *text) noexcept nogil:
    return (
        (text[0] | 0x20) == c"n" and (text[1] | 0x20) == c"u" and (text[2] | 0x20) == c"l" and (text[3] | 0x20) == c"l"
    )


cdef inline uint32_t _hash(const char *name, Py_ssize_t length) noexcept nogil:
    """FNV-1a. Names are the endpoint's own, so nobody can make them collide; a lookup looks at few of them."""
    cdef uint32_t value = <uint32_t>2166136261
    cdef Py_ssize_t position
    for position in range(length):
        value = (value ^ <unsigned char>name[position]) * <uint32_t>16777619
    return value


cdef void _enter(unsigned char *table, const char *name, Py_ssize_t length, unsigned char index) noexcept nogil:
    cdef uint32_t place = _hash(name, length) % TABLE_SIZE
    while table[place] != NOWHERE:
        place = (place + 1) % TABLE_SIZE
    table[place] = index
