"""One libpq connection, pipelined: many executions in flight, each one segment, each finished exactly once.

A Connection is a queue of executions (`ext.driver.execution`) on one PGconn.

All methods are called with the GIL, on the thread of the event loop. A `PGresult *` is borrowed: `_result` alone frees
the result that it gets. `execution` is the head, where a method does not say otherwise. A `reason` is a sentence that
becomes `close_reason`. Methods that return int without a comment return 0.
"""

from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.libpq cimport PGconn, PGresult
from rowcall.ext.driver.execution cimport Execution, Statement
from rowcall.ext.driver.segment_writer cimport SegmentWriter


cpdef enum ConnectionState:
    """State of a connection. All transitions are made by `Connection._enter`."""
    READY        # executions may be submitted
    PAUSED       # back-pressure: nothing is read until the buffered part of the body has been taken
    CANCELLING   # a cancel request is being sent: nothing may be submitted until it has returned
    DRAINING     # nothing more may be submitted; the connection closes when the queue is empty
    CLOSED


# Fields without a comment are described in `connection.pyx`.
cdef class Connection:
    cdef readonly object pgconn
    cdef readonly object loop
    cdef readonly ConnectionState state
    cdef readonly double created      # monotonic seconds
    cdef readonly long served         # number of finished executions
    cdef readonly int in_flight       # number of executions submitted and not finished
    cdef readonly int backend_pid     # process id on the host of the server
    cdef public object on_closed
    cdef public object on_notice
    cdef public object on_capacity
    cdef public object owner
    cdef public bint corked
    cdef readonly str close_reason
    cdef PGconn *conn                 # borrowed from `pgconn`; NULL once the connection is closed
    cdef SegmentWriter writer
    cdef object queue                 # executions behind the head
    cdef readonly Execution head      # the execution to which arriving results belong
    cdef list admitted                # guarded statements that are prepared here
    cdef Buffer buffer                # rendered part of the head's body
    cdef int fd                       # file descriptor of the socket, which `pgconn` owns
    cdef bint flush_scheduled         # the event loop calls `flush` in this turn
    cdef bint writer_registered       # the socket is full: the loop calls `flush` when it is writable
    cdef bint cancelling              # a cancel request is being sent
    cdef str end_notice               # reason to close once no execution is in flight, from a notice
    cdef str fatal_reason             # message of a FATAL error, after which the end of the connection is awaited
    cdef bint ended                   # reading has failed: the server, or the network, has ended the connection
    cdef object end_timer             # closes the connection if its end does not come
    cdef public bint owned
    cdef long flushes                 # number of flushes; compared with `Execution.flush_mark`
    cdef int gathered                 # number of segments since the last flush
    cdef bint busy                    # the last flush had several segments
    cdef tuple session_parameters     # expected values (bytes) of the watched parameters
    cdef object on_readable_method    # bound methods for the event loop; None once the connection is closed
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
    cpdef bytes parameter_status(self, bytes name)

    cdef int place(self, Execution execution) except -1
    cdef int _end_of_part(self, Execution execution, PGresult *result) except -1
    cdef bint _continue_head(self, Execution execution) except -1
    cdef bint _lose_out_of_order(self) except -1
    cdef int _place_more(self, Execution execution) except -1
    cdef int _roll_back(self, Execution execution) except -1
    cdef int _send_more(self, Execution execution) except -1
    cdef int _give_up_segment(self, Execution execution) except -1
    cdef int _queue(self, Execution execution, bint idle) except -1
    cdef int _flush_now(self) except -1
    cdef int _handle_results(self) except -1
    cdef int _result(self, PGresult *result) except -1
    cdef int _end_of_rows(self, Execution execution, PGresult *result) except -1
    cdef int _read_tag(self, Execution execution, PGresult *result) noexcept
    cdef bint _all_rows_arrived(self, Execution execution, PGresult *result) noexcept
    cdef int _check_command(self, PGresult *result) except -1
    cdef int _ask_for_rows(self, Execution execution) except -1
    cdef int _rows(self, Execution execution, PGresult *result) except -1
    cdef int _discard(self, Execution execution) except -1
    cdef int _error(self, Execution execution, PGresult *result) except -1
    cdef int _await_end(self, str reason) except -1
    cdef int _finish_head(self) except -1
    cdef int _finish(self, Execution execution) except -1
    cdef int _start_head(self) except -1
    cdef int _batch_done(self) except -1
    cdef int _finish_draining(self) except -1
    cdef int _notice(self, const PGresult *result) except -1
    cdef int _pass_to_listener(self, notice_listener, str severity, const PGresult *result) except -1
    cdef int _read_fatal_error(self) except -1
    cdef tuple _session_parameters(self)
    cdef bint _session_changed(self) except -1
    cdef str _libpq_message(self)
    cdef int _lose(self, str reason) except -1
    cdef int _enter(self, ConnectionState state) except -1
