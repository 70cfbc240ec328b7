"""A writer that measures the time that another writer needs."""

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan


cdef class TimedPlan(RowPlan):
    cdef RowPlan inner
    # Seconds spent in writing so far.
    cdef readonly double seconds


cdef class TimedWriter(BodyWriter):
    cdef BodyWriter _inner
