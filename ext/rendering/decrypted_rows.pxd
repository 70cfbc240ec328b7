"""A writer that decrypts values before another writer writes them."""

from rowcall.ext.rendering.body_writer cimport BodyWriter
from rowcall.ext.base.libpq cimport PGresult


cdef class DecryptingWriter(BodyWriter):
    cdef BodyWriter _inner
    # For each column a function that takes a value (bytes) and returns the decrypted one, or the same object for a
    # value that is not encrypted; None: the column is not decrypted.
    cdef tuple _openers

    # Replaces the value in a row and column of the result, which is not NULL, by what `opener` returns; returns 0.
    cdef int _open(self, object opener, PGresult *result, int row, int column) except -1
