"""How a type is told in JSON: a graph of small C structs, one for each type, built from the catalogue.

A value is told differently as a column, as an element of an array and as a field of a composite (an anonymous record
is an array in the first only; rendering-35). So each codec carries one kind for each place, and the renderer
needs no further rule.
"""

cdef enum Kind:
    # The text as an escaped JSON string.
    TEXT
    # The digits as they are; whatever is no JSON number (NaN, Infinity) as a string.
    NUMBER
    BOOLEAN
    # Embedded as it is: the server has validated it.
    JSON
    # A string as `to_json` has it: `T` behind the date, minutes in the offset.
    DATETIME
    # An anonymous tuple: an array of strings.
    RECORD
    ARRAY
    COMPOSITE
    # A composite column that stands for its fields as columns: null when all of them are, each told as a column is.
    BLANKABLE

cdef struct Codec:
    Kind kind
    Kind element_kind
    Kind field_kind
    char delimiter
    # Of an array: what its elements are.
    const Codec *element
    # Of a composite: its attributes in order.
    Field *fields
    Py_ssize_t field_count

cdef struct Field:
    # `{"first":` or `,"other":`, escaped and ready to be copied; padded.
    char *key
    Py_ssize_t key_length
    const Codec *codec


cdef class Codecs:
    # Every struct handed out lives as long as this registry.
    cdef list _allocations
    cdef dict _definitions
    cdef dict _resolved
    cdef readonly bint resolve_nested

    # The codec of a type; TEXT for one that is not known.
    cdef const Codec *resolve(self, unsigned int oid) except NULL
    # The same for a column of a function, where a composite is BLANKABLE.
    cdef const Codec *resolve_blankable(self, unsigned int oid) except NULL
    # The codec of a composite whose fields stand in the row, under keys of their own.
    cdef const Codec *resolve_spread(self, unsigned int oid, tuple keys) except NULL
    # What an array holds or a domain stands for, down to a type that is neither.
    cdef unsigned int innermost(self, unsigned int oid) except? 0
    cdef int _set_key(self, Field *field, Py_ssize_t position, bytes name) except -1
    # The same codec, but as a field it is told as it is in a column.
    cdef const Codec *_as_column(self, const Codec *codec) except NULL
    cdef void *_allocate(self, Py_ssize_t size) except NULL
    cdef Codec *_new(self, Kind kind) except NULL
    cdef const Codec *_build(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_build_array(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_build_domain(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_build_composite(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_field_codec(self, unsigned int oid) except NULL
