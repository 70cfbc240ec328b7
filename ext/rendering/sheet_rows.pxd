"""Rows as the rows of a worksheet (SpreadsheetML)."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan

cdef enum CellKind:
    CELL_TEXT
    CELL_NUMBER
    CELL_BOOLEAN
    CELL_DATE

# How the cells of one column are written. The texts belong to the plan; lengths are in bytes.
cdef struct Cell:
    CellKind kind
    # What precedes the number of the row: `<c r="AB`.
    const char *opening
    Py_ssize_t opening_length
    # What is between the number of the row and the value: `" s="2"><v>`.
    const char *middle
    Py_ssize_t middle_length


cdef class SheetPlan(RowPlan):
    """How the cells of one result description are written."""

    # One for each column of the result.
    cdef Cell *cells


cdef class SheetRows(BodyWriter):
    # The element of the row of titles, in UTF-8.
    cdef bytes _head
    # Number of columns that a result must have.
    cdef Py_ssize_t _count
    # Attributes of cells, as `style_of` returns them.
    cdef bytes _date_style
    cdef bytes _number_style
