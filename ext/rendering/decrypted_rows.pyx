"""Decrypts values before another writer writes them.

The values are replaced in the result itself, so that every format receives a row as if the server had sent plain text.
An endpoint that decrypts nothing uses the writer of its format directly.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport PGresult, pq


cdef class DecryptingWriter(BodyWriter):
    """Decrypts values before `inner` writes them. See `decrypted_rows.pyi`."""

    def __init__(self, inner: BodyWriter, openers: tuple) -> None:
        self._inner = inner
        self._is_set = inner._is_set
        self._one_row = inner._one_row
        self._openers = openers

    def expect(self, types: tuple, names: tuple | None = None, one_row: bool = False) -> None:
        self._inner.expect(types, names, one_row)
        self._one_row = one_row

    cdef RowPlan plan_for(self, const PGresult *result):
        return self._inner.plan_for(result)

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        return self._inner.begin(plan, out)

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        """Decrypt the values of a row within `result`, and let `inner` write it. Raises what a decrypting function and
        `inner` raise."""
        cdef int column
        cdef int count = min(<int>len(self._openers), pq.nfields(result))
        for column in range(count):
            opener = self._openers[column]
            if opener is not None and not pq.getisnull(result, row, column):
                self._open(opener, <PGresult *>result, row, column)
        return self._inner.row(plan, out, result, row, index)

    cdef int _open(self, object opener, PGresult *result, int row, int column) except -1:
        cdef bytes sealed = PyBytes_FromStringAndSize(
            pq.getvalue(result, row, column), pq.getlength(result, row, column))
        cdef bytes opened = opener(sealed)
        if opened is sealed:
            # Not encrypted, so the result has the right value already.
            return 0
        # libpq copies the value into memory of the result.
        if not pq.setvalue(result, row, column, PyBytes_AS_STRING(opened), <int>PyBytes_GET_SIZE(opened)):
            raise MemoryError("no memory for a decrypted value")
        return 0

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        return self._inner.end(plan, out, rows)

    cdef int complete(self, RowPlan plan, Buffer out, PGresult *result, Py_ssize_t rows) except -1:
        return self._inner.complete(plan, out, result, rows)
