"""One JSON object for several statements: each adds its key, and either its rows or the number of rows it has changed
(sql-files-23, sql-files-24). `service.response` closes the object."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.string cimport strlen, strncmp

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport PGresult, pq

from rowcall.ext.base.buffer import escape

# The commands whose tag contains the number of changed rows.
cdef const char **COUNTED = [b"INSERT", b"UPDATE", b"DELETE", b"MERGE"]


def key_prefix(key: bytes, first: bool) -> bytes:
    """Return the key and punctuation in front of a value: `{"key":` or `,"key":`. key: UTF-8, not escaped. first: the
    key is the first one of its object."""
    return (b'{"' if first else b',"') + escape(key) + b'":'


cdef class NamedRows(BodyWriter):
    """Writes the output of `inner` behind a key. If `inner` writes no set, a result without rows is null. prefix: the
    key, as `key_prefix` returns it."""

    def __init__(self, inner: BodyWriter, prefix: bytes) -> None:
        self._inner = inner
        self._prefix = prefix
        self._is_set = inner._is_set

    cdef RowPlan plan_for(self, const PGresult *result):
        return self._inner.plan_for(result)

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        append(out, self._prefix)
        return self._inner.begin(plan, out)

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        return self._inner.row(plan, out, result, row, index)

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        if rows == 0 and not self._is_set:
            append(out, b"null")
        return self._inner.end(plan, out, rows)


cdef class AffectedRows(BodyWriter):
    """Writes, behind a key, the number of rows that an INSERT, UPDATE, DELETE or MERGE has changed, or -1 for any other
    command. Rows are dropped. prefix: the key, as `key_prefix` returns it."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        return append(out, self._prefix)

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        return 0

    cdef int complete(self, RowPlan plan, Buffer out, PGresult *result, Py_ssize_t rows) except -1:
        cdef const char *tag = pq.cmdStatus(result)
        cdef int index
        for index in range(4):
            if strncmp(tag, COUNTED[index], strlen(COUNTED[index])) == 0:
                return append(out, <bytes>pq.cmdTuples(result))
        return append(out, b"-1")


cdef int append(Buffer out, bytes text) except -1:
    """Append `text` unchanged; return 0. Raises MemoryError."""
    if out.append(PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)) < 0:
        raise MemoryError("no memory for the response body")
    return 0
