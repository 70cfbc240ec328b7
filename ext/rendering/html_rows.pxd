"""Rows as an HTML table."""

from rowcall.ext.rendering.body_writer cimport BodyWriter


cdef class HtmlTable(BodyWriter):
    cdef bytes _head
    cdef bytes _tail
    cdef Py_ssize_t _count
