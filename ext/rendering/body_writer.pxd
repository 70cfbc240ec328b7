"""The interface between the driver and the formats: writing the body of a response from rows.

The driver calls these methods with the GIL held, on the thread of the event loop. A format is a subclass of
`BodyWriter` with a plan of its own: `rows.pyx` writes JSON, `raw_rows.pyx` text and bytes.
"""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport Oid, PGresult

# One column of a result.
cdef struct Described:
    const char *name
    Oid type


cdef class RowPlan:
    """How the rows of one result description are written. Immutable; executions share it."""

    cdef int count
    cdef Described *described
    # Owns the memory to which the pointers of the plan point.
    cdef list _allocations

    # Copies `memory` into a NUL-terminated allocation that lives as long as the plan. Returns its address.
    cdef char *keep(self, bytes memory) except NULL
    # Copies the description of the columns of the result into the plan.
    cdef int describe(self, const PGresult *result) except -1
    # Returns whether a result has the same number, types and names of columns as the result of this plan.
    cdef bint fits(self, const PGresult *result) noexcept


cdef class BodyWriter:
    """The body writer of one endpoint statement, shared by all its requests. It keeps the plan of the last result."""

    # False: only the first row is written.
    cdef bint _is_set
    cdef RowPlan _plan
    # Expected types and names of the columns; None: no expectation.
    cdef tuple _types
    cdef tuple _names
    # The driver refuses a result of more than one row, because the body has no separators of rows.
    cdef bint _one_row

    # Returns the plan for results described like this one: the cached one as long as it fits. Raises ValueError if the
    # columns do not fit the statement.
    cdef RowPlan plan_for(self, const PGresult *result)
    # Raises ColumnsChangedError if the columns are not the expected ones.
    cdef int _check(self, const PGresult *result) except -1
    # Returns a new plan of the class of the format, with the description of the result.
    cdef RowPlan new_plan(self, const PGresult *result)
    # Writes what precedes the first row. `plan` is None if the statement gave no result at all.
    cdef int begin(self, RowPlan plan, Buffer out) except -1
    # Appends row number `row` of the result; `index`: number of rows already written to this body. Returns 1 if the
    # value of a scalar is SQL NULL (nothing is written then), else 0.
    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1
    # Writes what follows the last row. `plan` is None if the statement gave no result at all.
    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1
    # Like `end`, for one statement of several. `result`: its last result, which contains the command tag.
    cdef int complete(self, RowPlan plan, Buffer out, PGresult *result, Py_ssize_t rows) except -1
