"""A writer for one page of a result, which also writes what the links to its neighbours need."""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan


cdef class PagePlan(RowPlan):
    """The plan of one result, and what has been seen of its page so far. Used for this result only."""

    # The plan of the writer of the rows.
    cdef RowPlan inner
    # Number of rows written so far.
    cdef Py_ssize_t written
    # There are rows beyond the page.
    cdef bint more
    # Position of the first written row, in UTF-8; None without a row.
    cdef bytes first
    # Position of the last written row; empty without a row.
    cdef Buffer last
    # Number of all rows, as text; None if they are not counted.
    cdef bytes total


cdef class PageWriter(BodyWriter):
    # Writes the rows.
    cdef BodyWriter _inner
    # Maximum number of rows of a page.
    cdef Py_ssize_t _limit
    # The last column is the number of all rows.
    cdef bint _counted
