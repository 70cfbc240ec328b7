"""Opens values before another writer writes them."""

from rowcall.ext.rendering.body_writer cimport BodyWriter
from rowcall.ext.base.libpq cimport PGresult


cdef class DecryptingWriter(BodyWriter):
    cdef BodyWriter _inner
    # One for each column: None where the value stays as it is.
    cdef tuple _openers

    cdef int _open(self, object opener, PGresult *result, int row, int column) except -1
