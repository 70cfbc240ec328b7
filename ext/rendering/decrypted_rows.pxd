"""A writer that decrypts values before another writer writes them."""

from rowcall.ext.rendering.body_writer cimport BodyWriter
from rowcall.ext.base.libpq cimport PGresult


cdef class DecryptingWriter(BodyWriter):
    cdef BodyWriter _inner
    # For each column a function that decrypts its values, or None.
    cdef tuple _openers

    # Replaces a value in the result by its decrypted text.
    cdef int _open(self, object opener, PGresult *result, int row, int column) except -1
