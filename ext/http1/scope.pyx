"""The head of a request for its steps: method, path, query and headers, each decoded when it is first read.

The attributes are those of granian's RSGI scope, so that no step knows which engine serves it.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeASCII, PyUnicode_DecodeUTF8

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef dict METHODS = {text.encode(): text for text in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")}


@cython.freelist(64)
cdef class Headers:
    """The headers of one request. Every method takes and returns names in lower case.

    Headers whose value is not ASCII are left out, with three exceptions: `decoded_all` and `decoded_items` return them,
    `in` finds them, so that a step can refuse them, and `as_json` returns None if there is one.
    """

    cdef object first(self, str name):
        cdef Py_ssize_t size = 0, index = -1
        cdef const unsigned char *text = <const unsigned char *>PyUnicode_AsUTF8AndSize(name, &size)
        while True:
            index = self.head.find(text, size, index)
            if index < 0:
                return None
            if self.head.is_text(index):
                return self.head.value(index)

    def get(self, str name not None, default=None):
        """Return the first ASCII value of a header, or `default` if there is none."""
        value = self.first(name)
        return default if value is None else value

    def get_all(self, str name not None):
        """Return the values of a header that are ASCII, in the order in which they were sent; an empty list without
        the header."""
        cdef Py_ssize_t size = 0, index = -1
        cdef const unsigned char *text = <const unsigned char *>PyUnicode_AsUTF8AndSize(name, &size)
        values = []
        while True:
            index = self.head.find(text, size, index)
            if index < 0:
                return values
            if self.head.is_text(index):
                values.append(self.head.value(index))

    def decoded_all(self, str name not None):
        """Return all values of a header, also those that are not ASCII, read as UTF-8 with U+FFFD for invalid bytes, in
        the order in which they were sent; an empty list without the header.

        The headers of granian do not have this method.
        """
        cdef Py_ssize_t size = 0, index = -1
        cdef const unsigned char *text = <const unsigned char *>PyUnicode_AsUTF8AndSize(name, &size)
        values = []
        while True:
            index = self.head.find(text, size, index)
            if index < 0:
                return values
            values.append(self._decode_value(index))

    def items(self):
        """Return the pairs of name and value in the order in which they were sent, without values that are not
        ASCII."""
        cdef Py_ssize_t index
        return [
            (self._name(index), self.head.value(index))
            for index in range(self.head.field_count)
            if self.head.is_text(index)
        ]

    def decoded_items(self):
        """Return all pairs, also those that are not ASCII, with values read as UTF-8; invalid bytes become U+FFFD.

        The headers of granian do not have this method.
        """
        cdef Py_ssize_t index
        return [(self._name(index), self._decode_value(index)) for index in range(self.head.field_count)]

    def as_json(self):
        """Return the headers as a JSON object of names in lower case and values, in ASCII bytes.

        Returns None if a name is repeated, a name is `cookie`, or a value is not ASCII: the caller has to treat these.
        The headers of granian do not have this method.
        """
        cdef RequestHead head = self.head
        cdef Py_ssize_t index, other, place, size = 2
        cdef const unsigned char *text = head.text
        cdef const unsigned char *source
        cdef unsigned char *target
        cdef unsigned char byte
        cdef bytes result
        if head.find(b"cookie", 6, -1) >= 0:
            return None
        for index in range(head.field_count):
            if not head.is_text(index):
                return None
            for other in range(index):
                if (head.fields[other].name_length == head.fields[index].name_length
                        and _equal_names(head, other, index)):
                    return None
            # Quotes, colon and comma; each byte of the value may need an escape.
            size += head.fields[index].name_length + 2 * head.fields[index].value_length + 6
        result = PyBytes_FromStringAndSize(NULL, size)
        target = <unsigned char *>PyBytes_AS_STRING(result)
        place = 0
        target[place] = 123  # {
        place += 1
        for index in range(head.field_count):
            if index:
                target[place] = 44  # ,
                place += 1
            target[place] = 34  # "
            place += 1
            source = text + head.fields[index].name
            for other in range(head.fields[index].name_length):
                target[place] = _to_lowercase(source[other])
                place += 1
            target[place] = 34
            target[place + 1] = 58  # :
            target[place + 2] = 34
            place += 3
            source = text + head.fields[index].value
            for other in range(head.fields[index].value_length):
                byte = source[other]
                if byte == 34 or byte == 92 or byte == 9:  # " and \\ and tab, the only control character of a value
                    target[place] = 92
                    place += 1
                    byte = 116 if byte == 9 else byte
                target[place] = byte
                place += 1
            target[place] = 34
            place += 1
        target[place] = 125  # }
        return result[:place + 1]

    def keys(self):
        """Return the names of the headers with ASCII values, each once, in the order in which they were sent."""
        return list(dict.fromkeys(name for name, _ in self.items()))

    def values(self):
        return [value for _, value in self.items()]

    def __contains__(self, str name not None):
        cdef Py_ssize_t size = 0
        cdef const unsigned char *text = <const unsigned char *>PyUnicode_AsUTF8AndSize(name, &size)
        return self.head.find(text, size, -1) >= 0

    def __getitem__(self, str name not None):
        value = self.first(name)
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    cdef str _decode_value(self, Py_ssize_t index):
        return PyUnicode_DecodeUTF8(
            <const char *>self.head.text + self.head.fields[index].value, self.head.fields[index].value_length,
            b"replace")

    cdef str _name(self, Py_ssize_t index):
        # A name is a token, so it is ASCII.
        name = PyUnicode_DecodeASCII(
            <const char *>self.head.text + self.head.fields[index].name, self.head.fields[index].name_length, NULL)
        return name.lower()


@cython.freelist(64)
cdef class Scope:
    """The head of one request and the addresses of its connection.

    client: address of the peer as `host:port`, empty over a Unix socket. server: address of the listener as
    `host:port`, or the path of the Unix socket.
    """

    proto = "http"
    rsgi_version = "1.6"
    scheme = "http"

    @property
    def http_version(self):
        return "1.1" if self.head.minor_version else "1"

    @property
    def method(self):
        cdef bytes method
        if self._method is None:
            method = PyBytes_FromStringAndSize(<const char *>self.head.text + self.head.method, self.head.method_length)
            known = METHODS.get(method)
            self._method = method.decode("ascii") if known is None else known
        return self._method

    @property
    def path(self):
        """The path, percent-decoded: bytes that are no UTF-8 become U+FFFD, and an empty path becomes `/`."""
        if self._path is None:
            self._path = _decode_path(self.head.text + self.head.path, self.head.path_length)
        return self._path

    @property
    def encoded_path(self):
        """The path as it was sent, percent-encoded: `/` for an empty one."""
        if self.head.path_length == 0:
            return "/"
        return PyUnicode_DecodeUTF8(
            <const char *>self.head.text + self.head.path, self.head.path_length, b"replace")

    @property
    def query_string(self):
        """The query as it was sent (not percent-decoded), without the question mark; empty without a query."""
        if self._query is None:
            self._query = PyUnicode_DecodeUTF8(
                <const char *>self.head.text + self.head.query, self.head.query_length, b"replace")
        return self._query

    @property
    def authority(self):
        """The authority of a target in absolute form (RFC 9112, 3.2.2); None for a target in any other form."""
        if self.head.authority_length == 0:
            return None
        return PyUnicode_DecodeASCII(
            <const char *>self.head.text + self.head.authority, self.head.authority_length, NULL)

    @property
    def head_sizes(self):
        """Bytes of the request line and of all header lines as they were sent, with line ends, and number of header
        lines. The scopes of granian do not have this."""
        return self.head.lines - self.head.method, self.head.lines_length, self.head.field_count

    @property
    def headers(self):
        if self._headers is None:
            self._headers = Headers.__new__(Headers)
            self._headers.head = self.head
        return self._headers


cdef inline unsigned char _to_lowercase(unsigned char byte) noexcept:
    return byte + 32 if 65 <= byte <= 90 else byte


cdef bint _equal_names(RequestHead head, Py_ssize_t first, Py_ssize_t second) noexcept:
    """Return whether two header names of the same length are equal in any case. first, second: indexes of the fields,
    from 0."""
    cdef const unsigned char *one = head.text + head.fields[first].name
    cdef const unsigned char *other = head.text + head.fields[second].name
    cdef Py_ssize_t place
    for place in range(head.fields[first].name_length):
        if _to_lowercase(one[place]) != _to_lowercase(other[place]):
            return False
    return True


cdef str _decode_path(const unsigned char *text, Py_ssize_t length):
    """Return the percent-decoded path; `/` for an empty one. A percent sign without two digits stays as it is, and
    bytes that are not UTF-8 become U+FFFD. text: `length` bytes."""
    cdef Py_ssize_t place = 0, out = 0
    cdef int high, low
    cdef bytearray decoded
    if length == 0:
        return "/"
    # Most paths have no percent sign, and need no copy.
    while place < length and text[place] != 37:
        place += 1
    if place == length:
        return PyUnicode_DecodeUTF8(<const char *>text, length, b"replace")
    decoded = bytearray(length)
    place = 0
    while place < length:
        high = low = -1
        if text[place] == 37 and place + 2 < length:
            high = _hexadecimal(text[place + 1])
            low = _hexadecimal(text[place + 2])
        if high >= 0 and low >= 0:
            decoded[out] = high * 16 + low
            place += 3
        else:
            decoded[out] = text[place]
            place += 1
        out += 1
    return decoded[:out].decode("utf-8", "replace")


cdef inline int _hexadecimal(unsigned char byte) noexcept:
    """Return the value of a hexadecimal digit, or -1 for any other byte."""
    if 48 <= byte <= 57:
        return byte - 48
    byte |= 32
    return byte - 87 if 97 <= byte <= 102 else -1
