"""Rows as the rows of a worksheet (SpreadsheetML)."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan

cdef enum CellKind:
    CELL_TEXT
    CELL_NUMBER
    CELL_BOOLEAN
    CELL_DATE

cdef struct Cell:
    CellKind kind
    # `<c r="AB`, in front of the row's number.
    const char *opening
    Py_ssize_t opening_length
    # Behind the number, up to the value: `" s="2"><v>`.
    const char *middle
    Py_ssize_t middle_length


cdef class SheetPlan(RowPlan):
    cdef Cell *cells


cdef class SheetRows(BodyWriter):
    cdef bytes _head
    cdef Py_ssize_t _count
    cdef bytes _date_style
    cdef bytes _number_style
