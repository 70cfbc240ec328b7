"""What runs on a connection, and what came of it.

Data:  Statement (what to run), Script (several in a row) → Request (one run of it)
"""

from cpython.bytes cimport PyBytes_AS_STRING

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.libpq cimport Oid, PGresult


# Seconds on a clock that only goes forward.
cdef double now() noexcept nogil


cpdef enum ExecutionState:
    WAITING      # not handed to a connection
    SENT         # in libpq's hands
    STREAMING    # part of the body has been handed out, so the status can no longer change
    DISCARDING   # results are read and dropped
    DONE


cpdef enum Loss:
    """What is known about a request whose connection died (driver-24)."""
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
    cdef readonly str constraint, table, column


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
    # Of its values, those that are sent as they are, without being a text; None: none of them.
    cdef readonly tuple binary
    cdef bytes format_memory
    # Runs only where a connection was made ready for it beforehand; `armed` says how many are.
    cdef readonly bint guarded
    cdef readonly int armed


cdef class Part:
    cdef readonly Statement statement
    cdef readonly bint last
    cdef readonly bint fresh
    cdef readonly bint first_row_only
    cdef readonly bint behind_commit


cdef class Script(Statement):
    cdef readonly tuple parts
    cdef readonly bytes tail


cdef class Execution:
    cdef readonly Statement statement
    cdef readonly list values
    cdef public tuple ahead
    cdef public Statement arms
    cdef readonly ExecutionState state
    cdef readonly ServerError error
    cdef public bint failed_ahead
    cdef readonly Loss loss
    cdef readonly bytes body
    cdef readonly Py_ssize_t rows
    cdef readonly bint is_null
    cdef bint has_first
    cdef readonly Py_ssize_t first_rows
    cdef readonly bint first_null
    cdef readonly bint overflowed
    cdef readonly bint abandoned
    cdef readonly double seconds
    cdef public double began
    cdef readonly object failure
    cdef public object waiter
    cdef public object on_done
    cdef public object on_free
    cdef public bint alone
    cdef public object label
    cdef public object connection
    cdef public object owner
    cdef public object notice_listener
    cdef public double timeout
    cdef public Py_ssize_t stream_after
    cdef public long flush_rows
    cdef long flushed_rows
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
    # Rows of the present statement that have arrived, rendered or not.
    cdef Py_ssize_t received_rows
    # The number in its command tag.
    cdef Py_ssize_t announced_rows
    cdef bint has_tag
    cdef double head_since
    cdef long flush_mark

    cpdef refuse(self, failure)
    cpdef give_back(self)
    cpdef give_up(self, failure)
    cpdef use(self, Statement statement)
    cpdef hand_over(self)
    cdef int make_room(self, int room) except -1
    cdef int start_part(self) except -1
    cdef int wake(self) except -1
    cdef int finish(self) except -1


# One field of an error or a notice, by its letter in the protocol; None when it is not there.
cdef str error_field(const PGresult *result, int code)

cdef ServerError error_of(const PGresult *result)

# Raises ValueError or TypeError for what libpq would send wrongly.
cdef int check_values(Statement statement, list values) except -1

cdef inline const int *formats_of(Statement statement) noexcept:
    if statement.format_memory is None:
        return NULL
    return <const int *>PyBytes_AS_STRING(statement.format_memory)

cdef inline const Oid *types_of(Statement statement) noexcept:
    if statement.type_memory is None:
        return NULL
    return <const Oid *>PyBytes_AS_STRING(statement.type_memory)
