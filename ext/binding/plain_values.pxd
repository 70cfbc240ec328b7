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

# Returns the `Kind` for a value of `core.endpoint.endpoint.ValueKind`.
cdef int kind_of(str name) except -1

# Whether `text` (not empty) is a plain value of `kind`. If so, `sent` is what PostgreSQL receives: `text` itself, or a
# text written into `room`. If not, `text` has none of the plain forms; the value may still be valid.
cdef bint plain_value(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room, Text *sent) noexcept nogil
