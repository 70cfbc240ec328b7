"""A writer that measures the time that another writer needs."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan


cdef class TimedPlan(RowPlan):
    """The plan of one result, and the time spent on that result so far. Used for this result only."""

    # The plan of the writer that is measured.
    cdef RowPlan inner
    # Seconds spent in writing so far.
    cdef readonly double seconds


cdef class TimedWriter(BodyWriter):
    cdef BodyWriter _inner
