"""One libpq connection, pipelined: many executions in flight, each one segment, each finished exactly once.

A Connection is a queue of executions (`ext.driver.execution`) on one PGconn.
"""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport PGconn, PGresult
from rowcall.ext.driver.execution cimport Execution, Statement
from rowcall.ext.driver.segment_writer cimport SegmentWriter


cpdef enum ConnectionState:
    """State of a connection. All transitions are made by `Connection._enter`."""
    READY        # executions may be submitted
    PAUSED       # back-pressure: the reader is removed until the client has taken the buffered part
    CANCELLING   # a cancel request is being sent: nothing may be submitted until it returned and the head has finished
    DRAINING     # nothing more may be submitted; the connection closes when the queue is empty
    CLOSED


cdef class Connection:
    cdef readonly object pgconn
    cdef readonly object loop
    cdef readonly ConnectionState state
    cdef readonly double created
    cdef readonly long served
    cdef readonly int in_flight
    cdef readonly int backend_pid
    cdef public object on_closed
    cdef public object on_notice
    cdef public object on_capacity
    cdef public object owner
    cdef public bint corked
    cdef readonly str close_reason
    cdef PGconn *conn
    cdef SegmentWriter writer
    cdef object queue
    cdef readonly Execution head
    cdef list admitted
    cdef Buffer buffer
    cdef int fd
    cdef bint flush_scheduled
    cdef bint writer_registered
    cdef bint cancelling
    cdef str farewell
    cdef str ending        # message of a FATAL error behind which the server's end of the connection is awaited
    cdef bint ended        # reading has failed: the server, or the network, has ended the connection
    cdef object end_timer
    cdef public bint owned
    cdef long flushes
    cdef int gathered
    cdef bint busy
    cdef tuple session_parameters
    cdef object on_readable_method
    cdef object flush_method

    cpdef bint submit(self, Execution execution) except -1
    cpdef bint submit_all(self, Execution execution, list statements) except -1
    cpdef bytes take(self)
    cpdef resume(self)
    cpdef abandon(self)
    cpdef bint begin_cancel(self, Execution execution) except -1
    cpdef end_cancel(self)
    cpdef list late(self, double grace)
    cpdef drain(self, str reason)
    cpdef close(self, str reason)
    cpdef accept_session(self)
    cpdef bint knows(self, Statement statement) except -1
    cpdef admit(self, Statement statement)
    cpdef bytes reported(self, bytes name)

    cdef int place(self, Execution execution) except -1
    cdef int _end_of_part(self, Execution execution, PGresult *result) except -1
    cdef bint _goes_on(self, Execution execution) except -1
    cdef bint _lose_out_of_order(self) except -1
    cdef int _place_more(self, Execution execution) except -1
    cdef int _roll_back(self, Execution execution) except -1
    cdef int _send_more(self, Execution execution) except -1
    cdef int _give_up_segment(self, Execution execution) except -1
    cdef int _queue(self, Execution execution, bint idle) except -1
    cdef int _flush_now(self) except -1
    cdef int _drain(self) except -1
    cdef int _result(self, PGresult *result) except -1
    cdef int _end_of_rows(self, Execution execution, PGresult *result) except -1
    cdef int _read_tag(self, Execution execution, PGresult *result) noexcept
    cdef bint _all_rows_arrived(self, Execution execution, PGresult *result) noexcept
    cdef int _look_at_command(self, PGresult *result) except -1
    cdef int _ask_for_rows(self, Execution execution) except -1
    cdef int _rows(self, Execution execution, PGresult *result) except -1
    cdef int _discard(self, Execution execution) except -1
    cdef int _error(self, Execution execution, PGresult *result) except -1
    cdef int _await_end(self, str reason) except -1
    cdef int _finish_head(self) except -1
    cdef int _answer(self, Execution execution) except -1
    cdef int _start_head(self) except -1
    cdef int _batch_done(self) except -1
    cdef int _finish_draining(self) except -1
    cdef int _notice(self, const PGresult *result) except -1
    cdef int _hear(self, notice_listener, str severity, const PGresult *result) except -1
    cdef int _last_words(self) except -1
    cdef tuple _session_parameters(self)
    cdef bint _session_changed(self) except -1
    cdef str _libpq_message(self)
    cdef int _lose(self, str reason) except -1
    cdef int _enter(self, ConnectionState state) except -1
