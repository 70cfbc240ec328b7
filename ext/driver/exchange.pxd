"""One request on its way through the steps of its endpoint, and what carries it from step to step."""

from rowcall.ext.driver.request cimport Request


cdef class Exchange:
    cdef public object scope
    cdef public object protocol
    cdef public object values
    cdef public object body
    cdef public object mask
    cdef public bint has_null
    cdef public list arguments
    cdef public Request request
    cdef public bint answered
    cdef public object comment_headers
    cdef public object user
    cdef public object ticket
    cdef public list endings
    cdef public double deadline
    cdef public object task
    cdef tuple steps
    cdef Py_ssize_t next_step

    cpdef follow(self, tuple steps)
    cpdef skip(self, Py_ssize_t count)
    cpdef at_end(self, ending)


cdef class Arrival:
    cdef readonly double began
    cdef readonly Py_ssize_t received
    cdef readonly Py_ssize_t unseen
    cdef public bint late
    cdef object future
    cdef Exchange exchange
    cdef Runner runner
    cdef set reading
    cdef set scopes
    cdef object refusal

    cpdef cancel(self)
    cpdef bint done(self)
    cdef int _begin(self, Runner runner) except -1


cdef class Pending:
    cdef readonly Exchange exchange
    cdef Runner runner

    cpdef cancel(self)
    cpdef bint done(self)
    cpdef advance(self)
    cpdef fail(self, error)
    cpdef wait_for(self, awaitable)
    cdef int _begin(self, Runner runner) except -1
    cdef Exchange _end(self)


cdef class Runner:
    cdef readonly set active
    cdef object wait
    cdef object on_failure
    cdef object resume_method

    cpdef start(self, Exchange exchange, tuple steps)
    cpdef advance(self, Exchange exchange)
    cpdef fail(self, Exchange exchange, error)
    cdef int _run(self, Exchange exchange) except -1
    cdef int _end(self, Exchange exchange, error) except -1
