"""A writer for one page of a result, which also writes what the links to its neighbours need."""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan


cdef class PagePlan(RowPlan):
    """The page of one result."""

    cdef RowPlan inner
    cdef Py_ssize_t written
    # Whether there are rows beyond the page.
    cdef bint more
    cdef bytes first
    cdef Buffer last
    cdef bytes total


cdef class PageWriter(BodyWriter):
    cdef BodyWriter _inner
    cdef Py_ssize_t _limit
    cdef bint _counted
