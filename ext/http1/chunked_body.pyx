"""Decodes a chunked message body (RFC 9112, 7.1).

The decoder is as strict as the parser of the head: sizes are hexadecimal digits, lines end with CRLF. Chunk extensions
are checked and ignored, trailer fields are checked and dropped (RFC 9110, 6.5.1). The length of both is limited here,
because the limits of the head and of the body do not count them.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE

cdef enum:
    CR = 13
    LF = 10
    # Maximum number of bytes of the line of a size, and of all trailer lines.
    MAX_LINE = 4096
    MAX_TRAILERS = 16384
    # Hexadecimal digits whose number fits into 63 bits.
    MAX_SIZE_DIGITS = 15

cdef enum State:
    SIZE          # the first digit of a size is expected
    SIZE_DIGITS
    EXTENSION     # behind the size, up to the end of the line
    SIZE_LF
    DATA
    DATA_CR
    DATA_LF
    TRAILER       # the start of a trailer line, or of the empty line that ends the body
    TRAILER_NAME
    TRAILER_VALUE
    TRAILER_LF
    END_LF
    DONE


cdef class ChunkedBody:
    """The decoder of the body of one request.

    complete: the end of the body was read. broken: the body is invalid, and `decode` reads no further byte.
    """

    cdef Py_ssize_t decode(self, bytes data, Py_ssize_t at, list pieces) except -1:
        """Decode `data` from the offset `at` and append the content to `pieces`, as bytes.

        Returns the offset of the first byte that was not read: after the body, at the error, or at the end of `data`.
        """
        cdef const unsigned char *text = <const unsigned char *>PyBytes_AS_STRING(data)
        cdef Py_ssize_t end = PyBytes_GET_SIZE(data)
        cdef Py_ssize_t size
        while at < end and not self.complete and not self.broken:
            if self.state == DATA:
                size = end - at if end - at < self.remaining else <Py_ssize_t>self.remaining
                pieces.append(data if size == PyBytes_GET_SIZE(data) else data[at:at + size])
                at += size
                self.remaining -= size
                if self.remaining == 0:
                    self.state = DATA_CR
                continue
            if not self._step(text[at]):
                self.broken = True
                break
            at += 1
        return at

    cdef bint _step(self, unsigned char byte) noexcept:
        """Read one byte that is not content, and change the state. Returns False if the byte is invalid at this
        place."""
        cdef int digit
        if self.state == SIZE or self.state == SIZE_DIGITS:
            digit = _hexadecimal(byte)
            if digit >= 0:
                self.line_bytes += 1
                self.remaining = self.remaining * 16 + digit
                self.state = SIZE_DIGITS
                return self.line_bytes <= MAX_SIZE_DIGITS
            if self.state == SIZE:
                return False
            if byte == CR:
                self.state = SIZE_LF
                return True
            # White space in front of an extension is refused: senders must not generate it (RFC 9112, 7.1.1).
            self.state = EXTENSION
            return byte == 59  # a semicolon
        if self.state == EXTENSION:
            self.line_bytes += 1
            if byte == CR:
                self.state = SIZE_LF
                return True
            return self.line_bytes <= MAX_LINE and _is_text(byte)
        if self.state == SIZE_LF:
            # A chunk of size 0 is the last one.
            self.line_bytes = 0
            self.state = DATA if self.remaining else TRAILER
            return byte == LF
        if self.state == DATA_CR:
            self.state = DATA_LF
            return byte == CR
        if self.state == DATA_LF:
            self.state = SIZE
            return byte == LF
        self.trailer_bytes += 1
        if self.trailer_bytes > MAX_TRAILERS:
            return False
        if self.state == TRAILER:
            if byte == CR:
                self.state = END_LF
                return True
            self.state = TRAILER_NAME
            return _is_token(byte)
        if self.state == TRAILER_NAME:
            if byte == 58:  # a colon
                self.state = TRAILER_VALUE
                return True
            return _is_token(byte)
        if self.state == TRAILER_VALUE:
            if byte == CR:
                self.state = TRAILER_LF
                return True
            return _is_text(byte)
        if self.state == TRAILER_LF:
            self.state = TRAILER
            return byte == LF
        # END_LF: the LF of the empty line behind the trailers.
        self.state = DONE
        self.complete = byte == LF
        return self.complete


cdef inline bint _is_text(unsigned char byte) noexcept:
    """Return whether a byte may be part of an extension or of the value of a trailer: no control character but tab."""
    return byte == 9 or (byte >= 32 and byte != 127)


cdef inline bint _is_token(unsigned char byte) noexcept:
    """Return whether a byte may be part of a header name (RFC 9110, 5.6.2)."""
    return (48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122
            or byte in (33, 35, 36, 37, 38, 39, 42, 43, 45, 46)
            or 94 <= byte <= 96 or byte == 124 or byte == 126)


cdef inline int _hexadecimal(unsigned char byte) noexcept:
    """Return the value of a hexadecimal digit, or -1 for any other byte."""
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else -1
