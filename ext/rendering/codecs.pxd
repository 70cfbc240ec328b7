"""How types are rendered in JSON: a graph of small C structs, one for each type, built from the catalogue.

A value is rendered differently as a column, as an element of an array and as a field of a composite (an anonymous
record is an array only as a column; rendering-35). Therefore each codec has one kind for each of the three places, and
the renderer needs no further rule.
"""

# The rule by which a text of PostgreSQL becomes JSON.
cdef enum Kind:
    # The text as an escaped JSON string.
    TEXT
    # The digits unchanged; a text that is not a JSON number (NaN, Infinity) becomes a string.
    NUMBER
    BOOLEAN
    # Embedded unchanged: the server has validated it.
    JSON
    # A string in the form of `to_json`: `T` behind the date, minutes in the offset.
    DATETIME
    # An anonymous tuple: an array of strings.
    RECORD
    ARRAY
    COMPOSITE
    # A composite column: null if all its fields are NULL, else an object whose fields are rendered like columns.
    BLANKABLE

# The codecs and fields to which a codec points are borrowed from the same registry.
cdef struct Codec:
    # The rules for a column, an element of an array and a field of a composite.
    Kind kind
    Kind element_kind
    Kind field_kind
    # Of an array: the character between its elements.
    char delimiter
    # Of an array: the codec of its elements.
    const Codec *element
    # Of a composite: its attributes in order.
    Field *fields
    Py_ssize_t field_count

cdef struct Field:
    # `{"first":` or `,"other":`, escaped and ready to be copied by `Buffer.append_padded`; its length in bytes.
    char *key
    Py_ssize_t key_length
    const Codec *codec


cdef class Codecs:
    # Owns all structs, which live as long as this registry.
    cdef list _allocations
    # OID -> definition, as `definition` describes it; but ("scalar", `Kind`) for a scalar.
    cdef dict _definitions
    # OID -> address of the codec, for the types that have been resolved since the last definition.
    cdef dict _resolved
    # Composites within composites are parsed, too.
    cdef readonly bint resolve_nested

    # All codecs that are returned are borrowed from this registry. The methods raise MemoryError.

    # Returns the codec of a type; TEXT for an unknown type.
    cdef const Codec *resolve(self, unsigned int oid) except NULL
    # Like `resolve`, for a column of a function, where a composite is BLANKABLE.
    cdef const Codec *resolve_blankable(self, unsigned int oid) except NULL
    # Returns the codec of a composite whose fields are part of the row. keys: one for each field, as bytes (UTF-8, not
    # escaped). Raises ValueError if the type is no composite with as many fields.
    cdef const Codec *resolve_spread(self, unsigned int oid, tuple keys) except NULL
    # Returns the OID that is found behind arrays and domains: that of their elements or base type, again and again,
    # until it is neither, or a circle is found.
    cdef unsigned int innermost(self, unsigned int oid) except? 0
    # Sets the key of a field. position: number of the field in its composite, from 0. name: the key in UTF-8, not
    # escaped.
    cdef int _set_key(self, Field *field, Py_ssize_t position, bytes name) except -1
    # Returns a copy of the codec that renders a field like a column.
    cdef const Codec *_as_column(self, const Codec *codec) except NULL
    # Returns `size` bytes of zeroed memory that live as long as this registry.
    cdef void *_allocate(self, Py_ssize_t size) except NULL
    # Returns a new codec with this kind in all three places.
    cdef Codec *_new(self, Kind kind) except NULL
    # Build the codec of a type, and the codecs to which it points, and register it under its OID. definition: that of
    # the type in `_definitions`.
    cdef const Codec *_build(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_build_array(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_build_domain(self, unsigned int oid, tuple definition) except NULL
    cdef const Codec *_build_composite(self, unsigned int oid, tuple definition) except NULL
    # Returns the codec of a field of a composite: text for a composite, unless `resolve_nested` is set.
    cdef const Codec *_field_codec(self, unsigned int oid) except NULL
