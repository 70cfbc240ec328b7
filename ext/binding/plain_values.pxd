"""C surface of the value checks: the plain forms of each kind."""

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
    # What `plain_value` may write at most.
    PLAIN_ROOM = 64

cdef struct Text:
    const char *data
    Py_ssize_t length

cdef int kind_of(str name) except -1
"""From the value of `core.endpoint.endpoint.ValueKind`."""

cdef bint plain_value(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room, Text *sent) noexcept nogil
"""True when `text` (not empty) is a plain value of `kind`; `sent` is then what PostgreSQL gets: either `text` itself or
written into `room`. False says nothing about the value, only that it is not one of the plain forms."""
