"""What the steps of a request see of its head."""

from rowcall.ext.http1.request_head cimport RequestHead


cdef class Headers:
    cdef RequestHead head

    # Returns the first ASCII value (str) of the header `name` (lower case); None if there is none.
    cdef object first(self, str name)
    # Returns the name, in lower case, of the header at `index`, from 0.
    cdef str _name(self, Py_ssize_t index)
    # Returns the value of the header at `index`, from 0, read as UTF-8 with U+FFFD for invalid bytes.
    cdef str _decode_value(self, Py_ssize_t index)


cdef class Scope:
    cdef RequestHead head
    cdef readonly str client, server
    # Each of these is None until it is asked for.
    cdef str _method
    cdef str _path
    cdef str _query
    cdef Headers _headers
