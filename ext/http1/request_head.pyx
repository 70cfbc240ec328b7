"""Parses the head of an HTTP/1.1 request: request line and header section (RFC 9112, 2 to 6).

The parser is strict. A line ends with CRLF, a field name is followed directly by its colon, a field value contains no
control character, and at most one field determines the length of the body. Everything else is refused, because a proxy
in front of the service could read it differently (RFC 9112, 11.2). A field is stored as two offsets and two lengths;
Python objects for its name and value are created only when a step reads the field.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeASCII

cdef enum:
    CR = 13
    LF = 10
    SP = 32
    TAB = 9
    COLON = 58
    # Digits of the longest Content-Length that fits into 63 bits for certain.
    MAX_DIGITS = 18

ERRORS = {
    HeadError.INVALID_REQUEST_LINE: (400, "the request line is invalid"),
    HeadError.INVALID_TARGET: (400, "the request target is invalid"),
    HeadError.INVALID_VERSION: (400, "the protocol version is invalid"),
    HeadError.UNSUPPORTED_VERSION: (505, "the protocol version is not supported"),
    HeadError.INVALID_FIELD: (400, "a header line is invalid"),
    HeadError.OBSOLETE_FOLDING: (400, "a header is folded over several lines"),
    HeadError.TOO_MANY_FIELDS: (431, f"there are more than {MAX_FIELDS} headers"),
    HeadError.INVALID_CONTENT_LENGTH: (400, "the header Content-Length is not a single number"),
    HeadError.AMBIGUOUS_FRAMING: (400, "the headers Content-Length and Transfer-Encoding exclude each other"),
    HeadError.INVALID_TRANSFER_ENCODING: (400, "the header Transfer-Encoding does not end with a single 'chunked'"),
    HeadError.UNSUPPORTED_TRANSFER_CODING: (501, "no other transfer coding than 'chunked' is supported"),
    HeadError.INVALID_HOST: (400, "the header Host is not a host with an optional port"),
    HeadError.UNKNOWN_EXPECTATION: (417, "no other expectation than '100-continue' can be met"),
    HeadError.UNSUPPORTED_METHOD: (501, "the method CONNECT is for proxies, and this is none"),
}
"""For each error: status and detail of the response to the refused head."""

cdef enum:
    IS_TOKEN = 1
    IS_VALUE = 2
    IS_TARGET = 4
    IS_HOST = 8

# For each byte the sets of characters, as bits, to which it belongs.
cdef unsigned char[256] KINDS
cdef str _ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

for _code in range(256):
    KINDS[_code] = (
        (IS_TOKEN if chr(_code) in "!#$%&'*+-.^_`|~" + _ALPHANUMERIC else 0)
        | (IS_VALUE if _code == 9 or (_code >= 32 and _code != 127) else 0)
        # Clients send some characters that RFC 3986 wants encoded; none of them ends a target or a line.
        | (IS_TARGET if (32 < _code < 127 and chr(_code) != "#") or _code > 127 else 0)
        | (IS_HOST if chr(_code) in "-._~!$&'()*+,;=%:[]" + _ALPHANUMERIC else 0)
    )


cdef class RequestHead:
    """The parsed head of one request. Python code reads it through the classes of `ext.http1.scope`."""

    cdef Py_ssize_t parse(self, bytes data, Py_ssize_t start):
        """Parse the head that begins at the offset `start` of `data`, to which a reference is stored.

        Returns the offset behind its empty line, 0 if the head is incomplete, or the negative of a `HeadError`.
        """
        cdef Py_ssize_t end = PyBytes_GET_SIZE(data)
        self.data = data
        self.text = <const unsigned char *>PyBytes_AS_STRING(data)
        return self._parse(start, end)

    cdef Py_ssize_t _parse(self, Py_ssize_t start, Py_ssize_t end) noexcept:
        """Do what `parse` does, with the bytes of `text` from `start` to before `end`."""
        cdef const unsigned char *text = self.text
        cdef Py_ssize_t at = start
        cdef Py_ssize_t error
        self.field_count = 0
        self.content_length = 0
        self.has_content_length = False
        self.expects_continue = False
        # Empty lines in front are ignored (RFC 9112, 2.2).
        while end - at >= 2 and text[at] == CR and text[at + 1] == LF:
            at += 2
        if end - at == 1 and text[at] == CR:
            return 0
        at = self._parse_line(at, end)
        if at <= 0:
            return at
        self.lines = at
        self.keep_alive = self.minor_version >= 1
        while True:
            if at >= end:
                return 0
            if text[at] == CR:
                if at + 1 >= end:
                    return 0
                if text[at + 1] != LF:
                    return -INVALID_FIELD
                self.lines_length = at - self.lines
                at += 2
                break
            at = self._parse_field(at, end)
            if at <= 0:
                return at
        error = self._interpret()
        return at if error == 0 else -error

    cdef Py_ssize_t _parse_line(self, Py_ssize_t at, Py_ssize_t end) noexcept:
        """Parse the request line at `at`. Returns what `parse` returns, with the offset behind this line."""
        cdef const unsigned char *text = self.text
        self.method = at
        while at < end and KINDS[text[at]] & IS_TOKEN:
            at += 1
        self.method_length = at - self.method
        if at >= end:
            return 0
        if self.method_length == 0 or text[at] != SP:
            return -INVALID_REQUEST_LINE
        at += 1
        self.target = at
        while at < end and KINDS[text[at]] & IS_TARGET:
            at += 1
        self.target_length = at - self.target
        if at >= end:
            return 0
        if self.target_length == 0 or text[at] != SP:
            return -INVALID_TARGET
        at += 1
        # `HTTP/1.1` and CRLF, compared byte by byte below.
        if end - at < 10:
            return self._invalid_start_of_version(at, end)
        if not (text[at] == 72 and text[at + 1] == 84 and text[at + 2] == 84 and text[at + 3] == 80
                and text[at + 4] == 47 and 48 <= text[at + 5] <= 57 and text[at + 6] == 46
                and 48 <= text[at + 7] <= 57 and text[at + 8] == CR and text[at + 9] == LF):
            return -INVALID_VERSION
        if text[at + 5] != 49:
            return -UNSUPPORTED_VERSION
        # A higher minor version is answered as the highest that is known (RFC 9110, 2.5).
        self.minor_version = 0 if text[at + 7] == 48 else 1
        if self.method_length == 7 and _is(text + self.method, b"CONNECT", 7):
            return -UNSUPPORTED_METHOD
        if not _is_utf8(text + self.target, self.target_length):
            return -INVALID_TARGET
        return at + 10 if self._split_target() else -INVALID_TARGET

    cdef Py_ssize_t _invalid_start_of_version(self, Py_ssize_t at, Py_ssize_t end) noexcept:
        """Return 0 if the last bytes, from `at` to before `end`, can be the start of a version, the negative of a
        `HeadError` otherwise.

        So a client that sends an invalid line and waits gets its response at once.
        """
        cdef const unsigned char *text = self.text
        cdef const unsigned char *known = b"HTTP/1.1\r\n"
        cdef Py_ssize_t place
        for place in range(end - at):
            if place == 5 or place == 7:
                if not 48 <= text[at + place] <= 57:
                    return -INVALID_VERSION
            elif text[at + place] != known[place]:
                return -INVALID_VERSION
        return 0

    cdef bint _split_target(self) noexcept:
        """Find authority, path and query in the target (RFC 9112, 3.2).

        Returns False if the target is in neither origin-form, absolute-form nor asterisk-form.
        """
        cdef const unsigned char *text = self.text
        cdef Py_ssize_t at = self.target
        cdef Py_ssize_t end = at + self.target_length
        self.authority = at
        self.authority_length = 0
        # asterisk-form: `*`, for OPTIONS only.
        if text[at] == 42:
            self.path = at
            self.path_length = self.target_length
            self.query = end
            self.query_length = 0
            return self.target_length == 1 and self.method_length == 7 and _is(text + self.method, b"OPTIONS", 7)
        # absolute-form, if the target does not begin with a slash: the authority ends at a slash or question mark.
        if text[at] != 47:
            if self.target_length > 7 and _is_lowered(text + at, b"http://", 7):
                at += 7
            elif self.target_length > 8 and _is_lowered(text + at, b"https://", 8):
                at += 8
            else:
                return False
            self.authority = at
            while at < end and text[at] != 47 and text[at] != 63:
                at += 1
            self.authority_length = at - self.authority
            if not _is_host(text + self.authority, self.authority_length):
                return False
        self.path = at
        while at < end and text[at] != 63:
            at += 1
        self.path_length = at - self.path
        self.query = at + 1 if at < end else end
        self.query_length = end - self.query
        return True

    cdef Py_ssize_t _parse_field(self, Py_ssize_t at, Py_ssize_t end) noexcept:
        """Parse the header line at `at` as the field `field_count`, which is counted if it is valid. Returns what
        `parse` returns, with the offset behind this line."""
        cdef const unsigned char *text = self.text
        cdef Field *field
        if self.field_count == MAX_FIELDS:
            return -TOO_MANY_FIELDS
        if text[at] == SP or text[at] == TAB:
            return -OBSOLETE_FOLDING
        field = &self.fields[self.field_count]
        field.name = at
        while at < end and KINDS[text[at]] & IS_TOKEN:
            at += 1
        field.name_length = at - field.name
        if at >= end:
            return 0
        if field.name_length == 0 or text[at] != COLON:
            return -INVALID_FIELD
        at += 1
        while at < end and (text[at] == SP or text[at] == TAB):
            at += 1
        field.value = at
        while at < end and KINDS[text[at]] & IS_VALUE:
            at += 1
        if end - at < 2:
            return 0 if at == end or text[at] == CR else -INVALID_FIELD
        if text[at] != CR or text[at + 1] != LF:
            return -INVALID_FIELD
        field.value_length = at - field.value
        while field.value_length > 0 and text[field.value + field.value_length - 1] in (SP, TAB):
            field.value_length -= 1
        self.field_count += 1
        return at + 2

    cdef Py_ssize_t _interpret(self) noexcept:
        """Check the fields that the server itself obeys, and set the attributes that depend on them.

        These fields are Host, Expect, Connection, Content-Length and Transfer-Encoding. Returns 0 or a `HeadError`.
        """
        cdef const unsigned char *text = self.text
        cdef Py_ssize_t index, error
        cdef Py_ssize_t transfer_encodings = 0, hosts = 0
        cdef bint close = False, keep = False
        cdef Field *field
        for index in range(self.field_count):
            field = &self.fields[index]
            error = 0
            if field.name_length == 4 and _is_lowered(text + field.name, b"host", 4):
                hosts += 1
                if not _is_host(text + field.value, field.value_length):
                    return INVALID_HOST
            elif field.name_length == 6 and _is_lowered(text + field.name, b"expect", 6):
                if field.value_length != 12 or not _is_lowered(text + field.value, b"100-continue", 12):
                    return UNKNOWN_EXPECTATION
                # HTTP/1.0 knows no interim response (RFC 9110, 10.1.1).
                self.expects_continue = self.minor_version >= 1
            elif field.name_length == 10 and _is_lowered(text + field.name, b"connection", 10):
                close = close or _has_token(text + field.value, field.value_length, b"close", 5)
                keep = keep or _has_token(text + field.value, field.value_length, b"keep-alive", 10)
            elif field.name_length == 14 and _is_lowered(text + field.name, b"content-length", 14):
                if self.has_content_length:
                    return INVALID_CONTENT_LENGTH
                self.has_content_length = True
                self.content_length = _number(text + field.value, field.value_length)
                if self.content_length < 0:
                    return INVALID_CONTENT_LENGTH
            elif field.name_length == 17 and _is_lowered(text + field.name, b"transfer-encoding", 17):
                transfer_encodings += 1
                error = _transfer_encoding_error(text + field.value, field.value_length)
                if error:
                    return error
        self.keep_alive = not close and (keep or self.minor_version >= 1)
        if transfer_encodings:
            if self.has_content_length or self.minor_version == 0:
                return AMBIGUOUS_FRAMING
            if transfer_encodings > 1:
                return INVALID_TRANSFER_ENCODING
            self.content_length = -1
        return 0

    cdef Py_ssize_t find(self, const unsigned char *name, Py_ssize_t length, Py_ssize_t after) noexcept:
        """Return the index of the next field called `name`, `length` bytes in lower case, behind the index `after`, or
        -1 if there is none. after: -1 for the first field."""
        cdef Py_ssize_t index
        for index in range(after + 1, self.field_count):
            if self.fields[index].name_length == length and _is_lowered(
                    self.text + self.fields[index].name, name, length):
                return index
        return -1

    cdef bint is_text(self, Py_ssize_t index) noexcept:
        """Return whether the value of the field at `index` is ASCII. Other values are not read: their encoding is
        unknown (RFC 9110, 5.5)."""
        cdef const unsigned char *value = self.text + self.fields[index].value
        cdef Py_ssize_t place
        for place in range(self.fields[index].value_length):
            if value[place] > 126:
                return False
        return True

    cdef str value(self, Py_ssize_t index):
        return PyUnicode_DecodeASCII(
            <const char *>self.text + self.fields[index].value, self.fields[index].value_length, NULL)


cdef inline bint _is(const unsigned char *text, const unsigned char *expected, Py_ssize_t length) noexcept nogil:
    """Return whether the first `length` bytes of both texts are equal."""
    cdef Py_ssize_t place
    for place in range(length):
        if text[place] != expected[place]:
            return False
    return True


cdef inline bint _is_lowered(const unsigned char *text, const unsigned char *lowered, Py_ssize_t length) noexcept nogil:
    """Return whether the first `length` bytes of `text`, in any case, equal `lowered`, which is in lower case."""
    cdef Py_ssize_t place
    cdef unsigned char byte
    for place in range(length):
        byte = text[place]
        if 65 <= byte <= 90:
            byte |= 32
        if byte != lowered[place]:
            return False
    return True


cdef bint _is_utf8(const unsigned char *text, Py_ssize_t length) noexcept nogil:
    """Return whether `length` bytes are UTF-8 (RFC 3629), without overlong forms and surrogates."""
    cdef Py_ssize_t place = 0, more
    cdef unsigned char first, second
    while place < length:
        first = text[place]
        place += 1
        if first < 0x80:
            continue
        # Number of continuation bytes; 0: no sequence begins with this byte.
        more = 1 if 0xC2 <= first <= 0xDF else 2 if 0xE0 <= first <= 0xEF else 3 if 0xF0 <= first <= 0xF4 else 0
        if more == 0 or length - place < more:
            return False
        second = text[place]
        if ((first == 0xE0 and second < 0xA0) or (first == 0xED and second > 0x9F) or (first == 0xF0 and second < 0x90)
                or (first == 0xF4 and second > 0x8F)):
            return False
        while more:
            if text[place] & 0xC0 != 0x80:
                return False
            place += 1
            more -= 1
    return True


cdef inline bint _is_hexadecimal(unsigned char byte) noexcept nogil:
    return 48 <= byte <= 57 or 97 <= (byte | 32) <= 102


cdef bint _is_host(const unsigned char *text, Py_ssize_t length) noexcept nogil:
    """Return whether `length` bytes have the form `uri-host [":" port]` of an http URI, with a host that is not empty
    and a port that may be (RFC 9110, 4.2.1)."""
    cdef Py_ssize_t place = 0
    if length == 0 or text[0] == COLON:
        return False
    for place in range(length):
        if not KINDS[text[place]] & IS_HOST:
            return False
        # A percent sign begins an encoded byte (RFC 3986, 2.1).
        if text[place] == 37 and (length - place < 3 or not _is_hexadecimal(text[place + 1])
                                  or not _is_hexadecimal(text[place + 2])):
            return False
    place = 0
    # An IP literal in brackets, which is not examined further, or a name or address without brackets.
    if text[0] == 91:
        while place < length and text[place] != 93:
            place += 1
        if place == length or place < 3:
            return False
        place += 1
        if place == length:
            return True
        if text[place] != COLON:
            return False
    else:
        while place < length and text[place] != COLON:
            if text[place] == 91 or text[place] == 93:
                return False
            place += 1
        if place == length:
            return True
    for place in range(place + 1, length):
        if not 48 <= text[place] <= 57:
            return False
    return True


cdef long long _number(const unsigned char *text, Py_ssize_t length) noexcept nogil:
    """Return the value of a decimal number of at most 18 digits behind leading zeros; -1 for any other text. length:
    number of bytes."""
    cdef long long number = 0
    cdef Py_ssize_t place, digits = 0
    if length == 0:
        return -1
    for place in range(length):
        if not 48 <= text[place] <= 57:
            return -1
        if digits or text[place] != 48:
            digits += 1
        if digits > MAX_DIGITS:
            return -1
        number = number * 10 + (text[place] - 48)
    return number


cdef Py_ssize_t _transfer_encoding_error(const unsigned char *text, Py_ssize_t length) noexcept nogil:
    """Return 0 for `chunked` alone, the only supported coding (RFC 9112, 6.1 and 7), and a `HeadError` otherwise.

    text: value of a Transfer-Encoding, of `length` bytes.
    """
    cdef Py_ssize_t last
    if length == 7 and _is_lowered(text, b"chunked", 7):
        return 0
    # The last coding of the list; 44 is a comma.
    last = length
    while last > 0 and text[last - 1] != 44:
        last -= 1
    while last < length and (text[last] == SP or text[last] == TAB):
        last += 1
    if length - last != 7 or not _is_lowered(text + last, b"chunked", 7):
        return INVALID_TRANSFER_ENCODING
    return INVALID_TRANSFER_ENCODING if _has_token(text, last, b"chunked", 7) else UNSUPPORTED_TRANSFER_CODING


cdef bint _has_token(const unsigned char *text, Py_ssize_t length, const unsigned char *token,
                     Py_ssize_t token_length) noexcept nogil:
    """Return whether a comma-separated list (RFC 9110, 5.6.1) contains, in any case, `token`, which is in lower case.
    length, token_length: in bytes."""
    cdef Py_ssize_t at = 0, start, end
    while at < length:
        while at < length and (text[at] == SP or text[at] == TAB or text[at] == 44):
            at += 1
        start = at
        while at < length and text[at] != 44:
            at += 1
        end = at
        while end > start and (text[end - 1] == SP or text[end - 1] == TAB):
            end -= 1
        if end - start == token_length and _is_lowered(text + start, token, token_length):
            return True
    return False
