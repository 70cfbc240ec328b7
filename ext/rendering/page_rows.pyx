"""Pages: rows without their hidden columns, and behind them the positions of the first and the last row.

Hidden columns follow the visible columns: the position of the row as text, and, if the rows are counted, the number of
all rows. A row beyond the page has an empty position, or comes after the last row of the page. The position is NULL in
a row that exists only to transport the number of all rows; such a row is not written.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport PGresult, pq
from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan

MARK = b"\x01"
cdef int TEXT_OID = 25


cdef class PagePlan(RowPlan):
    pass


cdef class PageWriter(BodyWriter):
    """Writes one page of the rows of `inner`, and the data for links to its neighbours. See `page_rows.pyi`."""

    def __init__(self, inner: BodyWriter, limit: int, counted: bool) -> None:
        self._inner = inner
        self._is_set = inner._is_set
        self._limit = limit
        self._counted = counted

    def expect(self, types: tuple, names: tuple | None = None, one_row: bool = False) -> None:
        self._inner.expect((*types, *(TEXT_OID,) * (1 + self._counted)), None, one_row)

    cdef RowPlan plan_for(self, const PGresult *result):
        """Return a new plan for each result, because a `PagePlan` collects the data of one page."""
        cdef PagePlan page = PagePlan()
        page.inner = self._inner.plan_for(result)
        page.last = Buffer()
        return page

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        cdef PagePlan page = <PagePlan?>plan if plan is not None else None
        return self._inner.begin(None if page is None else page.inner, out)

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        """Write a row, and record its position. A row whose position is NULL, or that is beyond the page, is not
        written; the latter is recorded as `more`. If the rows are counted, record the number of all rows. Returns 0.
        index: not used, because it counts rows that are not written, too."""
        cdef PagePlan page = <PagePlan?>plan
        # Of the position; that of the number of all rows follows.
        cdef int column = pq.nfields(result) - 1 - self._counted
        cdef const char *position
        cdef int size
        if self._counted and page.total is None:
            page.total = PyBytes_FromStringAndSize(
                pq.getvalue(result, row, column + 1), pq.getlength(result, row, column + 1))
        if pq.getisnull(result, row, column):
            return 0
        position = pq.getvalue(result, row, column)
        size = pq.getlength(result, row, column)
        if size == 0 or page.written >= self._limit:
            page.more = True
            return 0
        self._inner.row(page.inner, out, result, row, page.written)
        page.written += 1
        if page.first is None:
            page.first = PyBytes_FromStringAndSize(position, size)
        page.last.clear()
        if page.last.append(position, size) < 0:
            raise MemoryError("no memory for the position of a row")
        return 0

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        cdef PagePlan page = <PagePlan?>plan if plan is not None else None
        cdef bytes about
        if page is None:
            self._inner.end(None, out, 0)
            # As below, for a page without rows.
            about = b"\x01\x010\x01\x01\x01"
        else:
            self._inner.end(page.inner, out, page.written)
            about = MARK + MARK.join((
                b"more" if page.more else b"", b"%d" % page.written, page.total or b"", page.first or b"",
                page.last.take(),
            ))
        if out.append(PyBytes_AS_STRING(about), PyBytes_GET_SIZE(about)) < 0:
            raise MemoryError("no memory for the response body")
        return 0
