"""Measures the time that another writer needs for rows. An endpoint without timing uses that writer directly."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.clock cimport now
from rowcall.ext.base.libpq cimport PGresult, pq
from rowcall.ext.rendering.rows cimport JsonPlan, Renderer
from rowcall.ext.rendering.values cimport render


cdef class TimedPlan(RowPlan):
    pass


cdef class TimedWriter(BodyWriter):
    """Writes the output of `inner`. `TimedPlan.seconds` is the time that `inner` has needed for the rows of a
    result."""

    def __init__(self, inner: BodyWriter) -> None:
        self._inner = inner
        self._is_set = inner._is_set
        self._one_row = inner._one_row

    def expect(self, types: tuple, names: tuple | None = None, one_row: bool = False) -> None:
        self._inner.expect(types, names, one_row)
        self._one_row = one_row

    cdef RowPlan plan_for(self, const PGresult *result):
        """Return a new plan for each result, because a `TimedPlan` adds up the time of one result."""
        cdef TimedPlan plan = TimedPlan()
        plan.inner = self._inner.plan_for(result)
        return plan

    cdef int begin(self, RowPlan plan, Buffer out) except -1:
        cdef TimedPlan timed = <TimedPlan?>plan if plan is not None else None
        return self._inner.begin(None if timed is None else timed.inner, out)

    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1:
        # Only rows are measured: the beginning and the end of a body are a few bytes.
        cdef TimedPlan timed = <TimedPlan?>plan
        cdef double began = now()
        cdef int outcome = self._inner.row(timed.inner, out, result, row, index)
        timed.seconds += now() - began
        return outcome

    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1:
        cdef TimedPlan timed = <TimedPlan?>plan if plan is not None else None
        return self._inner.end(None if timed is None else timed.inner, out, rows)


def render_column(renderer: Renderer, pgresult_ptr: int, column: int) -> int:
    """Render the values of one column of a finished result as JSON, without keys, for measurements; return the
    number of bytes. A NULL writes nothing.

    pgresult_ptr: address of the PGresult, which stays that of the caller. column: its number, from 0. Raises IndexError
    if the renderer writes no such column, and what `render_result` raises for other columns than expected.
    """
    cdef const PGresult *result = <const PGresult *><size_t>pgresult_ptr
    cdef JsonPlan plan = <JsonPlan?>renderer.plan_for(result)
    cdef Buffer out = Buffer()
    cdef int row
    cdef const char *text
    if not 0 <= column < plan.shown:
        raise IndexError(f"there is no column {column}")
    for row in range(pq.ntuples(result)):
        text = pq.getvalue(result, row, column)
        if not pq.getisnull(result, row, column):
            render(
                plan.columns[column].codec, plan.columns[column].codec.kind, out, renderer._scratch, text,
                text + pq.getlength(result, row, column), 0,
            )
    return len(out.take())
