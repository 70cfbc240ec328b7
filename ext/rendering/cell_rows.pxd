"""Rows that the service itself reads, as JSON arrays of cells."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.rendering.codecs cimport Codec, Codecs
from rowcall.ext.rendering.values cimport Scratch


cdef class CellPlan(RowPlan):
    """The codecs and the constant starts of the cells of one result description."""

    # The codec of each column.
    cdef const Codec **codecs
    # The start `["name",23,false,` of the cells of each column, and its length in bytes.
    cdef const char **heads
    cdef Py_ssize_t *lengths
    # Owns the codecs.
    cdef Codecs _codecs


cdef class CellRows(BodyWriter):
    cdef Codecs _codecs
    cdef Scratch _scratch
