"""The interface between the driver and the formats: writing the body of a response from rows.

The driver calls these methods with the GIL held, on the thread of the event loop. A format is a subclass of
`BodyWriter` with a plan of its own: `rows.pyx` writes JSON, `raw_rows.pyx` text and bytes.

In this folder, a `PGresult *` is borrowed and only read, except by `decrypted_rows`; rows and columns are numbered from
0; names and values are in UTF-8. The functions that do not need the GIL record a failed allocation in `out.failed`, and
the methods of the classes then raise MemoryError.
"""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport Oid, PGresult

# One column of a result: its name, NUL-terminated, and the OID of its type.
cdef struct Described:
    const char *name
    Oid type


cdef class RowPlan:
    """How the rows of one result description are written. Immutable; executions share it."""

    # Number of columns of the result, and their descriptions.
    cdef int count
    cdef Described *described
    # Owns the memory to which the pointers of the plan point.
    cdef list _allocations

    # Returns the address of the bytes of `memory`, which are followed by a NUL and live as long as the plan, because
    # the plan refers to `memory`. A caller that writes to them must pass an object that no other code has.
    cdef char *keep(self, bytes memory) except NULL
    # Copies the description of the columns of the result into the plan. Has to be called before `keep`; returns 0.
    cdef int describe(self, const PGresult *result) except -1
    # Returns whether a result has the same number, types and names of columns as the result of this plan.
    cdef bint fits(self, const PGresult *result) noexcept


cdef class BodyWriter:
    """The body writer of one endpoint statement, shared by all its requests. It keeps the plan of the last result."""

    # False: only the first row is written.
    cdef bint _is_set
    cdef RowPlan _plan
    # Expected types (OID; 0: any) and names (bytes) of the columns; None: no expectation.
    cdef tuple _types
    cdef tuple _names
    # The driver refuses a result of more than one row, because the body has no separators of rows.
    cdef bint _one_row

    # Returns the plan for results described like this one: the cached one as long as it fits. Raises ValueError if the
    # columns do not fit the statement.
    cdef RowPlan plan_for(self, const PGresult *result)
    # Returns 0, or raises ColumnsChangedError if the columns are not the expected ones.
    cdef int _check(self, const PGresult *result) except -1
    # Returns a new plan of the class of the format, with the description of the result.
    cdef RowPlan new_plan(self, const PGresult *result)
    # Writes what precedes the first row to `out`; returns 0. `plan` is None if the statement gave no result at all.
    cdef int begin(self, RowPlan plan, Buffer out) except -1
    # Appends row number `row` of the result; `index`: number of rows already written to this body. Returns 1 if the
    # value of a scalar is SQL NULL (nothing is written then), else 0.
    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1
    # Writes what follows the last row; returns 0. `plan` is None if the statement gave no result at all. rows: number
    # of rows for which `row` was called.
    cdef int end(self, RowPlan plan, Buffer out, Py_ssize_t rows) except -1
    # Like `end`, for one statement of several. `result`: its last result, which contains the command tag.
    cdef int complete(self, RowPlan plan, Buffer out, PGresult *result, Py_ssize_t rows) except -1
