"""Writes the head of an HTTP/1.1 response (RFC 9112, 4 and 6).

The server alone decides how a body is framed and whether the connection stays open. Therefore headers of the
application about that are read (`says_close`, `stated_length`), but not copied into the response. The exception is the
Content-Length of a response without a body.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdio cimport snprintf
from libc.string cimport memcpy
from libc.time cimport gmtime_r, time, time_t, tm

from http import HTTPStatus

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    # Bytes of the line that `_date_line` returns.
    DATE_SIZE = 37
    # Room for the other lines that the server adds.
    SMALL_FIELDS = 200

# By status: the first line with its end (bytes).
cdef list STATUS_LINES = [None] * 600
for _status in range(100, 600):
    try:
        _phrase = HTTPStatus(_status).phrase
    except ValueError:
        _phrase = ""
    STATUS_LINES[_status] = f"HTTP/1.1 {_status} {_phrase}\r\n".encode()

cdef const char **DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
cdef const char **MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
# The line of the second DATE_OF, in seconds since 1970.
cdef char[64] DATE_LINE
cdef time_t DATE_OF = 0

cdef enum FieldKind:
    ORDINARY
    DROPPED     # not copied: the server writes this header itself if the response needs it
    LENGTH
    DATE
    SERVER


cdef const char *_date_line() noexcept:
    """Return the line `date: …` of the present second with its line end: DATE_SIZE bytes, borrowed, valid until the
    next call."""
    global DATE_OF
    cdef time_t now = time(NULL)
    cdef tm parts
    if now != DATE_OF:
        gmtime_r(&now, &parts)
        snprintf(DATE_LINE, sizeof(DATE_LINE), "date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
                 DAYS[parts.tm_wday], parts.tm_mday, MONTHS[parts.tm_mon], parts.tm_year + 1900,
                 parts.tm_hour, parts.tm_min, parts.tm_sec)
        DATE_OF = now
    return DATE_LINE


cdef bytes response_message(
        int status, headers, Framing framing, long long length, Persistence persistence, bytes body):
    cdef bytes line = STATUS_LINES[status]
    cdef Py_ssize_t size = PyBytes_GET_SIZE(line) + DATE_SIZE + SMALL_FIELDS
    cdef Py_ssize_t name_size = 0, value_size = 0
    cdef const char *name
    cdef const char *value
    cdef bint dated = False, named = False
    cdef FieldKind kind
    cdef char *start
    cdef char *out
    # The first loop adds up an upper limit for the size, the second one writes.
    for pair in headers:
        PyUnicode_AsUTF8AndSize((<tuple>pair)[0], &name_size)
        PyUnicode_AsUTF8AndSize((<tuple>pair)[1], &value_size)
        size += name_size + value_size + 4
    if body is not None:
        size += PyBytes_GET_SIZE(body)
    message = PyBytes_FromStringAndSize(NULL, size)
    start = out = PyBytes_AS_STRING(message)
    out = _copy_bytes(out, PyBytes_AS_STRING(line), PyBytes_GET_SIZE(line))
    for pair in headers:
        name = PyUnicode_AsUTF8AndSize((<tuple>pair)[0], &name_size)
        kind = _kind(name, name_size)
        if kind == DROPPED and persistence == IMPLIED and name_size == 10 and _asks_to_keep(pair):
            persistence = KEEP_ALIVE  # the connection stays open anyway, so the header of the application is true
        if kind == DROPPED or (kind == LENGTH and (framing != NO_BODY or status == 204)):
            continue
        dated = dated or kind == DATE
        named = named or kind == SERVER
        value = PyUnicode_AsUTF8AndSize((<tuple>pair)[1], &value_size)
        out = _copy_lowercase(out, name, name_size)
        out = _copy_bytes(out, ": ", 2)
        out = _copy_bytes(out, value, value_size)
        out = _copy_bytes(out, "\r\n", 2)
    if not named:
        out = _copy_bytes(out, "server: rowcall\r\n", 17)
    if framing == WITH_LENGTH:
        out += snprintf(out, 48, "content-length: %lld\r\n", length)
    elif framing == CHUNKED:
        out = _copy_bytes(out, "transfer-encoding: chunked\r\n", 28)
    if persistence == CLOSE:
        out = _copy_bytes(out, "connection: close\r\n", 19)
    elif persistence == KEEP_ALIVE:
        out = _copy_bytes(out, "connection: keep-alive\r\n", 24)
    if not dated:
        out = _copy_bytes(out, _date_line(), DATE_SIZE)
    out = _copy_bytes(out, "\r\n", 2)
    if body is not None:
        out = _copy_bytes(out, PyBytes_AS_STRING(body), PyBytes_GET_SIZE(body))
    return message[:out - start]


cdef bint _asks_to_keep(pair) except -1:
    """Return whether a (name, value) pair is `Connection: keep-alive`, in any case."""
    return (<str>(<tuple>pair)[0]).lower() == "connection" and (<str>(<tuple>pair)[1]).lower() == "keep-alive"


cdef bint says_close(headers) except -1:
    cdef Py_ssize_t size = 0
    for pair in headers:
        name = (<tuple>pair)[0]
        PyUnicode_AsUTF8AndSize(name, &size)
        if size == 10 and (<str>name).lower() == "connection":
            if "close" in [token.strip() for token in (<str>(<tuple>pair)[1]).lower().split(",")]:
                return True
    return False


cdef long long stated_length(headers) except -2:
    cdef Py_ssize_t size = 0
    for pair in headers:
        name = (<tuple>pair)[0]
        PyUnicode_AsUTF8AndSize(name, &size)
        if size == 14 and (<str>name).lower() == "content-length":
            return int((<tuple>pair)[1])
    return -1


cdef FieldKind _kind(const char *name, Py_ssize_t size) noexcept:
    """Return how a header is treated. name: `size` bytes in any case, a token."""
    if size == 14 and _is(name, "content-length", 14):
        return LENGTH
    if size == 4 and _is(name, "date", 4):
        return DATE
    if size == 6 and _is(name, "server", 6):
        return SERVER
    if (size == 10 and (_is(name, "connection", 10) or _is(name, "keep-alive", 10))) or (
            size == 17 and _is(name, "transfer-encoding", 17)):
        return DROPPED
    return ORDINARY


cdef inline bint _is(const char *text, const char *lowered, Py_ssize_t size) noexcept:
    """Return whether the `size` bytes of `text`, which are a token, equal `lowered` in any case. lowered: lower-case
    letters and hyphens."""
    cdef Py_ssize_t place
    for place in range(size):
        if (text[place] | 32) != lowered[place]:
            return False
    return True


cdef inline char *_copy_bytes(char *out, const char *text, Py_ssize_t size) noexcept:
    """Copy `size` bytes to `out`, which must have room for them. Return the position behind them."""
    memcpy(out, text, size)
    return out + size


cdef inline char *_copy_lowercase(char *out, const char *text, Py_ssize_t size) noexcept:
    """Do what `_copy_bytes` does, with ASCII letters in lower case."""
    cdef Py_ssize_t place
    for place in range(size):
        out[place] = text[place] | 32 if 65 <= text[place] <= 90 else text[place]
    return out + size
