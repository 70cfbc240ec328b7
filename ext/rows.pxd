"""A PGresult → the bytes of a response body. The driver calls these with the GIL held, on the event-loop thread."""

from rowcall.ext.buffer cimport Buffer
from rowcall.ext.codecs cimport Codec, Codecs
from rowcall.ext.libpq cimport Oid, PGresult
from rowcall.ext.values cimport Scratch

cdef enum Shape:
    # A scalar's text as it is.
    SCALAR_TEXT
    # A scalar array: JSON.
    SCALAR_JSON
    # A scalar bytea: its bytes.
    SCALAR_BYTES
    # A row without column names: the bare JSON value.
    ROW_VALUE
    ROW_OBJECT

cdef struct Column:
    const Codec *codec
    # `{"first":` or `,"other":`; NULL in a row without names.
    const char *key
    Py_ssize_t key_length
    # What the result called the column.
    const char *name
    Oid type


cdef class RowPlan:
    """How the rows of one result description are written. Immutable; any number of requests may hold it."""

    cdef Shape shape
    cdef int count
    cdef Column *columns
    # Keep what the structs point to.
    cdef Codecs _codecs
    cdef list _allocations

    # Space owned by the plan that holds these bytes, ended by a NUL.
    cdef char *_keep(self, bytes memory) except NULL


cdef class Renderer:
    """The body writer of one endpoint statement, shared by all its requests."""

    cdef Codecs _codecs
    cdef bint _is_scalar
    cdef bint _is_set
    cdef bint _is_named
    cdef list _keys
    cdef RowPlan _plan
    cdef Scratch _scratch

    # The plan for results described like this one: the cached one while count, types and names of columns stay.
    # ValueError when the number of columns does not fit the statement.
    cdef RowPlan plan_for(self, const PGresult *result)
    # What precedes the first row.
    cdef int begin(self, Buffer out) except -1
    # Appends row number `row` of the result; `index` counts the rows already written to this body.
    # 1 when the value of a scalar is SQL NULL (nothing is written then), else 0.
    cdef int row(self, RowPlan plan, Buffer out, const PGresult *result, int row, Py_ssize_t index) except -1
    # What follows the last row.
    cdef int end(self, Buffer out, Py_ssize_t rows) except -1

    cdef bint _fits(self, RowPlan plan, const PGresult *result) noexcept
    cdef RowPlan _new_plan(self, const PGresult *result)
    cdef Shape _shape(self, int count, const Codec *first) noexcept
    cdef list _keys_for(self, list names)
