"""One libpq connection, pipelined: many requests in flight, each one segment, each answered exactly once.

Data:  Statement (what to run) → Request (one run of it) → Connection (a queue of requests on one PGconn)
"""

from rowcall.ext.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.buffer cimport Buffer
from rowcall.ext.libpq cimport Oid, PGconn, PGresult


# Seconds on a clock that only goes forward.
cdef double now() noexcept nogil


cpdef enum ConnectionState:
    """Every transition stands in `Connection._enter`."""
    READY        # requests may be placed
    PAUSED       # back-pressure: the reader is removed until the client has taken what is buffered
    CANCELLING   # a cancel is on its way: nothing may be placed until it returned and the head's Sync was read
    DRAINING     # nothing more may be placed; closes when the queue is empty
    CLOSED


cpdef enum RequestState:
    WAITING      # not handed to a connection
    SENT         # in libpq's hands
    STREAMING    # part of the body has been handed out, so the status can no longer change
    DISCARDING   # results are read and dropped
    DONE


cpdef enum Loss:
    """What is known about a request whose connection died (reference 08, 5.3)."""
    NOT_LOST
    NOT_STARTED  # never ran: may be repeated whatever it is
    ROLLED_BACK  # ran, and the server said that it ended it: functions may be repeated
    IN_DOUBT     # may have committed: only what is declared repeatable may be repeated


cdef enum Step:
    STEP_PARSE
    STEP_AHEAD
    STEP_CALL
    STEP_RESET


cdef class ServerError:
    cdef readonly str severity, sqlstate, message, detail, hint, context, position, source_function


cdef class Statement:
    cdef readonly int id
    cdef readonly bytes sql
    cdef readonly int generation
    cdef readonly BodyWriter renderer
    cdef readonly bint repeatable
    cdef readonly int nparams
    cdef bytes name
    # What is sent: the values at these places of those that a request has; None: all of them.
    cdef readonly tuple picks
    cdef readonly int count
    cdef readonly tuple types
    cdef bytes type_memory


cdef class Part:
    cdef readonly Statement statement
    cdef readonly bint last
    cdef readonly bint fresh
    cdef readonly bint first_row_only


cdef class Script(Statement):
    cdef readonly tuple parts
    cdef readonly bytes tail


cdef class Request:
    cdef readonly Statement statement
    cdef readonly list values
    cdef public tuple ahead
    cdef readonly RequestState state
    cdef readonly ServerError error
    cdef readonly bint failed_ahead
    cdef readonly Loss loss
    cdef readonly bytes body
    cdef readonly Py_ssize_t rows
    cdef readonly bint is_null
    cdef readonly bint overflowed
    cdef readonly double seconds
    cdef readonly object failure
    cdef public object waiter
    cdef public object on_done
    cdef public object label
    cdef public object connection
    cdef public object owner
    cdef public double timeout
    cdef public Py_ssize_t stream_after
    cdef public Py_ssize_t limit
    cdef public bint first_row_only
    cdef public bint wide_rows
    cdef public bint unlimited
    cdef readonly bint committed
    cdef Script script
    cdef int placed
    cdef int part
    cdef bint rolling_back
    cdef BodyWriter renderer
    cdef unsigned char few_steps[64]
    cdef unsigned char *steps
    cdef int room
    cdef bytes many_steps
    cdef int step_count
    cdef int steps_ahead
    cdef int step
    cdef list parses
    cdef int parse
    cdef readonly RowPlan plan
    cdef readonly bint seen_result
    cdef double head_since
    cdef long flush_mark

    cpdef refuse(self, failure)
    cdef int make_room(self, int room) except -1
    cdef int start_part(self) except -1
    cdef int wake(self) except -1
    cdef int finish(self) except -1


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
    cdef readonly str close_reason
    cdef PGconn *conn
    cdef object queue
    cdef readonly Request head
    cdef set prepared
    cdef Buffer buffer
    cdef int fd
    cdef bint named
    cdef bint flush_scheduled
    cdef bint writer_registered
    cdef bint send_failed
    cdef bint cancelling
    cdef str farewell
    cdef long flushes
    cdef int gathered
    cdef bint busy
    cdef Py_ssize_t unsent_bytes
    cdef tuple session_parameters
    cdef object on_readable_method
    cdef object flush_method

    cpdef bint submit(self, Request request) except -1
    cpdef bint submit_all(self, Request request, list statements) except -1
    cpdef bytes take(self)
    cpdef resume(self)
    cpdef abandon(self)
    cpdef bint begin_cancel(self, Request request) except -1
    cpdef end_cancel(self)
    cpdef drain(self, str reason)
    cpdef close(self, str reason)
    cpdef accept_session(self)

    cdef int place(self, Request request) except -1
    cdef int _commands(self, Request request) except -1
    cdef int _segment(self, Request request) except -1
    cdef int _end_of_part(self, Request request, PGresult *result) except -1
    cdef bint _goes_on(self, Request request) except -1
    cdef int _place_more(self, Request request) except -1
    cdef int _roll_back(self, Request request) except -1
    cdef int _send_more(self, Request request) except -1
    cdef int _sync(self) except -1
    cdef int _give_up_segment(self, Request request) except -1
    cdef int _command(self, Request request, Statement statement, list values, Step step) except -1
    cdef int _parse(self, Request request, Statement statement) except -1
    cdef int _queue(self, Request request, bint idle) except -1
    cdef int _flush_now(self) except -1
    cdef int _drain(self) except -1
    cdef int _result(self, PGresult *result) except -1
    cdef int _end_of_rows(self, Request request, PGresult *result) except -1
    cdef int _ask_for_rows(self, Request request) except -1
    cdef int _rows(self, Request request, PGresult *result) except -1
    cdef int _discard(self, Request request) except -1
    cdef int _error(self, Request request, PGresult *result) except -1
    cdef int _forget_parse(self, Request request) except -1
    cdef int _finish_head(self) except -1
    cdef int _answer(self, Request request) except -1
    cdef int _start_head(self) except -1
    cdef int _batch_done(self) except -1
    cdef int _notice(self, const PGresult *result) except -1
    cdef int _last_words(self) except -1
    cdef tuple _session_parameters(self)
    cdef bint _session_changed(self) except -1
    cdef str _libpq_message(self)
    cdef int _lose(self, str reason) except -1
    cdef int _enter(self, ConnectionState state) except -1
