"""What writes the body of a response from rows, whatever the format: the interface between the driver and a format.

The driver calls these with the GIL held, on the event-loop thread. A format is a subclass of `BodyWriter` with a plan
of its own: `rows.pyx` writes JSON, `raw_rows.pyx` text and bytes.
"""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport Oid, PGresult

cdef struct Described:
    # What the result called the column.
    const char *name
    Oid type


cdef class RowPlan:
    """How the rows of one result description are written. Immutable; any number of requests may hold it."""

    cdef int count
    cdef Described *described
    # Keeps what the structs point to.
    cdef list _allocations

    # Space owned by the plan that holds these bytes, ended by a NUL.
    cdef char *keep(self, bytes memory) except NULL
    # The plan's own copy of what the result says about its columns.
    cdef int describe(self, const PGresult *result) except -1
    # Whether a result is described like the one this was made for: count, types and names of columns.
    cdef bint fits(self, const PGresult *result) noexcept


cdef class BodyWriter:
    """The body writer of one endpoint statement, shared by all its requests."""

    # False: only the first row counts.
    cdef bint _is_set
    cdef RowPlan _plan
    # What the columns of results have to be; None: nobody has said so.
    cdef tuple _types
    cdef tuple _names
    # More than one row is another shape: bodies of one row have nothing between rows.
    cdef bint _one_row

    # The plan for results described like this one: the cached one as long as it fits.
    # ValueError when the columns do not fit the statement.
    cdef RowPlan plan_for(self, const PGresult *result)
    # ColumnsChangedError when the columns are not those that are expected.
    cdef int _check(self, const PGresult *result) except -1
    # A new plan of the format's own class, already described.
    cdef RowPlan new_plan(self, const PGresult *result)
    # What precedes the first row. Without rows `plan` is None where the statement gave no result at all.
    cdef int begin(self, RowPlan plan, Buffer out) except -1
    # Appends row number `row` of the result; `index` counts the rows already written to this body.
    # 1 when the value of a scalar is SQL NULL (nothing is written then), else 0.
    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1
    # What follows the last row.
    cdef int end(self, Buffer out, Py_ssize_t rows) except -1
    # The same for one statement of several, given its last result, which tells what the statement has done.
    cdef int complete(self, Buffer out, PGresult *result, Py_ssize_t rows) except -1
