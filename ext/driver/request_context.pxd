"""The context of one request, and the runner that carries it through the steps of its endpoint."""

from rowcall.ext.driver.execution cimport Execution


cdef class RequestContext:
    cdef public object scope
    cdef public object protocol
    cdef public object values
    cdef public object body
    cdef public object mask
    cdef public bint has_null
    cdef public list arguments
    cdef public Execution execution
    cdef public bint answered
    cdef public object comment_headers
    cdef public object user
    cdef public object lease
    cdef public object sent_values
    cdef public list endings
    cdef public double deadline
    cdef public object task
    cdef tuple steps
    cdef Py_ssize_t next_step
    cdef tuple outer

    cpdef follow(self, tuple steps)
    cpdef enter(self, tuple steps)
    cpdef leave(self)
    cpdef at_end(self, ending)


cdef class BodyArrival:
    cdef readonly double began
    cdef readonly Py_ssize_t received
    cdef readonly Py_ssize_t unseen
    cdef public bint late
    cdef object future
    cdef RequestContext context
    cdef StepRunner runner
    cdef set reading
    cdef set scopes
    cdef object refusal

    cpdef cancel(self)
    cpdef bint done(self)
    cdef int _begin(self, StepRunner runner) except -1


cdef class PendingWork:
    cdef readonly RequestContext context
    cdef StepRunner runner

    cpdef cancel(self)
    cpdef bint done(self)
    cpdef advance(self)
    cpdef fail(self, error)
    cpdef wait_for(self, awaitable)
    cdef int _begin(self, StepRunner runner) except -1
    cdef RequestContext _end(self)


cdef class StepRunner:
    cdef readonly set active
    cdef object wait
    cdef object on_failure
    cdef object resume_method

    cpdef start(self, RequestContext context, tuple steps)
    cpdef advance(self, RequestContext context)
    cpdef fail(self, RequestContext context, error)
    cdef int _run(self, RequestContext context) except -1
    cdef int _end(self, RequestContext context, error) except -1
