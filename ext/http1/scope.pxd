from rowcall.ext.http1.request_head cimport RequestHead


cdef class Headers:
    cdef RequestHead head

    cdef object first(self, str name)
    cdef str _name(self, Py_ssize_t index)


cdef class Scope:
    cdef RequestHead head
    cdef readonly str client, server
    cdef str _method
    cdef str _path
    cdef str _query
    cdef Headers _headers
