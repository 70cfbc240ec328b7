"""Rows as an HTML table."""

from rowcall.ext.rendering.body_writer cimport BodyWriter


cdef class HtmlTable(BodyWriter):
    # What precedes the first row and follows the last one, in UTF-8.
    cdef bytes _head
    cdef bytes _tail
    # Number of columns that a result must have.
    cdef Py_ssize_t _count
