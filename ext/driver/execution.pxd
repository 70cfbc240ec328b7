"""Statements, scripts of several statements, and executions: one run of a statement or script, with its result."""

from cpython.bytes cimport PyBytes_AS_STRING

from rowcall.ext.rendering.body_writer cimport BodyWriter, RowPlan
from rowcall.ext.base.libpq cimport Oid, PGresult


cpdef enum ExecutionState:
    WAITING      # not submitted to a connection
    SENT         # submitted
    STREAMING    # a part of the body has been handed out, so the status can no longer change
    DISCARDING   # results are read, and their rows dropped
    DONE


cpdef enum Loss:
    """What is known about an execution whose connection was lost (driver-24)."""
    NOT_LOST
    NOT_STARTED  # the execution never ran: it may be repeated in any case
    ROLLED_BACK  # the execution ran, and the server has reported that it was ended: functions may be repeated
    IN_DOUBT     # the execution may have committed: it may only be repeated if its statement is `repeatable`


# The commands of a segment, each of which has a result.
cdef enum Step:
    STEP_PARSE   # prepare a statement
    STEP_AHEAD   # run one of the statements ahead of the call
    STEP_CALL    # run the statement of the execution, or one of a script
    STEP_RESET   # run one of the statements of `Connection.submit_all`


# `message` is a text, and the other fields are None if the server has not sent them; but `severity` and `sqlstate` are
# then empty. position: number of a character in the statement, from 1, as text.
cdef class ServerError:
    cdef readonly str severity, sqlstate, message, detail, hint, context, position, source_function
    cdef readonly str constraint, table, column


# Fields without a comment are described in `execution.pyx`, here and in the following classes.
cdef class Statement:
    cdef readonly int id
    cdef readonly bytes sql
    cdef readonly int generation
    cdef readonly BodyWriter renderer
    cdef readonly bint repeatable
    cdef readonly int nparams
    # Name under which connections prepare the statement: `rc`, id and generation.
    cdef bytes name
    # Indexes of the values of an execution that this statement sends; None: all values.
    cdef readonly tuple picks
    # Number of values that this statement sends.
    cdef readonly int count
    cdef readonly tuple types
    # `types` as an array of `count` Oid, for `types_of`; None if the server infers all.
    cdef bytes type_memory
    # Indexes of the values that are sent in binary format; None: all values are texts.
    cdef readonly tuple binary
    # An array of `count` int, 1 for binary and 0 for text, for `formats_of`; None if all values are texts.
    cdef bytes format_memory
    # Runs only on connections that have admitted the statement; `admissions` is their number.
    cdef readonly bint guarded
    cdef readonly int admissions
    # Moving mean of the seconds for which a connection is busy with a run of the statement.
    cdef public double usual_seconds


cdef class Part:
    cdef readonly Statement statement
    cdef readonly bint last
    cdef readonly bint ahead_first
    cdef readonly bint first_row_only
    cdef readonly bint behind_commit


cdef class Script(Statement):
    cdef readonly tuple parts
    cdef readonly bytes tail


cdef class Execution:
    cdef readonly Statement statement
    cdef readonly list values
    cdef public tuple ahead
    cdef public Statement guarded_to_prepare
    cdef readonly ExecutionState state
    cdef readonly ServerError error
    cdef public bint failed_ahead
    cdef readonly Loss loss
    cdef public bytes body
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
    # The statement if it is a script, else None; the number of its parts that were sent; the index of the running one,
    # from 0.
    cdef Script script
    cdef int placed
    cdef int part
    # The transaction that a script has left open is being rolled back.
    cdef bint rolling_back
    # Writes the rows of the present statement; None: its rows are dropped.
    cdef BodyWriter renderer
    # The steps (`Step`) of the present segment, one byte each, in one of two memories with space for `room`; `steps`
    # points into this object or into `many_steps`.
    cdef unsigned char few_steps[64]
    cdef unsigned char *steps
    cdef int room
    cdef bytes many_steps
    cdef int step_count
    # Number of steps in front of the call; index of the step whose result is expected next.
    cdef int steps_ahead
    cdef int step
    # The statements that the segment prepares, and the index of the next one to be confirmed.
    cdef list parses
    cdef int parse
    cdef readonly RowPlan plan
    # A result of the call has arrived.
    cdef readonly bint seen_result
    # Rows of the present statement that have arrived, rendered or not.
    cdef Py_ssize_t received_rows
    # The number of rows in the command tag of the present statement, if `has_tag` is set.
    cdef Py_ssize_t announced_rows
    cdef bint has_tag
    # When the execution became the head of its connection, or was last continued, in seconds of the monotonic clock;
    # 0: it is not the head.
    cdef double head_since
    # `Connection.flushes` when the segment was written: while both are equal, no byte of the segment has been sent.
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


# Returns one field of an error or a notice, or None if it is missing. result: borrowed. code: the letter of the field
# in the protocol, such as `c"M"`. Bytes that are not UTF-8 become U+FFFD.
cdef str error_field(const PGresult *result, int code)

# Returns the fields of an error result, which is borrowed.
cdef ServerError error_of(const PGresult *result)

# Returns 0, or raises ValueError or TypeError for values that libpq would send incorrectly.
cdef int check_values(Statement statement, list values) except -1

# Return the formats and the types of the values that a statement sends, `count` elements each, as libpq takes them:
# NULL if all are texts, or the server infers all types. The arrays are borrowed from the statement.
cdef inline const int *formats_of(Statement statement) noexcept:
    if statement.format_memory is None:
        return NULL
    return <const int *>PyBytes_AS_STRING(statement.format_memory)

cdef inline const Oid *types_of(Statement statement) noexcept:
    if statement.type_memory is None:
        return NULL
    return <const Oid *>PyBytes_AS_STRING(statement.type_memory)
