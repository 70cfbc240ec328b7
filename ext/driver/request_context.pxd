"""The context of one request, and the runner that carries it through the steps of its endpoint.

A step is a function of the context. It returns None to continue, or what it waits for: an `Execution`, a `BodyArrival`,
a `PendingWork` or an awaitable. Everything runs with the GIL on the thread of the event loop. Fields without a comment
are described in `request_context.pyx`.
"""

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
    # The present steps, and the index of the next one.
    cdef tuple steps
    cdef Py_ssize_t next_step
    # `steps`, `next_step` and `outer` of the steps around these; None: there are none.
    cdef tuple outer

    cpdef follow(self, tuple steps)
    cpdef enter(self, tuple steps)
    cpdef leave(self)
    cpdef at_end(self, ending)


cdef class BodyArrival:
    # When the step began to wait, in seconds of the monotonic clock.
    cdef readonly double began
    cdef readonly Py_ssize_t received
    cdef readonly Py_ssize_t hidden_bytes
    cdef public bint late
    cdef object future
    # None once the body has arrived or will never arrive.
    cdef RequestContext context
    # None until the step has returned this object.
    cdef StepRunner runner
    cdef set reading
    cdef set scopes
    cdef object refusal

    cpdef cancel(self)
    cpdef bint done(self)
    cdef int _begin(self, StepRunner runner) except -1


cdef class PendingWork:
    # None once the request has continued.
    cdef readonly RequestContext context
    # None until the step has returned this object.
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
    # The bound method `_resume`, so that it is not created for every execution.
    cdef object resume_method

    cpdef start(self, RequestContext context, tuple steps)
    cpdef advance(self, RequestContext context)
    cpdef fail(self, RequestContext context, error)
    cdef int _run(self, RequestContext context) except -1
    cdef int _end(self, RequestContext context, error) except -1
