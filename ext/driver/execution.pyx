"""Statements, scripts of several statements, and executions: one run of a statement or script, with its result.

This module does not communicate with a server. `ext.driver.connection` changes the states of executions.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport strlen

from rowcall.ext.rendering.body_writer cimport BodyWriter
from rowcall.ext.base.clock cimport now
from rowcall.ext.base.libpq cimport Oid, PGresult, pq


cdef class ServerError:
    """The fields of an error result that the service uses. `severity` and `sqlstate` are never translated."""

    def __repr__(self):
        return f"ServerError({self.severity} {self.sqlstate}: {self.message})"


cdef str error_field(const PGresult *result, int code):
    cdef char *text = pq.resultErrorField(result, code)
    return None if text == NULL else (<bytes>text).decode("utf-8", "replace")


cdef ServerError error_of(const PGresult *result):
    """Return the fields of an error result, which is borrowed."""
    cdef ServerError error = ServerError.__new__(ServerError)
    # The letters of the protocol (Error and Notice Message Fields). S is the severity in the language of the server.
    error.severity = error_field(result, c"V") or error_field(result, c"S") or ""
    error.sqlstate = error_field(result, c"C") or ""
    error.message = error_field(result, c"M")
    if error.message is None:
        error.message = (<bytes>pq.resultErrorMessage(result)).decode("utf-8", "replace").strip()
    error.detail = error_field(result, c"D")
    error.hint = error_field(result, c"H")
    error.context = error_field(result, c"W")
    error.position = error_field(result, c"P") or error_field(result, c"p")
    error.source_function = error_field(result, c"R")
    error.constraint = error_field(result, c"n")
    error.table = error_field(result, c"t")
    error.column = error_field(result, c"c")
    return error


# Assumed seconds of a statement that has not run yet.
cdef double LONG = 1.0


cdef class Statement:
    """A statement of an endpoint for one choice of present parameters. Each connection prepares it at its first use.

    `id` is unique in the process; `sql` is in UTF-8. `renderer` writes the body from the rows; None: rows are dropped.
    A new `generation` has a new name, because executions in flight still use the old one (driver-27). `repeatable`: the
    routine is STABLE or IMMUTABLE, so that running it twice does no harm.

    `nparams` is the number of values of an execution. `picks` has for `$1`, `$2` … the index of the value (-1: NULL);
    None: all values in order. `types` has the oids of their types (0: the server infers it); None: the server infers
    all. `binary` has the indexes of values that are sent in the binary format of their type. Raises ValueError for an
    index in `picks` that no value has, and for another number of `types` than of values that are sent.

    `guarded`: the statement is prepared ahead of its first use (`Execution.guarded_to_prepare`, `Connection.admit`),
    and never by submission; only connections that have admitted it run it. `admissions` is the number of these
    connections.
    """

    def __cinit__(self):
        self.usual_seconds = LONG

    def __init__(self, int id, bytes sql not None, int nparams, BodyWriter renderer=None, bint repeatable=False,
                 int generation=0, tuple picks=None, tuple types=None, bint guarded=False, tuple binary=None):
        cdef int index
        self.id = id
        self.sql = sql
        self.nparams = nparams
        self.renderer = renderer
        self.repeatable = repeatable
        self.guarded = guarded
        self.generation = generation
        self.name = b"rc%d_%d" % (id, generation)
        self.picks = picks
        self.count = nparams if picks is None else len(picks)
        self.types = types
        self.binary = binary
        if binary is not None:
            self.format_memory = PyBytes_FromStringAndSize(NULL, self.count * sizeof(int))
            for index in range(self.count):
                place = index if picks is None else picks[index]
                # 1 is the binary format, 0 the text format. The format of a NULL (-1) does not matter.
                (<int *>PyBytes_AS_STRING(self.format_memory))[index] = place in binary
        if picks is not None and any(not -1 <= place < nparams for place in picks):
            raise ValueError(f"statement {id} takes a value that requests do not have")
        if types is not None:
            if len(types) != self.count:
                raise ValueError(f"statement {id} takes {self.count} values, not {len(types)}")
            self.type_memory = PyBytes_FromStringAndSize(NULL, self.count * sizeof(Oid))
            for index in range(self.count):
                (<Oid *>PyBytes_AS_STRING(self.type_memory))[index] = <Oid>types[index]

    def next_generation(self):
        """Return the same statement under a new name."""
        return Statement(
            self.id, self.sql, self.nparams, self.renderer, self.repeatable, self.generation + 1, self.picks,
            self.types, self.guarded, self.binary,
        )


cdef class Part:
    """One statement of a script.

    last: a Sync follows, and later statements are sent after its result has been read. ahead_first: the statements of
    `Execution.ahead` run in front of this one. first_row_only: further rows are dropped. behind_commit: the effects of
    earlier statements are permanent. The renderer of the statement writes its part of the body; without a renderer it
    has no part.
    """

    def __init__(self, Statement statement not None, bint last, bint ahead_first, bint first_row_only=False,
                 bint behind_commit=False):
        self.statement = statement
        self.last = last
        self.ahead_first = ahead_first
        self.first_row_only = first_row_only
        self.behind_commit = behind_commit


cdef class Script(Statement):
    """Several statements with one response, each of which takes its values from those of the execution.

    They run in order until one fails. If they leave a transaction open, it is rolled back. `tail` (UTF-8) is appended
    to the body. Raises ValueError if the last part is not `last`, or a part takes another number of values than
    `nparams`.
    """

    def __init__(self, int id, int nparams, tuple parts not None, bytes tail not None, bint repeatable=False,
                 int generation=0):
        cdef Part part
        Statement.__init__(self, id, b"", nparams, None, repeatable, generation)
        if not parts or not (<Part?>parts[len(parts) - 1]).last:
            raise ValueError("the last statement of a script ends its last segment")
        for part in parts:
            if part.statement.nparams != nparams:
                raise ValueError("all statements of a script take the same request")
        self.parts = parts
        self.tail = tail

    def next_generation(self):
        """Return the same script with a new name for each of its statements."""
        parts = tuple([
            Part(part.statement.next_generation(), part.last, part.ahead_first, part.first_row_only, part.behind_commit)
            for part in self.parts
        ])
        return Script(self.id, self.nparams, parts, self.tail, self.repeatable, self.generation + 1)


cdef class Execution:
    """One run of a statement. The same object has the result; it is used once.

    values: the value of each parameter in text form (UTF-8), or in binary form for `Statement.binary`; None for NULL.
    ahead: statements with their values, run in front of the call in the same transaction; their rows are dropped.
    guarded_to_prepare: a guarded statement that is prepared, but not run, between the statements of `ahead` and the
    call. label: name for log messages. connection, owner: for the code that submits the execution. began: when the
    execution was created, unless its creator changes it, in seconds of the monotonic clock. timeout: seconds that the
    server may take; 0: no limit; enforced by other modules. unlimited: the server has no time limit for this execution,
    so that the service has to cancel it. alone: runs on a connection of its own that the driver owns, and the callback
    `on_done` has to judge the result.

    first_row_only: rows of the call behind the first one are dropped. wide_rows: rows are known to be so large that
    they are better read one by one. limit: bytes of the body after which further rows are read and dropped
    (`overflowed`); 0: no limit. stream_after: bytes after which the connection pauses and hands out the rendered part;
    0: never. flush_rows: rows after which it also does so, if `stream_after` is not 0; 0: rows are not counted.

    waiter: a future that is resolved when there is something to take: the whole result, or a part of a streamed one.
    on_done: called once with the execution: when it is DONE, successful or not, or when it begins to stream; if it has
    an owner, also when it is given up. on_free: called once with the execution when it is DONE, so that its connection
    has finished with it: ahead of `on_done`, unless that was called earlier, as for an execution that streams or was
    given up. notice_listener: gets each notice of the run at once, by `hear(severity, sqlstate, message, hint)`, and by
    `end(committed)` the end of the run and, in a script, of each earlier transaction that has committed. Only for
    executions that have a connection to themselves: on a pipelined connection, a notice could be attributed to the
    previous execution (driver-17).

    body: the response body, or its rest behind the parts that a streaming execution has handed out. None before the
    end, without a renderer (a script then has its tail), after an error, a failure or a loss, and if it has
    `overflowed` or was `abandoned`. rows: number of rows written to the body. is_null: the last row was a scalar NULL.
    first_rows, first_null: of a script, `rows` and `is_null` of its first statement that has a renderer. error: the
    first error of the server; None: there was none. failed_ahead: `error` is that of a statement of `ahead`, so the
    call has not run. failure: an exception of the service, for example of rendering; None: there was none. abandoned:
    the rows were dropped because the client was gone. The execution may have succeeded all the same. committed: of a
    script, effects of earlier statements may be permanent. seconds: for how long its connection was busy with the
    execution.
    """

    def __cinit__(self):
        self.steps = self.few_steps
        self.room = sizeof(self.few_steps)

    def __init__(self, Statement statement not None, list values not None, tuple ahead=None):
        self.statement = statement
        self.renderer = statement.renderer
        if type(statement) is Script:
            self.script = <Script>statement
        self.values = values
        self.ahead = ahead
        self.state = ExecutionState.WAITING
        self.loss = Loss.NOT_LOST
        self.began = now()

    cdef int make_room(self, int room) except -1:
        """Make room for the steps of the segment that will be written; steps of an earlier one may be lost. room:
        maximum number of steps."""
        if room > self.room:
            self.many_steps = PyBytes_FromStringAndSize(NULL, room)
            self.steps = <unsigned char *>PyBytes_AS_STRING(self.many_steps)
            self.room = room
        return 0

    cdef int start_part(self) except -1:
        """Prepare for the results of the next statement of the script, if there is one; first keep the row count of
        the first statement with a part in the body."""
        cdef Part part
        if self.renderer is not None and not self.has_first:
            self.has_first = True
            self.first_rows = self.rows
            self.first_null = self.is_null
        self.rows = self.flushed_rows = 0
        self.plan = None
        self.is_null = False
        self.renderer = None
        if self.part < len(self.script.parts):
            part = <Part>self.script.parts[self.part]
            if part.behind_commit:
                self.committed = True
            self.renderer = part.statement.renderer
            self.first_row_only = part.first_row_only
        return 0

    cdef int wake(self) except -1:
        """Resolve the waiter, if there is one."""
        waiter = self.waiter
        if waiter is not None:
            self.waiter = None
            if not waiter.done():
                waiter.set_result(None)
        return 0

    cdef int finish(self) except -1:
        """Make the execution DONE, and call `on_free`, `on_done` and the end of the notice listener."""
        self.state = ExecutionState.DONE
        self.head_since = 0
        self.wake()
        try:
            # First, so that the connection is free for what `on_done` begins.
            if self.on_free is not None:
                self.on_free(self)
        finally:
            self.hand_over()
        if self.notice_listener is not None:
            self.notice_listener.end(self.error is None and self.loss == Loss.NOT_LOST)
        return 0

    cpdef refuse(self, failure):
        """Finish an execution that no connection has accepted. failure: the exception that becomes `failure`."""
        self.failure = failure
        self.finish()

    cpdef give_back(self):
        """Finish a waiting execution that no connection of its pool can run any more, with `Loss.NOT_STARTED`."""
        self.loss = Loss.NOT_STARTED
        self.finish()

    cpdef give_up(self, failure):
        """Report a failure to the waiting code although the execution is in flight; its rows are read and dropped.

        failure: the exception that becomes `failure`. This has no effect on an execution that is done or has failed, or
        that streams, because a part of its response has been sent.
        """
        if self.state == ExecutionState.DONE or self.state == ExecutionState.STREAMING or self.failure is not None:
            return
        self.failure = failure
        if self.state == ExecutionState.SENT:
            self.state = ExecutionState.DISCARDING
        self.wake()
        if self.owner is not None:
            # The steps of an owner continue by `on_done`, not by a future (`ext.driver.request_context`).
            self.hand_over()

    cpdef use(self, Statement statement):
        """Replace the statement by another form of it, before the execution is submitted. Raises ValueError if it
        was submitted, is a script, or the form takes another number of values."""
        if (self.state != ExecutionState.WAITING or self.script is not None
                or statement.nparams != self.statement.nparams):
            raise ValueError("the statement of this request cannot be changed")
        self.statement = statement
        self.renderer = statement.renderer

    cpdef hand_over(self):
        """Call `on_done`, if it has not been called yet."""
        on_done = self.on_done
        if on_done is not None:
            self.on_done = None
            on_done(self)

    @property
    def elapsed(self):
        """Seconds since `began`, including time of waiting. A repetition of an execution may inherit `began`."""
        return now() - self.began

    @property
    def finished(self):
        return self.state == ExecutionState.DONE

    @property
    def streaming(self):
        return self.state == ExecutionState.STREAMING

    @property
    def succeeded(self):
        """Whether the execution is done without an error, a loss, a failure or an overflow."""
        return (self.state == ExecutionState.DONE and self.error is None and self.loss == Loss.NOT_LOST
                and not self.overflowed and self.failure is None)

    @property
    def age(self):
        """For how many seconds the head of a connection has been running its present statement: since it became the
        head, since the previous statement of its script ended, or since its latest pause ended, whichever is latest. 0
        if it is not the head."""
        return now() - self.head_since if self.head_since > 0 else 0.0


def finished_execution(bytes body not None, Py_ssize_t rows, bint is_null):
    """Return an execution that is DONE with this result and did not run, for results from other sources such as the
    cache. Its `statement` is None, and its `began` 0. rows, is_null: as of `Execution`."""
    cdef Execution execution = Execution.__new__(Execution)
    execution.state = ExecutionState.DONE
    execution.loss = Loss.NOT_LOST
    execution.body = body
    execution.rows = execution.first_rows = rows
    execution.is_null = execution.first_null = is_null
    return execution


cdef int check_values(Statement statement, list values) except -1:
    """Raise ValueError for a wrong number of values or a text with a NUL, which libpq would cut off, and TypeError
    for a value that is neither `bytes` nor None; return 0 otherwise. values: None is an empty list. Values in binary
    form are not checked."""
    cdef Py_ssize_t count = 0 if values is None else len(values)
    if count != statement.nparams:
        raise ValueError(f"statement {statement.id} takes {statement.nparams} values, got {count}")
    if statement.binary is not None:
        values = [None if place in statement.binary else value for place, value in enumerate(values)]
    # A bytes object ends with a NUL of its own, so `strlen` gives the whole length if there is no other one.
    for value in values:
        if value is not None and <Py_ssize_t>strlen(PyBytes_AS_STRING(<bytes?>value)) != PyBytes_GET_SIZE(value):
            raise ValueError("a value holds a NUL, where libpq would cut it off")
    return 0
