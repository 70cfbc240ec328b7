"""Check and write header sections, and parse the heads of simple HTTP/1.1 responses of other services.

`plain_head` parses common responses only and returns None for all others, which the caller passes to llhttp. So None
does not mean that a response is invalid.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeLatin1
from libc.string cimport memchr, memcpy

cdef extern from "Python.h":
    int PyUnicode_KIND(object text)
    void *PyUnicode_DATA(object text)
    Py_UCS4 PyUnicode_READ(int kind, void *data, Py_ssize_t place)
    Py_ssize_t PyUnicode_GET_LENGTH(object text)
    bint PyUnicode_IS_ASCII(object text)

cdef enum:
    MOST_DIGITS = 15
    # Maximum number of bytes of a response head that is parsed here.
    MOST_HEAD = 65536
    # Maximum number of header lines of one response.
    MOST_FIELDS = 500

MAX_FIELDS = MOST_FIELDS
"""Maximum number of headers of one response. The HTTP server aborts the process at 24,576."""

# 1 for each byte that a header name may contain (RFC 9110, 5.6.2), else 0.
cdef unsigned char[256] TOKEN
for _code in range(256):
    TOKEN[_code] = chr(_code) in "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def are_sound(list headers not None):
    """Return whether each name is a token (RFC 9110, 5.6.2) and no value contains CR, LF or NUL.

    headers: (name, value) pairs; a name or value that is no str makes the result False.
    """
    for name, value in headers:
        if not _is_sound(name, value):
            return False
    return True


cdef bint _is_sound(name, value) except -1:
    """Return whether a header has two str, its name is a token, and its value contains no CR, LF or NUL."""
    cdef Py_ssize_t length, place
    cdef unsigned char *text
    # A str with one byte per character (kind 1) is Latin-1; TOKEN has no character beyond ASCII.
    if type(name) is not str or type(value) is not str or PyUnicode_KIND(name) != 1:
        return False
    length = PyUnicode_GET_LENGTH(name)
    text = <unsigned char *>PyUnicode_DATA(name)
    if length == 0:
        return False
    for place in range(length):
        if not TOKEN[text[place]]:
            return False
    # In a text of wider characters, a single byte may equal a line end without being one.
    if PyUnicode_KIND(value) != 1:
        return "\r" not in value and "\n" not in value and "\0" not in value
    length = PyUnicode_GET_LENGTH(value)
    text = <unsigned char *>PyUnicode_DATA(value)
    return not (memchr(text, 13, length) or memchr(text, 10, length) or memchr(text, 0, length))


cpdef field_problem(headers, Py_ssize_t most_fields, Py_ssize_t most_bytes, Py_ssize_t body_length=-1):
    """Return why the headers cannot be part of a response, as a sentence; None if they can.

    headers: (name, value) pairs of str. most_fields, most_bytes: limits; a header counts as its characters plus four
    for the rest of its line. body_length: bytes of a body that is sent in one piece; -1: no body, or an unknown length.

    A name has to be a token (RFC 9110, 5.6.2). A value may contain any character except surrogates and the control
    characters of ASCII other than tab. Message framing belongs to the HTTP server: `Transfer-Encoding` is refused, and
    so is a `Content-Length` that is repeated, is no number or differs from `body_length`.
    """
    cdef Py_ssize_t count = 0, size = 0, length, place
    cdef const unsigned char *text
    cdef bint framed = False
    cdef long long announced
    for pair in headers:
        if type(pair) is not tuple or len(<tuple>pair) != 2:
            return "a header is no pair of name and value"
        name = (<tuple>pair)[0]
        value = (<tuple>pair)[1]
        if type(name) is not str or type(value) is not str:
            return "the name or value of a header is no text"
        length = PyUnicode_GET_LENGTH(name)
        count += 1
        # `: ` and CRLF.
        size += length + PyUnicode_GET_LENGTH(value) + 4
        if count > most_fields:
            return f"it has more than {most_fields} headers"
        if size > most_bytes:
            return f"its headers are larger than {most_bytes} bytes"
        if length == 0 or not PyUnicode_IS_ASCII(name):
            return "the name of a header is no token"
        text = <const unsigned char *>PyUnicode_DATA(name)
        for place in range(length):
            if not TOKEN[text[place]]:
                return "the name of a header is no token"
        if not _is_printable(value):
            return f"the value of the header '{name}' holds a control character"
        if length == 14 and _is(text, b"content-length", 14):
            # A repeated Content-Length is refused even with equal values (RFC 9110, 8.6).
            if framed or not PyUnicode_IS_ASCII(value):
                return "the header 'content-length' is not a single number"
            framed = True
            text = <const unsigned char *>PyUnicode_DATA(value)
            announced = _number(text, text + PyUnicode_GET_LENGTH(value))
            if announced < 0:
                return "the header 'content-length' is not a single number"
            if body_length >= 0 and announced != body_length:
                return "the header 'content-length' differs from the length of the body"
        elif length == 17 and _is(text, b"transfer-encoding", 17):
            return "the header 'transfer-encoding' is set by the HTTP server only"
    return None


cdef bint _is_printable(value) except -1:
    """Return whether a str contains no control character other than tab and no surrogate."""
    cdef Py_ssize_t place
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(value)
    cdef int kind = PyUnicode_KIND(value)
    cdef void *data = PyUnicode_DATA(value)
    cdef const unsigned char *text
    cdef Py_UCS4 code
    if kind == 1:
        text = <const unsigned char *>data
        for place in range(length):
            if (text[place] < 32 and text[place] != 9) or text[place] == 127:
                return False
        return True
    for place in range(length):
        code = PyUnicode_READ(kind, data, place)
        if (code < 32 and code != 9) or code == 127 or 0xD800 <= code <= 0xDFFF:
            return False
    return True


def lowercase_headers(list headers not None, frozenset dropped not None):
    """Return the (name, value) pairs with names in lower case, or None if a Connection header has another value than
    `keep-alive` or `close`, in any case.

    The first `content-type` comes first. Further ones, and the names in `dropped`, which are in lower case, are left
    out. Raises TypeError if a name, or the value of a Connection header, is no str.
    """
    lowered_headers = []
    content_type = None
    for name, value in headers:
        name = (<str?>name).lower()
        if name == "content-type":
            if content_type is None:
                content_type = (name, value)
        elif name == "connection" and (<str?>value).lower() not in ("keep-alive", "close"):
            return None
        elif name not in dropped:
            lowered_headers.append((name, value))
    if content_type is not None:
        lowered_headers.insert(0, content_type)
    return lowered_headers


def request_head(str method not None, str target not None, str authority not None, list headers not None,
                 list framing not None):
    """Return the request line and the header section, with the empty line at its end, as bytes.

    None: a text is not ASCII. headers, framing: (name, value) pairs of str, which are written unchecked and in this
    order. authority: value of the Host header if neither of them has one.
    """
    cdef Py_ssize_t size
    cdef bint named = False
    cdef unsigned char *out
    if not (PyUnicode_IS_ASCII(method) and PyUnicode_IS_ASCII(target) and PyUnicode_IS_ASCII(authority)):
        return None
    # The exact size: a blank, ` HTTP/1.1` and CRLF in the first line, and CRLF at the end.
    size = PyUnicode_GET_LENGTH(method) + PyUnicode_GET_LENGTH(target) + 12 + 2
    for pairs in (headers, framing):
        for name, value in pairs:
            if type(name) is not str or type(value) is not str \
                    or not (PyUnicode_IS_ASCII(name) and PyUnicode_IS_ASCII(value)):
                return None
            size += PyUnicode_GET_LENGTH(name) + PyUnicode_GET_LENGTH(value) + 4
            if PyUnicode_GET_LENGTH(name) == 4 and _is(<unsigned char *>PyUnicode_DATA(name), b"host", 4):
                named = True
    if not named:
        size += PyUnicode_GET_LENGTH(authority) + 8
    head = PyBytes_FromStringAndSize(NULL, size)
    out = <unsigned char *>PyBytes_AS_STRING(head)
    out = _copy_text(out, method)
    out = _copy_bytes(out, b" ", 1)
    out = _copy_text(out, target)
    out = _copy_bytes(out, b" HTTP/1.1\r\n", 11)
    if not named:
        out = _copy_bytes(out, b"Host: ", 6)
        out = _copy_text(out, authority)
        out = _copy_bytes(out, b"\r\n", 2)
    for pairs in (headers, framing):
        for name, value in pairs:
            out = _copy_text(out, name)
            out = _copy_bytes(out, b": ", 2)
            out = _copy_text(out, value)
            out = _copy_bytes(out, b"\r\n", 2)
    _copy_bytes(out, b"\r\n", 2)
    return head


cdef inline unsigned char *_copy_text(unsigned char *out, text):
    """Copy a str, which must be ASCII, to `out`, which must have room for it. Return the position behind it."""
    cdef Py_ssize_t length = PyUnicode_GET_LENGTH(text)
    memcpy(out, PyUnicode_DATA(text), length)
    return out + length


cdef inline unsigned char *_copy_bytes(unsigned char *out, const char *text, Py_ssize_t length) noexcept:
    memcpy(out, text, length)
    return out + length


cdef inline bint _is(const unsigned char *text, const char *lowered, Py_ssize_t length) noexcept:
    """Return whether the first `length` bytes of `text` are `lowered`, in upper or lower case.

    lowered: lower-case letters and hyphens. text: at least `length` bytes without CR, which would equal a hyphen here.
    """
    cdef Py_ssize_t place
    for place in range(length):
        if (text[place] | 32) != <unsigned char>lowered[place]:
            return False
    return True


def plain_head(bytes data not None):
    """Parse the head of a simple response on a persistent connection.

    data: the bytes received so far, from the start of the response. Returns (status, headers, length of the body in
    bytes, offset of the body in `data`), with headers as (name, value) pairs in the case in which they were sent, read
    as Latin-1. Returns None for every other response: an incomplete head, an interim response, a status without a body
    (204, 304), a body that is chunked or ends with the connection, another protocol version, or anything else that
    needs the full parser.
    """
    cdef const unsigned char *text = <const unsigned char *>PyBytes_AS_STRING(data)
    cdef const unsigned char *end = text + PyBytes_GET_SIZE(data)
    cdef const unsigned char *at = text
    cdef const unsigned char *name
    cdef const unsigned char *value
    cdef const unsigned char *last
    cdef Py_ssize_t size
    cdef int status
    cdef long long length = -1
    # The shortest line is `HTTP/1.1 200\r\n`. A bytes object ends with a zero, which equals none of the bytes compared.
    if end - text < 16 or not _starts(text, b"HTTP/1.1 ", 9):
        return None
    # Three digits, of which the first is 2 to 5, and a blank.
    if not (50 <= text[9] <= 53 and 48 <= text[10] <= 57 and 48 <= text[11] <= 57 and text[12] == 32):
        return None
    status = (text[9] - 48) * 100 + (text[10] - 48) * 10 + (text[11] - 48)
    if status == 204 or status == 304:
        return None
    at = _line_end(text + 13, end)
    if at == NULL:
        return None
    at += 2
    headers = []
    while True:
        if end - at < 2 or at - text > MOST_HEAD or len(headers) > MOST_FIELDS:
            return None
        if at[0] == 13:
            if at[1] != 10:
                return None
            at += 2
            break
        name = at
        while at < end and TOKEN[at[0]]:
            at += 1
        size = at - name
        if size == 0 or at == end or at[0] != 58:
            return None
        at += 1
        while at < end and at[0] == 32:
            at += 1
        value = at
        at = _line_end(value, end)
        if at == NULL:
            return None
        last = at
        # White space behind the value, or a tab in front of it, is left to the full parser.
        if last > value and ((last - 1)[0] == 32 or (last - 1)[0] == 9 or value[0] == 9):
            return None
        at += 2
        if size == 14 and _is(name, b"content-length", 14):
            if length >= 0:
                return None
            length = _number(value, last)
            if length < 0:
                return None
        elif size == 17 and _is(name, b"transfer-encoding", 17):
            return None
        elif size == 10 and _is(name, b"connection", 10):
            if last - value != 10 or not _is(value, b"keep-alive", 10):
                return None
        elif size == 7 and _is(name, b"upgrade", 7):
            return None
        headers.append((PyUnicode_DecodeLatin1(<const char *>name, size, NULL),
                        PyUnicode_DecodeLatin1(<const char *>value, last - value, NULL)))
    if length < 0:
        return None
    return status, headers, length, at - text


cdef inline bint _starts(const unsigned char *text, const char *prefix, Py_ssize_t length) noexcept:
    """Return whether `text`, of at least `length` bytes, begins with the `length` bytes of `prefix`."""
    cdef Py_ssize_t place
    for place in range(length):
        if text[place] != <unsigned char>prefix[place]:
            return False
    return True


cdef inline const unsigned char *_line_end(const unsigned char *at, const unsigned char *end) noexcept:
    """Return the position of the first CR LF in [at, end).

    NULL: another control character than tab comes first, or there is no CR LF.
    """
    while at < end and (at[0] >= 32 or at[0] == 9) and at[0] != 127:
        at += 1
    if end - at < 2 or at[0] != 13 or at[1] != 10:
        return NULL
    return at


cdef inline long long _number(const unsigned char *at, const unsigned char *end) noexcept:
    """Return the decimal number that is the text [at, end), or -1 if the text is not 1 to 15 digits."""
    cdef long long number = 0
    if end == at or end - at > MOST_DIGITS:
        return -1
    while at < end:
        if not 48 <= at[0] <= 57:
            return -1
        number = number * 10 + (at[0] - 48)
        at += 1
    return number
