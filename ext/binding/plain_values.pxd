"""C surface of the value checks: the common forms of each kind of value."""

cdef enum Kind:
    SMALLINT
    INTEGER
    BIGINT
    FLOAT
    NUMERIC
    BOOLEAN
    UUID
    TIMESTAMPTZ
    TIMESTAMP
    DATE
    TIME
    TIMETZ
    TEXT
    JSON
    OTHER
    COMPOSITE

cdef enum:
    # Maximum number of bytes that `plain_value` writes.
    PLAIN_ROOM = 64

cdef struct Text:
    const char *data
    Py_ssize_t length

# Returns the `Kind` for a value of `core.endpoint.endpoint.ValueKind`. Raises ValueError for any other name.
cdef int kind_of(str name) except -1

# Returns whether `text` has a plain form of `kind`. If it has, `sent` is the text for PostgreSQL: a part of `text`, or
# a text written into `room`. If it has not, the value may still be valid. `utc`: a timestamp or time without an offset
# is in UTC.
cdef bint plain_value(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room, Text *sent) noexcept nogil
