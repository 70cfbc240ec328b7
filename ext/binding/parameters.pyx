"""The fast binder: it binds common requests, which are nearly all requests, to arguments.

The rules are those of `core.binding.binding`, the slow binder, implemented again in C. Values of unusual forms are
converted by functions of the slow binder. For every other unusual request (a repeated text, an error of any kind) the
result is None, and the slow binder decides. Therefore the only possible mistake of this module is to accept a request
wrongly; the tests compare every accepted request with the slow binder.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memchr, memcmp, memset

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.binding.json_object cimport number_end, skip_space, string_end, unescape_string, value_end, word_end
from rowcall.ext.binding.plain_values cimport (
    BOOLEAN, COMPOSITE, JSON, NUMERIC, PLAIN_ROOM, TEXT, UUID, Kind, Text, kind_of, plain_value,
)
from rowcall.ext.binding.query_string cimport is_utf8, percent_decode


cdef enum:
    # An empty place of the hash table.
    NOWHERE = 255
    # Bytes of an escaped value that are decoded on the stack; a longer value is decoded into allocated memory.
    SCRATCH = 1024
    # Most characters of a JSON number that are bound unchecked to numeric; the limit of `core.binding.conversion`.
    LONG_NUMBER = 150000


cdef class FastBinder:
    """Fast binder of the requests of one endpoint; requests of unusual forms are left to the slow binder. See
    `parameters.pyi`."""

    def __init__(self, tuple parameters not None, str query_null not None, bint timestamps_utc, tuple converters=None,
                 dict groups=None):
        cdef Py_ssize_t index
        cdef Slot *slot
        cdef bytes name
        cdef bytes starts
        self.count = len(parameters)
        self.utc = timestamps_utc
        self.empty_is_null = query_null == "EmptyString"
        self.word_is_null = query_null == "NullLiteral"
        self.literal = Buffer()
        self.decoded = Buffer()
        self.converters = converters
        self.groups = groups
        self.names = tuple([row[0].encode() for row in parameters])
        self.starts = tuple([row[8] for row in parameters])
        self.fillings = tuple([None if row[6] is None else row[6].encode() for row in parameters])
        # Two parameters with the same name both get the value. That is rare, so the slow binder handles it.
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
            starts = self.starts[index]
            slot.starts = NULL if starts is None else <const char *>starts
            slot.starts_length = 0 if starts is None else len(starts)
            slot.strict = parameters[index][9]
            slot.never_null = parameters[index][10]
            slot.converted = parameters[index][11]
            _enter(self.table, slot.name, slot.name_length, <unsigned char>index)

    def bind_query(self, str query not None, dict path_values=None):
        """Bind a query string, and the decoded values of the path by name. The path takes precedence.

        query: without its question mark, not decoded. Returns mask, values and has-NULL like
        `core.binding.binding.Binding`; None if the slow binder has to decide.
        """
        cdef uint64_t present = 0
        cdef list values
        cdef const char *start
        cdef Py_ssize_t length = 0
        if not self.usable:
            return None
        try:
            start = PyUnicode_AsUTF8AndSize(query, &length)
        except UnicodeEncodeError:
            return None  # a lone surrogate
        values = [None] * self.count
        if path_values is not None and not self.place_path(path_values, values, &present):
            return None
        if not self.place_query(start, start + length, values, &present):
            return None
        return self.finish(values, present)

    def bind_body(self, bytes body not None, dict path_values=None):
        """Bind the object in a JSON body (UTF-8), like `bind_query`. An empty body counts as an empty object."""
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
        """Return the index of the parameter with this name, which has `length` bytes, or -1.

        expected: index from 0 that is tried first, because clients usually send parameters in their order; it may be
        too large.
        """
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
            try:
                name = PyUnicode_AsUTF8AndSize(key, &name_length)
                text = PyUnicode_AsUTF8AndSize(value, &length)
            except UnicodeEncodeError:
                return False  # a lone surrogate
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
        # open_array: the array parameter whose elements are being added to `self.literal`, -1 if there is none.
        while position < end:
            start = position
            while position < end and position[0] != c"=" and position[0] != c"&":
                position += 1
            # An empty piece is skipped; a piece with an empty key, `=x`, is not.
            if position == start and (position == end or position[0] == c"&"):
                position += 1
                continue
            if memchr(start, c"%", position - start) != NULL or memchr(start, c"+", position - start) != NULL:
                # A name of so many bytes is no usual one, and `scratch` has no room for it.
                if position - start > SCRATCH:
                    return False
                index = self.find(scratch, percent_decode(start, position - start, scratch), 0)
            else:
                # The next parameter is expected, or another element of the open array.
                index = self.find(start, position - start, index + (open_array < 0))
            if index < 0:
                return False
            if open_array >= 0 and index != open_array:
                if not self.close_array(open_array, values):
                    return False
                open_array = -1
            if seen >> index & 1 and index != open_array:
                # Repeated texts are handled by the slow binder.
                if not self.slots[index].array or values[index] is None:
                    return False
                # A further element of an array whose elements are not adjacent in the query: its finished literal is
                # opened again.
                self.literal.clear()
                self.literal.append(<const char *><bytes>values[index], len(values[index]) - 1)
                if self.literal.length == 1:
                    self.literal.clear()
                open_array = index
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
                    self.decoded.clear()
                    if self.decoded.reserve(length) < 0:
                        raise MemoryError
                    length = percent_decode(text, length, self.decoded.data)
                    text = self.decoded.data
                else:
                    length = percent_decode(text, length, scratch)
                    text = scratch
                # A text without escapes is UTF-8, as it comes from a str, and its NUL was refused above.
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
        cdef uint64_t seen = 0
        if position == end:
            return True
        if position[0] != c"{":
            return False
        position = self.place_object(position, end, None, values, present[0], &seen)
        if position == NULL:
            return False
        present[0] |= seen
        return skip_space(position, end) == end

    cdef const char *place_object(self, const char *position, const char *end, dict fields, list values,
                                  uint64_t from_path, uint64_t *seen):
        """Bind the members of the JSON object at `position`, where its brace is.

        fields: None for the object of the body, whose members are parameters; else the members of a composite: name
        (bytes) → index of the parameter. values: receives the values. from_path: parameters whose members are only
        validated. seen: set of parameters, to which those of the members are added. Returns the position behind the
        object, or NULL if the slow binder has to decide.
        """
        cdef const char *stop
        cdef const char *name
        cdef Py_ssize_t length
        cdef int index = -1
        cdef bint escaped = False
        cdef dict inner
        # Names of the composites whose objects have been there.
        cdef set objects = None
        position = skip_space(position + 1, end)
        if position < end and position[0] == c"}":
            return position + 1
        while True:
            stop = string_end(position, end, &escaped)
            if stop == NULL or escaped:
                return NULL
            name = position + 1
            length = stop - position - 2
            position = skip_space(stop, end)
            if position == end or position[0] != c":":
                return NULL
            position = skip_space(position + 1, end)
            inner = None
            if fields is not None:
                index = fields.get(name[:length], -1)
            else:
                index = self.find(name, length, index + 1)
                if index < 0 and self.groups is not None:
                    inner = self.groups.get(name[:length])
            if inner is not None:
                # The value null sets all fields to NULL, which the slow binder does.
                if position == end or position[0] != c"{":
                    return NULL
                if objects is None:
                    objects = set()
                elif name[:length] in objects:
                    return NULL
                objects.add(name[:length])
                stop = self.place_object(position, end, inner, values, from_path, seen)
                if stop == NULL:
                    return NULL
            else:
                # An unknown member, or a repeated one.
                if index < 0 or seen[0] >> index & 1:
                    return NULL
                seen[0] |= <uint64_t>1 << index
                stop = _json_end(position, end, &escaped)
                if stop == NULL:
                    return NULL
                if not from_path >> index & 1 and not self.place_json(index, position, stop, escaped, values):
                    return NULL
            position = skip_space(stop, end)
            if position == end:
                return NULL
            if position[0] == c"}":
                return position + 1
            if position[0] != c",":
                return NULL
            position = skip_space(position + 1, end)

    cdef bint place_text(self, int index, const char *text, Py_ssize_t length, list values):
        """Bind a decoded value of query or path (UTF-8), with the rules for NULL that hold there (binding-17,
        binding-18).

        Returns False if the slow binder has to decide.
        """
        cdef Slot *slot = &self.slots[index]
        if slot.array:
            return False
        # `values` has None for every parameter already.
        if length == 0 and (self.empty_is_null or not slot.empty_is_text):
            return True
        if self.word_is_null and length == 4 and _is_null_word(text):
            return True
        return self.place_value(index, text, length, values) or self.convert_text(index, text, length, values)

    cdef bint place_json(self, int index, const char *text, const char *end, bint escaped, list values):
        """Bind the valid JSON value [text, end), depending on its first character (binding-10). Returns False if the
        slow binder has to decide.

        escaped: whether the value, if it is a string, contains backslashes.
        """
        cdef Slot *slot = &self.slots[index]
        cdef Kind kind = slot.kind
        if text[0] == c"n":
            # null: `values` has None for every parameter already.
            return not slot.never_null
        if slot.strict and not (text[0] == c"[" if slot.array else _starts(slot, text[0])):
            return False
        if slot.array:
            return self.place_json_array(index, text, end, values) or self.convert_json(index, text, end, values)
        if text[0] == c'"':
            if escaped:
                if _place_escaped(self, index, text + 1, end - text - 2, values):
                    return True
            # JSON cannot contain an unescaped NUL.
            elif self.place_value(index, text + 1, end - text - 2, values):
                return True
        elif kind == NUMERIC and _is_number(text[0]) and end - text <= LONG_NUMBER:
            values[index] = text[:end - text]
            return True
        elif _fits(kind, text[0]) and self.place_value(index, text, end - text, values):
            return True
        return self.convert_json(index, text, end, values)

    cdef bint place_json_array(self, int index, const char *text, const char *end, list values):
        """Bind the valid JSON value [text, end) if it is an array of one dimension with elements of plain forms.
        Returns False for any other value."""
        cdef Slot *slot = &self.slots[index]
        cdef char room[PLAIN_ROOM]
        cdef char scratch[SCRATCH]
        cdef Text element
        cdef const char *stop
        cdef bint escaped = False
        if text[0] != c"[" or slot.converted:
            return False
        self.literal.clear()
        text = skip_space(text + 1, end)
        while text[0] != c"]":
            stop = _json_end(text, end, &escaped)
            element.data = text
            element.length = stop - text
            # `add` writes NULL for an element without data.
            if text[0] == c"n":
                element.data = NULL
            elif slot.strict and text[0] != c"[" and not _starts(slot, text[0]):
                return False
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
                # An empty text is a value only of the types from TEXT on.
                if element.length == 0 and slot.kind < TEXT:
                    return False
                if slot.kind == NUMERIC and _is_number(text[0]) and element.length <= LONG_NUMBER:
                    pass
                elif not plain_value(slot.kind, self.utc, element.data, element.length, room, &element):
                    return False
            if self.add(index, &element) < 0:
                raise MemoryError
            text = skip_space(stop, end)
            if text[0] == c",":
                text = skip_space(text + 1, end)
        return self.close_array(index, values)

    cdef bint add_element(self, int index, const char *text, Py_ssize_t length):
        """Add a decoded value of the query (UTF-8) to the array that is being written. Returns False if the slow binder
        has to decide.

        The rules for NULL (binding-17, binding-18) apply to each element.
        """
        cdef Slot *slot = &self.slots[index]
        cdef char room[PLAIN_ROOM]
        cdef Text element
        element.data = NULL
        element.length = 0
        if length == 0 and (self.empty_is_null or not slot.empty_is_text):
            pass
        elif self.word_is_null and length == 4 and _is_null_word(text):
            pass
        elif slot.converted or not plain_value(slot.kind, self.utc, text, length, room, &element):
            return self.convert_element(index, text, length)
        if self.add(index, &element) < 0:
            raise MemoryError
        return True

    # Only single values of unusual forms are converted by the slow binder; this class still binds the request.

    cdef bint convert_text(self, int index, const char *text, Py_ssize_t length, list values):
        if self.converters is None:
            return False
        try:
            converted = self.converters[index][0](text[:length].decode())
        except Exception:
            return False  # the slow binder reports the error
        values[index] = None if converted is None else converted.encode()
        return True

    cdef bint convert_json(self, int index, const char *text, const char *end, list values):
        if self.converters is None:
            return False
        try:
            converted = self.converters[index][1](text[:end - text])
        except Exception:
            return False
        values[index] = None if converted is None else converted.encode()
        return True

    cdef bint convert_element(self, int index, const char *text, Py_ssize_t length):
        cdef Text element
        cdef bytes encoded
        # The only text of an array of composites may be JSON for the whole array.
        if self.converters is None or self.slots[index].kind == COMPOSITE:
            return False
        try:
            converted = self.converters[index][0](text[:length].decode())
        except Exception:
            return False
        encoded = b"" if converted is None else converted.encode()
        element.data = NULL if converted is None else <const char *>encoded
        element.length = len(encoded)
        if self.add(index, &element) < 0:
            raise MemoryError
        return True

    cdef int add(self, int index, const Text *element) noexcept:
        """Append an element of the array parameter `index` to the array literal that is being written; the element is
        NULL if its data is NULL. Returns -1 if there is no memory, else 0."""
        cdef Buffer literal = self.literal
        cdef Slot *slot = &self.slots[index]
        cdef Py_ssize_t position
        literal.append_char(slot.delimiter if literal.length > 0 else c"{")
        if element.data == NULL:
            return literal.append(b"NULL", 4)
        if slot.bare_elements:
            return literal.append(element.data, element.length)
        # Worst case: two quotes, and a backslash before every character.
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
        if self.slots[index].converted or length == 0 and kind < TEXT:
            return False
        if not plain_value(kind, self.utc, text, length, room, &sent):
            return False
        values[index] = PyBytes_FromStringAndSize(sent.data, sent.length)
        return True

    cdef tuple finish(self, list values, uint64_t present):
        """Bind the values of absent parameters: a default or NULL if the parameter has one to bind; an optional one
        without it is left out. Returns (mask, values, has-NULL), or None if a required one is absent.

        values: by index of parameter, None for NULL. present: set of the parameters that the request has. The returned
        mask has a bit for each bound parameter, and the returned values are theirs, in their order.
        """
        # A shift by 64 bits is undefined in C.
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


cdef inline bint _is_number(char first) noexcept nogil:
    return first == c"-" or c"0" <= first <= c"9"


cdef inline bint _starts(const Slot *slot, char first) noexcept nogil:
    return slot.starts == NULL or memchr(slot.starts, first, slot.starts_length) != NULL


cdef inline bint _fits(Kind kind, char first) noexcept nogil:
    """Return whether a JSON value (no string, not null) that begins with the character `first` may be bound to a
    parameter of this kind."""
    if kind >= TEXT:
        return True
    if first == c"{" or first == c"[":
        return False
    if first == c"t" or first == c"f":
        return kind == BOOLEAN
    return kind <= NUMERIC


cdef bint _place_escaped(FastBinder binder, int index, const char *content, Py_ssize_t length, list values):
    """Bind the content of a JSON string to the parameter `index`, after unescaping it. Returns False if it contains a
    NUL or has no plain form, or if there is no memory.

    content: the `length` bytes between the quotes of a valid string.
    """
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
    """Return the position behind the JSON value at `position`, or NULL if it is not valid.

    escaped: receives whether a string contains a backslash; unchanged for any other value.
    """
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
    """Return the FNV-1a hash of the `length` bytes of a name.

    The table contains only names of the endpoint, so clients cannot fill it with collisions.
    """
    cdef uint32_t value = <uint32_t>2166136261
    cdef Py_ssize_t position
    for position in range(length):
        value = (value ^ <unsigned char>name[position]) * <uint32_t>16777619
    return value


cdef void _enter(unsigned char *table, const char *name, Py_ssize_t length, unsigned char index) noexcept nogil:
    """Add the index of a parameter to a hash table of TABLE_SIZE places. name: API name, of `length` bytes, that is not
    in the table."""
    cdef uint32_t place = _hash(name, length) % TABLE_SIZE
    while table[place] != NOWHERE:
        place = (place + 1) % TABLE_SIZE
    table[place] = index
