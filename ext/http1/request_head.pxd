"""The head of an HTTP/1.1 request as offsets into the bytes that were received."""

cdef enum:
    # Maximum number of header lines.
    MAX_FIELDS = 100


cpdef enum HeadError:
    """Why a head is refused. `ERRORS` maps each reason to the status and the detail of the response."""
    INVALID_REQUEST_LINE = 1
    INVALID_TARGET
    INVALID_VERSION
    UNSUPPORTED_VERSION
    INVALID_FIELD
    OBSOLETE_FOLDING
    TOO_MANY_FIELDS
    INVALID_CONTENT_LENGTH
    AMBIGUOUS_FRAMING
    INVALID_TRANSFER_ENCODING
    UNSUPPORTED_TRANSFER_CODING
    INVALID_HOST
    UNKNOWN_EXPECTATION
    UNSUPPORTED_METHOD


# A header line, as offsets into the received bytes, and lengths.
cdef struct Field:
    Py_ssize_t name
    Py_ssize_t name_length
    Py_ssize_t value
    Py_ssize_t value_length


# The fields are valid after `parse` has returned an offset. Offsets and lengths are in bytes.
cdef class RequestHead:
    # The received bytes, to which all offsets refer. The head need not be at their start, and bytes may follow it.
    cdef bytes data
    # The address of `data`, which owns the bytes.
    cdef const unsigned char *text
    cdef Py_ssize_t method, method_length
    cdef Py_ssize_t target, target_length
    # Length 0: the target has no authority, because it is not in absolute form.
    cdef Py_ssize_t authority, authority_length
    cdef Py_ssize_t path, path_length
    cdef Py_ssize_t query, query_length
    # The header lines with their line ends, without the empty line behind them.
    cdef Py_ssize_t lines, lines_length
    # 0 for HTTP/1.0; 1 for HTTP/1.1 and higher minor versions.
    cdef int minor_version
    cdef Py_ssize_t field_count
    cdef Field fields[MAX_FIELDS]
    # Bytes of the body; 0 without a body, -1 for a chunked body.
    cdef long long content_length
    cdef bint has_content_length
    # The client accepts that the connection stays open after the response.
    cdef bint keep_alive
    # The client sends the body only after the response 100.
    cdef bint expects_continue

    cdef Py_ssize_t parse(self, bytes data, Py_ssize_t start)
    # Returns the index of the next field with a name of `length` bytes (lower case) behind the index `after`, or -1.
    # after: -1 for the first field.
    cdef Py_ssize_t find(self, const unsigned char *name, Py_ssize_t length, Py_ssize_t after) noexcept
    # Returns the value of the field at `index` (from 0), which must be ASCII (`is_text`).
    cdef str value(self, Py_ssize_t index)
    cdef bint is_text(self, Py_ssize_t index) noexcept
    cdef Py_ssize_t _parse(self, Py_ssize_t start, Py_ssize_t end) noexcept
    cdef Py_ssize_t _parse_line(self, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef Py_ssize_t _invalid_start_of_version(self, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef bint _split_target(self) noexcept
    cdef Py_ssize_t _parse_field(self, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef Py_ssize_t _interpret(self) noexcept
