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

# `length` bytes at `data`, which another object owns; not NUL-terminated.
cdef struct Text:
    const char *data
    Py_ssize_t length

# Returns the `Kind` for a value of `core.endpoint.endpoint.ValueKind`. Raises ValueError for any other name.
cdef int kind_of(str name) except -1

# Returns whether the `length` bytes of `text` have a plain form of `kind`. If they have, `sent` is the text for
# PostgreSQL: a part of `text`, or a text written into `room`, for which PLAIN_ROOM bytes are needed; it is valid as
# long as these. If they have not, the value may still be valid, and `sent` is undefined. `utc`: a timestamp or time
# without an offset is in UTC. Neither encoding nor NUL is checked.
cdef bint plain_value(Kind kind, bint utc, const char *text, Py_ssize_t length, char *room, Text *sent) noexcept nogil
