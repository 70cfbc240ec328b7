"""Drives one libpq connection in pipeline mode. docs/internals/driver.md has the measurements behind each rule.

An execution is one segment: `[Parse if new] [statements ahead] call Sync`, an implicit transaction of its own. It
succeeds when its Sync is read without an error before it, and not earlier: a deferred constraint may still fail after
the last row. Results come in order, so every arriving result belongs to the head of the queue. Rows are rendered into
the connection's one buffer while they arrive; only the bytes of the response remain.

`ext.driver.segment_writer` writes the segments. This module decides nothing about retries, timeouts or pools: it
reports facts (`Loss`, `ServerError`, `seconds`), by which `rowcall.service.database` decides.
"""

from collections import deque

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdlib cimport strtoll
from libc.string cimport strcmp, strncmp

from rowcall.ext.rendering.body_writer cimport BodyWriter
from rowcall.ext.base.buffer cimport Buffer
from rowcall.ext.base.clock cimport now
from rowcall.ext.base.libpq cimport (
    CONNECTION_OK,
    PGRES_COMMAND_OK,
    PGRES_COPY_BOTH,
    PGRES_COPY_IN,
    PGRES_COPY_OUT,
    PGRES_EMPTY_QUERY,
    PGRES_FATAL_ERROR,
    PGRES_PIPELINE_ABORTED,
    PGRES_PIPELINE_SYNC,
    PGRES_SINGLE_TUPLE,
    PGRES_TUPLES_CHUNK,
    PGRES_TUPLES_OK,
    PQTRANS_ACTIVE,
    PQTRANS_IDLE,
    PQTRANS_INERROR,
    PQTRANS_INTRANS,
    PGconn,
    PGresult,
    pq,
)
from rowcall.ext.driver.execution cimport (
    STEP_CALL,
    STEP_PARSE,
    Loss,
    Execution,
    ExecutionState,
    ServerError,
    Statement,
    Step,
    error_field,
    error_of,
)
from rowcall.ext.driver.segment_writer cimport SENT_UNASKED, SegmentWriter

from rowcall.ext.rendering.body_writer import ColumnsChangedError

cdef extern from "<sys/socket.h>" nogil:
    int SHUT_RDWR
    int shutdown(int socket, int how)


cdef enum:
    # If more bytes are waiting, they are sent without waiting for further executions of this loop turn.
    FLUSH_BYTES = 32768
    # A prepared statement with its plan costs the server about 70 kB (docs/internals/driver.md, 8.3).
    MAX_PREPARED = 500
    CHUNK_ROWS = 64

# Parameters that the server reports whenever they change. If one differs from its value at the start, a routine has
# changed the session for later executions (driver-18); this check costs nothing. search_path is reported from
# PostgreSQL 18 on.
cdef tuple WATCHED = (
    b"TimeZone", b"DateStyle", b"IntervalStyle", b"is_superuser", b"client_encoding", b"default_transaction_read_only",
    b"search_path",
)

# Tags of commands that deallocate all statements of the session, and of commands that prepare or deallocate one.
cdef tuple DEALLOCATING = (b"DEALLOCATE ALL", b"DISCARD ALL")
cdef tuple PREPARING = (b"PREPARE", b"DEALLOCATE")

# Seconds for which the end of the connection is awaited after a FATAL error; a server closes it at once.
cdef double END_SECONDS = 1.0

# Weight of the latest run in the moving mean of a statement's durations (`Statement.usual_seconds`).
cdef double NEWEST = 0.0625

cdef str UNEXPECTED_RESULTS = "the answers of the server do not fit the requests"

# Parts of the errors of libpq about the end of a connection (fe-secure.c, fe-secure-openssl.c, fe-misc.c).
cdef tuple ENDS = (
    "server closed the connection unexpectedly", "could not receive data from server",
    "SSL connection has been closed unexpectedly", "SSL SYSCALL error",
)

# Identifiers of endpoint statements start at 1.
cdef Statement ROLLBACK = Statement(0, b"rollback", 0)


cdef void _receive_notice(void *arg, const PGresult *result) noexcept with gil:
    """Pass a notice of libpq to the connection. arg: the `Connection`, borrowed. result: borrowed, valid during the
    call."""
    cdef Connection connection = <Connection>arg
    try:
        connection._notice(result)
    except BaseException:
        # An error of a log handler must not reach libpq, which calls this function while it parses.
        pass


cdef bint _reports_end(const PGresult *result) except -1:
    """Return whether `result` is an error that libpq itself reports because the connection has ended.

    Other errors of libpq itself are about messages that it could not read. Only the text distinguishes these. It is not
    localized, because Python does not set a locale for messages. An unknown text counts as no end, so that nothing is
    repeated that may have taken effect.
    """
    if pq.resultStatus(result) != PGRES_FATAL_ERROR or pq.resultErrorField(result, c"C") != NULL:
        return False
    message = error_field(result, c"M") or (<bytes>pq.resultErrorMessage(result)).decode("utf-8", "replace")
    return any(part in message for part in ENDS)


cdef class Connection:
    """A queue of executions on one `PGconn` that psycopg opened and that is idle and in UTF-8.

    pgconn: the `PGconn` of psycopg, which belongs to this object from now on and is finished when the connection
    closes. loop: the event loop. named: False: statements are not prepared, but parsed for every execution. Raises
    ConnectionError if the connection is not open, or not idle.

    on_closed(connection): called after every execution in flight has been finished with its `Loss`.
    on_notice(label, severity, sqlstate, message, context, owner): called for each notice; label and owner are those of
    the head, or None without a head; sqlstate is empty for a notice of libpq itself; context may be None.
    on_capacity(connection): called after a read that finished at least one execution, and after `end_cancel` if none is
    in flight; not if the connection is `owned`, closes, or begins to drain.
    owner: an object that has to live as long as the connection.
    corked: flushing is deferred: the caller submits several executions at once and calls `flush` itself.
    owned: a transaction over several executions is open; the code that opened it will end it.
    close_reason: why the connection is closed or drains; None: neither.
    """

    def __init__(self, pgconn, loop, bint named=True):
        cdef size_t pointer = pgconn.pgconn_ptr
        self.pgconn = pgconn
        self.loop = loop
        self.conn = <PGconn *>pointer
        self.queue = deque()
        self.writer = SegmentWriter()
        self.admitted = []
        self.buffer = Buffer()
        self.created = now()
        self.state = ConnectionState.READY
        if pq.status(self.conn) != CONNECTION_OK:
            raise ConnectionError("the connection is not open")
        pq.setnonblocking(self.conn, 1)
        if pq.enterPipelineMode(self.conn) != 1:
            raise ConnectionError("the connection is busy and cannot enter pipeline mode")
        pq.setNoticeReceiver(self.conn, _receive_notice, <void *>self)
        self.session_parameters = self._session_parameters()
        self.writer.connect(self.conn, named)
        self.backend_pid = pq.backendPID(self.conn)
        self.fd = pq.socket(self.conn)
        self.on_readable_method = self.on_readable
        self.flush_method = self.flush
        # The reader is active on an idle connection too, so that the end of the backend is noticed at once.
        loop.add_reader(self.fd, self.on_readable_method)

    # --- submitting ------------------------------------------------------------------------------------------------

    cpdef bint submit(self, Execution execution) except -1:
        """Submit an execution. Return whether this connection will finish it; False: the connection does not accept it.

        If the connection turns out to be dead while submitting, the execution is finished with `Loss.NOT_STARTED`.
        Raises ValueError or TypeError for values that cannot be sent.
        """
        if self.state != ConnectionState.READY:
            return False
        if execution.statement.guarded and execution.statement.name not in self.writer.prepared:
            return False
        self.place(execution)
        return True

    cdef int place(self, Execution execution) except -1:
        """Write and queue an execution, which is WAITING, whatever the state of the connection is. Raises what `submit`
        raises."""
        cdef bint idle = self.head is None
        try:
            self.writer.write(execution)
        except BaseException:
            self._give_up_segment(execution)
            raise
        return self._queue(execution, idle)

    cdef int _give_up_segment(self, Execution execution) except -1:
        """Close the connection if a part of the segment of an execution has been written, before the error is raised.

        libpq cannot take the part back, and the next execution would get its results.
        """
        if execution.step_count > 0:
            self._lose("a request could not be placed completely")
        return 0

    cpdef bint submit_all(self, Execution execution, list statements) except -1:
        """Submit several statements without parameters and results as one segment, represented by `execution`, whose
        own statement is not run.

        Unlike `submit`, this also works while the connection drains, is paused, or is being cancelled. Returns False if
        the connection is closed. Raises ValueError, and closes the connection, for more statements than the segment has
        room for, which are at least 32 in a new execution.
        """
        cdef bint idle = self.head is None
        if self.state == ConnectionState.CLOSED:
            return False
        try:
            self.writer.write_all(execution, statements)
        except BaseException:
            self._give_up_segment(execution)
            raise
        self._queue(execution, idle)
        return True

    cdef int _queue(self, Execution execution, bint idle) except -1:
        """Put a written execution behind those in flight, and flush now or in this turn of the event loop.

        idle: no execution was in flight before. Closes the connection if libpq has refused a message.
        """
        cdef int synced = self.writer.sync()
        execution.state = ExecutionState.SENT
        execution.flush_mark = self.flushes
        if self.writer.unsent_bytes >= SENT_UNASKED:
            # libpq may have sent the segment already: it counts as flushed, with all segments before.
            self.flushes += 1
        self.in_flight += 1
        if idle:
            self.head = execution
            self._start_head()
        else:
            self.queue.append(execution)
        if self.writer.failed or not synced:
            self._lose(self._libpq_message())
            return 0
        # On a busy connection, the segments of one loop turn are sent together. An idle connection flushes at once,
        # unless the last flush had several segments: then more are likely to come in this turn.
        self.gathered += 1
        if (idle and not self.busy and not self.corked) or self.writer.unsent_bytes > FLUSH_BYTES:
            self._flush_now()
        elif not self.flush_scheduled:
            self.flush_scheduled = True
            self.loop.call_soon(self.flush_method)
        return 0

    def flush(self):
        """Send all submitted executions. Called by the event loop, and by callers after corking."""
        self.flush_scheduled = False
        if self.state != ConnectionState.CLOSED:
            self._flush_now()

    cdef int _flush_now(self) except -1:
        """Send all waiting bytes; if the socket does not take all, the event loop continues when it is writable."""
        cdef int left = pq.flush(self.conn)
        # If bytes are left, libpq sends further ones without a call when its buffer is full.
        self.writer.unsent_bytes = SENT_UNASKED if left > 0 else 0
        self.flushes += 1
        if self.gathered > 0:
            self.busy = self.gathered > 1
            self.gathered = 0
        if left < 0:
            # Data received before the peer closed the connection may still contain results.
            self.on_readable()
            if self.state != ConnectionState.CLOSED:
                self.ended = True
                self._lose(self._libpq_message())
            return 0
        if left > 0 and not self.writer_registered:
            self.writer_registered = True
            self.loop.add_writer(self.fd, self.flush_method)
        elif left == 0 and self.writer_registered:
            self.writer_registered = False
            self.loop.remove_writer(self.fd)
        return 0

    # --- receiving -------------------------------------------------------------------------------------------------

    def on_readable(self):
        """Read all data that has arrived and finish complete executions. Called by the event loop."""
        cdef bint alive
        if self.state == ConnectionState.CLOSED or self.state == ConnectionState.PAUSED:
            return
        # libpq sends waiting data before it reads, so all submitted executions count as sent.
        self.flushes += 1
        alive = pq.consumeInput(self.conn) == 1 and pq.status(self.conn) == CONNECTION_OK
        if not alive:
            self.ended = True
            if self.fatal_reason is not None:
                self._lose(self.fatal_reason)
                return
            self._read_fatal_error()
            self._lose(self._libpq_message())
            return
        self._handle_results()

    cdef int _handle_results(self) except -1:
        """Handle the results that have arrived, up to an incomplete one or a pause."""
        cdef PGresult *result
        cdef Execution execution
        cdef long served = self.served
        # Without a head, only a notice, a parameter change, or a FATAL before the end of the connection is expected.
        while self.head is not None and self.state != ConnectionState.PAUSED:
            if pq.isBusy(self.conn):
                break
            result = pq.getResult(self.conn)
            if result != NULL:
                self._result(result)
                if self.state == ConnectionState.CLOSED:
                    return 0
                continue
            # NULL: the results of one command are complete, and the next command begins.
            execution = self.head
            execution.step += 1
            # There is one step more than commands: an error of the commit itself follows the last command.
            if execution.step > execution.step_count + 1 or pq.status(self.conn) != CONNECTION_OK:
                self._lose(self.fatal_reason or UNEXPECTED_RESULTS)
                return 0
            if execution.step < execution.step_count and execution.steps[execution.step] == STEP_CALL:
                self._ask_for_rows(self.head)
        if self.head is None:
            # A result behind the last expected one would be read for the next execution: this call lets libpq drop it,
            # with a notice.
            pq.isBusy(self.conn)
            if self.end_notice is not None:
                self._lose(self.end_notice)
                return 0
        if self.served != served:
            self._batch_done()
        return 0

    cdef int _result(self, PGresult *result) except -1:
        """Handle one result for the head, and free it, also after an error."""
        cdef int status = pq.resultStatus(result)
        cdef Execution execution = self.head
        try:
            if self.fatal_reason is not None:
                # PGRES_PIPELINE_ABORTED is made by libpq for commands behind a failed one. Other results are from the
                # server, or report that the connection has ended.
                if status != PGRES_PIPELINE_ABORTED:
                    self.ended = _reports_end(result)
                    self._lose(self.fatal_reason)
            elif status == PGRES_PIPELINE_SYNC:
                # A Sync before the results of all commands is a violation of the protocol.
                if execution.step < execution.step_count:
                    self._lose(UNEXPECTED_RESULTS)
                else:
                    self._finish_head()
            elif status == PGRES_FATAL_ERROR:
                self._error(execution, result)
            elif execution.step >= execution.step_count:
                self._lose(UNEXPECTED_RESULTS)
            elif status == PGRES_TUPLES_CHUNK or status == PGRES_SINGLE_TUPLE:
                self._rows(execution, result)
            elif status == PGRES_COMMAND_OK or status == PGRES_TUPLES_OK:
                if execution.steps[execution.step] == STEP_PARSE:
                    execution.parse += 1
                elif execution.steps[execution.step] == STEP_CALL:
                    self._end_of_rows(execution, result)
                    if status == PGRES_COMMAND_OK:
                        self._check_command(result)
            elif status == PGRES_PIPELINE_ABORTED:
                if execution.steps[execution.step] == STEP_PARSE:
                    self.writer.drop_parse(execution)
            elif status == PGRES_COPY_IN or status == PGRES_COPY_OUT or status == PGRES_COPY_BOTH:
                # libpq returns this status forever; only closing the connection ends it.
                self._lose("COPY cannot run through an endpoint")
            elif status == PGRES_EMPTY_QUERY and execution.steps[execution.step] == STEP_CALL:
                # The statement consists of a comment only.
                self._end_of_rows(execution, result)
            elif status != PGRES_EMPTY_QUERY:
                self._lose(UNEXPECTED_RESULTS)
        finally:
            pq.clear(result)
        return 0

    cdef int _end_of_rows(self, Execution execution, PGresult *result) except -1:
        """Handle the end of a statement, whose last result is `result`.

        Its rows have come before, in chunks, so this result has none. If it has rows, or the number of received rows is
        not that of the command tag, the connection is closed. If a query had no rows, its columns are checked here; an
        error becomes the `failure` of the execution. For a script, this statement's part of the body is completed.
        """
        cdef BodyWriter renderer = execution.renderer
        execution.seen_result = True
        if pq.ntuples(result) > 0:
            self._lose("libpq has not switched to giving rows as they arrive")
        elif not self._all_rows_arrived(execution, result):
            self._lose(UNEXPECTED_RESULTS)
        elif execution.rows == 0 and renderer is not None and pq.resultStatus(result) == PGRES_TUPLES_OK:
            try:
                # A result without rows is checked too: its columns may no longer be those of the endpoint.
                execution.plan = renderer.plan_for(result)
            except Exception as error:
                execution.failure = error
        if execution.script is not None and self.state != ConnectionState.CLOSED:
            self._end_of_part(execution, result)
        return 0

    cdef bint _all_rows_arrived(self, Execution execution, PGresult *result) noexcept:
        """Return whether the number of received rows equals that in the command tag, and reset both for the next
        statement.

        Only queries are compared: `INSERT ... RETURNING` on a view counts the rows that its rule has inserted.
        """
        cdef bint complete = True
        self._read_tag(execution, result)
        if pq.resultStatus(result) == PGRES_TUPLES_OK and execution.has_tag:
            complete = execution.announced_rows == execution.received_rows
        execution.received_rows = 0
        execution.has_tag = False
        return complete

    cdef int _read_tag(self, Execution execution, PGresult *result) noexcept:
        """Read the announced number of rows if this result has the command tag of a query.

        libpq adds the tag to the last result with rows or, behind a full chunk, to the empty result.
        """
        cdef const char *tag = pq.cmdStatus(result)
        if strncmp(tag, b"SELECT ", 7) == 0:
            execution.announced_rows = strtoll(tag + 7, NULL, 10)
            execution.has_tag = True
        return 0

    cdef int _end_of_part(self, Execution execution, PGresult *result) except -1:
        """Handle the end of one statement of a script, whose last result is `result`: complete its part of the body and
        prepare for the next one. An error of its renderer becomes the `failure`."""
        cdef BodyWriter renderer = execution.renderer
        if renderer is not None and execution.failure is None and execution.state != ExecutionState.DISCARDING:
            try:
                if execution.rows == 0:
                    renderer.begin(execution.plan, self.buffer)
                renderer.complete(execution.plan, self.buffer, result, execution.rows)
            except Exception as error:
                execution.failure = error
                self._discard(execution)
        # Each statement may take the whole time limit of one statement (sql-files-28).
        cdef double ended = now()
        execution.seconds += ended - execution.head_since
        execution.head_since = ended
        execution.part += 1
        execution.start_part()
        return 0

    cdef int _check_command(self, PGresult *result) except -1:
        """Drain the connection after a command of an SQL file that changes the prepared statements of the session.

        result: the last result of the command, with its tag. `prepared` no longer describes the session then, so no
        other execution may use the connection. The file itself continues, and its statements are prepared again.
        """
        if self.state == ConnectionState.CLOSED:
            return 0
        command = <bytes>pq.cmdStatus(result)
        if command in DEALLOCATING:
            self.writer.prepared.clear()
        if command in DEALLOCATING or command in PREPARING:
            self.drain("a file prepared or deallocated statements")
        return 0

    cdef int _ask_for_rows(self, Execution execution) except -1:
        """Request rows as they arrive instead of one complete result.

        Rows come in chunks, because libpq copies the whole column description for each result. They come one by one if
        rows are so wide that a chunk would be large, or if libpq does not support chunks.
        """
        if pq.setChunkedRowsMode != NULL and not execution.wide_rows:
            pq.setChunkedRowsMode(self.conn, CHUNK_ROWS)
        else:
            pq.setSingleRowMode(self.conn)
        return 0

    cdef int _rows(self, Execution execution, PGresult *result) except -1:
        """Render rows of the head, if they are those of its call. Pause if enough of a streamed body is buffered. If
        the body exceeds its limit, set `overflowed`, and drop the body and all further rows.

        If rendering fails, the error becomes the `failure` of the execution, and its rows are dropped.
        """
        cdef BodyWriter renderer = execution.renderer
        cdef int row, count
        execution.seen_result = True
        execution.received_rows += pq.ntuples(result)
        self._read_tag(execution, result)
        if (renderer is None or execution.steps[execution.step] != STEP_CALL
                or execution.state == ExecutionState.DISCARDING or execution.failure is not None
                or (execution.first_row_only and execution.rows > 0)):
            return 0
        # With `first_row_only`, no row has been written yet.
        count = 1 if execution.first_row_only else pq.ntuples(result)
        try:
            if execution.rows == 0:
                execution.plan = renderer.plan_for(result)
                renderer.begin(execution.plan, self.buffer)
            if renderer._one_row and execution.rows + count > 1:
                raise ColumnsChangedError("the result has several rows where one was expected")
            for row in range(count):
                execution.is_null = renderer.row(execution.plan, self.buffer, result, row, execution.rows) == 1
                execution.rows += 1
        except Exception as error:
            execution.failure = error
            self._discard(execution)
            return 0
        if execution.stream_after > 0 and (
            self.buffer.length >= execution.stream_after
            or (execution.flush_rows > 0 and execution.rows - execution.flushed_rows >= execution.flush_rows)
        ):
            execution.flushed_rows = execution.rows
            execution.state = ExecutionState.STREAMING
            self._enter(ConnectionState.PAUSED)
            execution.wake()
            if execution.on_done is not None:
                # The loop calls the callback later: this code runs within reading, and the callback may continue
                # reading. As an object: Cython would make a function of the C method and call it with an argument
                # too few.
                self.loop.call_soon((<object> execution).hand_over)
        elif execution.limit > 0 and self.buffer.length > execution.limit:
            execution.overflowed = True
            self._discard(execution)
        return 0

    cdef int _discard(self, Execution execution) except -1:
        """Drop the rendered part of the head's body and its further rows."""
        if execution.state != ExecutionState.STREAMING:
            execution.state = ExecutionState.DISCARDING
        self.buffer.clear()
        return 0

    cdef int _error(self, Execution execution, PGresult *result) except -1:
        """Handle an error of the head, and drain or close the connection if the session may be damaged."""
        cdef ServerError error = error_of(result)
        cdef Step step = STEP_CALL
        if not error.sqlstate:
            # Without an SQLSTATE the error is from libpq itself: it could not read a message, and later ones are
            # undefined.
            self._lose(error.message)
            return 0
        # Behind the last command, the error is one of the commit.
        if execution.step < execution.step_count:
            step = <Step>execution.steps[execution.step]
        # 26000: no such prepared statement; 42P05: the name is taken already; 25P02: the transaction has failed before.
        if step == STEP_PARSE:
            self.writer.drop_parse(execution)
        elif error.sqlstate == "26000" and self.writer.is_statement_prepared(execution, step):
            self.drain("a routine deallocated prepared statements")
        elif error.sqlstate == "42P05":
            self.drain("a routine left a prepared statement")
        elif error.sqlstate == "25P02" and not self.owned:
            self.drain("a transaction was left open")
        if execution.error is None:
            execution.error = error
            execution.failed_ahead = execution.step < execution.steps_ahead
        if error.severity == "FATAL" or error.severity == "PANIC":
            self._await_end(error.message)
        return 0

    cdef int _await_end(self, str reason) except -1:
        """Accept no more executions, and close when the server has ended the connection, after `END_SECONDS` at the
        latest.

        A FATAL error proves that later executions have not run only if the connection has ended after it (driver-24).
        """
        self.fatal_reason = reason
        self.close_reason = reason
        if self.state != ConnectionState.DRAINING:
            self._enter(ConnectionState.DRAINING)
        self.end_timer = self.loop.call_later(END_SECONDS, self.close, reason)
        # libuv reports a reset connection once and then stops watching it, so an end that has arrived is read here.
        self.loop.call_soon(self.on_readable_method)
        return 0

    cdef int _finish_head(self) except -1:
        """Finish the head with its body, unless it continues, and begin with the next execution."""
        cdef Execution execution = self.head
        cdef BodyWriter renderer = execution.renderer
        cdef double seconds = now() - execution.head_since
        execution.seconds += seconds
        execution.statement.usual_seconds += (seconds - execution.statement.usual_seconds) * NEWEST
        if execution.script is not None:
            if self._continue_head(execution):
                return 0
            if execution.error is None and execution.failure is None and execution.state != ExecutionState.DISCARDING:
                try:
                    self.buffer.append(
                        PyBytes_AS_STRING(execution.script.tail), PyBytes_GET_SIZE(execution.script.tail)
                    )
                    execution.body = self.buffer.take()
                except Exception as error:
                    # The execution is finished with this failure, and the connection stays usable for the next one.
                    execution.failure = error
            self.buffer.clear()
        elif execution.error is None and execution.failure is None and renderer is not None \
                and execution.state != ExecutionState.DISCARDING:
            try:
                if execution.rows == 0:
                    renderer.begin(execution.plan, self.buffer)
                renderer.end(execution.plan, self.buffer, execution.rows)
                execution.body = self.buffer.take()
            except Exception as error:
                execution.failure = error
                self.buffer.clear()
        elif self.buffer.length:
            self.buffer.clear()
        # The callback of the execution may submit another one, so the queue is advanced before it is called.
        self.served += 1
        self.in_flight -= 1
        self.head = self.queue.popleft() if self.queue else None
        if self.head is not None:
            self._start_head()
        self._finish(execution)
        return 0

    cdef bint _continue_head(self, Execution execution) except -1:
        """Send what a script at the head still needs; return whether the head continues, or the connection was closed.

        If no error has occurred, this is its next segment, and the execution is marked as `committed`, as an earlier
        segment may be. Otherwise it is a rollback, if the script has left a transaction open and the connection is not
        `owned`. If executions wait behind the head, the connection is closed instead of sending a segment.
        """
        if execution.rolling_back or self.state == ConnectionState.CLOSED:
            return False
        try:
            if execution.error is None and execution.failure is None and execution.state != ExecutionState.DISCARDING \
                    and execution.placed < len(execution.script.parts):
                # A Sync was read without an error, so a transaction may have been committed here.
                execution.committed = True
                if self.queue:
                    return self._lose_out_of_order()
                if execution.notice_listener is not None and pq.transactionStatus(self.conn) == PQTRANS_IDLE:
                    execution.notice_listener.end(True)
                return self._place_more(execution)
            if not self.owned and pq.transactionStatus(self.conn) in (PQTRANS_INTRANS, PQTRANS_INERROR):
                return self._roll_back(execution)
        except BaseException:
            self._lose("a script could not be continued")
            raise
        return False

    cdef bint _lose_out_of_order(self) except -1:
        """Close the connection, because the head continues although executions wait behind it; return True.

        Its next segment would be sent behind them, and each of them would get the results of another one. A script has
        its connection to itself, so this is a fault of the service.
        """
        self._lose("a script continues behind other requests")
        return True

    cdef int _place_more(self, Execution execution) except -1:
        """Send the next segment of a script; return 1."""
        self.writer.write_part(execution)
        return self._send_more(execution)

    cdef int _roll_back(self, Execution execution) except -1:
        """Roll back the transaction that a script has left open; return 1.

        The reset of the session would do so too, but may not run on this connection.
        """
        execution.rolling_back = True
        self.writer.write_all(execution, [ROLLBACK])
        return self._send_more(execution)

    cdef int _send_more(self, Execution execution) except -1:
        """End another segment of the head; return 1. It is flushed by the loop, because this code runs within
        reading."""
        cdef int synced = self.writer.sync()
        execution.flush_mark = self.flushes
        if self.writer.unsent_bytes >= SENT_UNASKED:
            self.flushes += 1
        if self.writer.failed or not synced:
            self._lose(self._libpq_message())
            return 1
        self._start_head()
        if not self.flush_scheduled:
            self.flush_scheduled = True
            self.loop.call_soon(self.flush_method)
        return 1

    cdef int _finish(self, Execution execution) except -1:
        """Finish an execution, which need not be the head, and call its callbacks. An error of a callback is passed to
        the event loop, because it must not affect other executions."""
        try:
            execution.finish()
        except Exception as error:
            self.loop.call_exception_handler({"message": "a request's callback failed", "exception": error})
        return 0

    cdef int _start_head(self) except -1:
        """Begin to expect the results of the head, and count its time from now on."""
        self.head.head_since = now()
        if self.head.steps[0] == STEP_CALL:
            self._ask_for_rows(self.head)
        return 0

    cdef int _batch_done(self) except -1:
        """Check the connection after executions have finished; if it remains usable, call `on_capacity`.

        The connection is closed if, with no execution in flight, a transaction was left open or unexpected results
        wait. It is drained if the session has changed or has too many prepared statements, and closed if it drains and
        no execution is in flight. While it is `owned`, only the last rule applies, and `on_capacity` is not called.

        Called after a read that finished executions, and by `end_cancel`. This costs no round trip.
        """
        if self.state == ConnectionState.CLOSED:
            return 0
        if self.owned:
            # Settings of an open transaction end with it; the session is checked afterwards.
            return self._finish_draining()
        if self.head is None:
            status = pq.transactionStatus(self.conn)
            if status == PQTRANS_ACTIVE:
                # libpq waits for results that belong to no execution.
                self._lose(UNEXPECTED_RESULTS)
                return 0
            if status != PQTRANS_IDLE:
                self._lose("a routine left a transaction open")
                return 0
        if self.state == ConnectionState.READY and self._session_changed():
            self.drain("a routine changed the session")
            return 0
        if self.state == ConnectionState.READY and len(self.writer.prepared) > MAX_PREPARED:
            # Simpler than closing the oldest one, and not more expensive: a new session every few hundred statements.
            self.drain("too many prepared statements")
            return 0
        if self.state == ConnectionState.DRAINING and self.head is None:
            return self._finish_draining()
        if self.on_capacity is not None:
            self.on_capacity(self)
        return 0

    cdef int _finish_draining(self) except -1:
        """Close the connection if it drains and no execution is in flight."""
        if self.state == ConnectionState.DRAINING and self.head is None:
            self._lose(self.close_reason)
        return 0

    cdef bint _session_changed(self) except -1:
        """Return whether a watched parameter differs from its value at the start or, if that is later, at the latest
        `accept_session`."""
        cdef const char *value
        cdef Py_ssize_t index
        for index in range(len(WATCHED)):
            value = pq.parameterStatus(self.conn, PyBytes_AS_STRING(<bytes>WATCHED[index]))
            if value != NULL and strcmp(value, PyBytes_AS_STRING(<bytes>self.session_parameters[index])) != 0:
                return True
        return False

    cdef tuple _session_parameters(self):
        """Return the present value (bytes) of each parameter in WATCHED; for one that the server does not report, an
        empty value."""
        cdef const char *value
        cdef list values = []
        for name in WATCHED:
            value = pq.parameterStatus(self.conn, PyBytes_AS_STRING(<bytes>name))
            values.append(b"" if value == NULL else <bytes>value)
        return tuple(values)

    cpdef accept_session(self):
        """Record the present session parameters as the expected ones, after a reset that is known to be complete."""
        self.session_parameters = self._session_parameters()

    cpdef bint knows(self, Statement statement) except -1:
        """Return whether `statement` is prepared on this connection."""
        return statement.name in self.writer.prepared

    cpdef admit(self, Statement statement):
        """Let this connection run a guarded statement that an execution has prepared
        (`Execution.guarded_to_prepare`). No effect if the connection is closed or runs it already."""
        if self.state != ConnectionState.CLOSED and statement.name not in self.writer.prepared:
            self.writer.prepared.add(statement.name)
            # Recorded, so that the number of admissions is reduced when the connection closes.
            self.admitted.append(statement)
            statement.admissions += 1

    cpdef bytes parameter_status(self, bytes name):
        """Return the value of a parameter that the server reports; empty if the server does not report it, or the
        connection is closed. name: such as `server_version`, in ASCII."""
        cdef const char *value = NULL
        if self.state != ConnectionState.CLOSED:
            value = pq.parameterStatus(self.conn, PyBytes_AS_STRING(name))
        return b"" if value == NULL else <bytes>value

    cdef int _notice(self, const PGresult *result) except -1:
        """Pass a notice to the listener of the head and to `on_notice`.

        If the server ends the connection by this notice, or libpq reports an unexpected message by it, its text is
        stored in `end_notice` too.
        """
        cdef str severity = error_field(result, c"V") or "NOTICE"
        if severity == "FATAL":
            # On an idle connection, libpq reports the last message of the server as a notice. No execution may follow.
            self.end_notice = error_field(result, c"M") or "the server has ended the connection"
        elif pq.resultErrorField(result, c"C") == NULL and self.end_notice is None:
            # Without an SQLSTATE the notice is from libpq itself: an unexpected message has arrived and was dropped.
            self.end_notice = UNEXPECTED_RESULTS
        if self.head is not None and self.head.notice_listener is not None:
            self._pass_to_listener(self.head.notice_listener, severity, result)
        if self.on_notice is None:
            return 0
        # A notice is attributed to the head, which is exact enough for logging (docs/internals/driver.md, 7).
        label = None if self.head is None else self.head.label
        owner = None if self.head is None else self.head.owner
        message = error_field(result, c"M") or ""
        self.on_notice(label, severity, error_field(result, c"C") or "", message, error_field(result, c"W"), owner)
        return 0

    cdef int _pass_to_listener(self, notice_listener, str severity, const PGresult *result) except -1:
        """Pass a notice, whose severity is known already, to the listener of the head. After an error of the listener,
        which the event loop gets, the notice is logged all the same."""
        cdef str sqlstate = error_field(result, c"C") or ""
        cdef str message = error_field(result, c"M") or ""
        try:
            notice_listener.hear(severity, sqlstate, message, error_field(result, c"H"))
        except Exception as error:
            self.loop.call_exception_handler({"message": "a notice listener failed", "exception": error})
        return 0

    # --- streaming -------------------------------------------------------------------------------------------------

    cpdef bytes take(self):
        """Return the rendered part of the body of the head, and empty the buffer. May only be called while PAUSED.
        Raises MemoryError."""
        return self.buffer.take()

    cpdef resume(self):
        """Continue to read the result of the head after a pause; its time counts anew. No effect unless the connection
        is PAUSED. The caller sets a new `waiter` of the execution first, because the next part may arrive during the
        call."""
        if self.state != ConnectionState.PAUSED:
            return
        # While the connection was paused, `drain` has only recorded the reason.
        if self.close_reason is not None:
            self._enter(ConnectionState.DRAINING)
        else:
            self._enter(ConnectionState.CANCELLING if self.cancelling else ConnectionState.READY)
        if self.head is not None:
            self.head.head_since = now()
        self._handle_results()
        if self.state != ConnectionState.PAUSED:
            self.on_readable()

    cpdef abandon(self):
        """Read and drop the remaining rows of the head, because its client is gone."""
        if self.head is not None and self.head.state != ExecutionState.DONE:
            self.buffer.clear()
            self.head.stream_after = 0
            self.head.state = ExecutionState.DISCARDING
            self.head.abandoned = True
        self.resume()

    # --- ending ----------------------------------------------------------------------------------------------------

    cpdef bint begin_cancel(self, Execution execution) except -1:
        """Stop accepting executions for the time of a cancel request. Return False, and change nothing, if `execution`
        is not the head, or the connection is not READY.

        Meanwhile, only the reset of the execution may be queued (`submit_all`).
        """
        if self.state != ConnectionState.READY or self.head is not execution:
            return False
        self.cancelling = True
        self._enter(ConnectionState.CANCELLING)
        return True

    cpdef end_cancel(self):
        """Record that the cancel request has returned, so that the connection accepts executions again."""
        self.cancelling = False
        if self.state == ConnectionState.CANCELLING:
            self._enter(ConnectionState.READY)
            if self.head is None:
                self._batch_done()

    cpdef list late(self, double grace):
        """Return the executions whose time limit has passed, except those that have a `failure`, such as executions
        that were given up. The limit is `timeout` seconds after `began`.

        The head is returned only `grace` seconds after its limit, because the server enforces the limit too, and the
        result may be arriving. Within a transaction over several executions, only the head is checked, and its time
        counts from the moment at which it became the head.
        """
        cdef Execution execution
        cdef list overdue = []
        cdef double moment = now()
        if self.head is not None and self.head.timeout > 0 and self.head.failure is None \
                and moment - (self.head.head_since if self.owned else self.head.began) > self.head.timeout + grace:
            overdue.append(self.head)
        if self.owned:
            return overdue
        for execution in self.queue:
            if execution.timeout > 0 and execution.failure is None and moment - execution.began > execution.timeout:
                overdue.append(execution)
        return overdue

    @property
    def repeatable(self):
        """Whether every execution in flight may be repeated on another connection."""
        cdef Execution execution
        if self.head is not None and not self.head.statement.repeatable:
            return False
        for execution in self.queue:
            if not execution.statement.repeatable:
                return False
        return True

    cpdef drain(self, str reason):
        """Accept no more executions, and close when none is in flight, which may be now. No effect if the connection is
        closed or drains already."""
        if self.state == ConnectionState.CLOSED or self.state == ConnectionState.DRAINING:
            return
        self.close_reason = reason
        if self.head is None:
            self._lose(reason)
        elif self.state == ConnectionState.READY or self.state == ConnectionState.CANCELLING:
            self._enter(ConnectionState.DRAINING)

    cpdef close(self, str reason):
        """Close now. Executions in flight are finished as lost. No effect if the connection is closed."""
        if self.state != ConnectionState.CLOSED:
            self._lose(reason)

    cdef str _libpq_message(self):
        """Return the latest error message of libpq; if it is empty, a general text."""
        message = (<bytes>pq.errorMessage(self.conn)).decode("utf-8", "replace").strip()
        return message or "the connection to the server was lost"

    cdef int _read_fatal_error(self) except -1:
        """After a failed read, read one more result, if one is complete. If it is a FATAL error, it becomes the
        error of the head, unless the head has one."""
        cdef PGresult *result
        cdef ServerError error
        if self.head is None or self.head.error is not None or pq.isBusy(self.conn):
            return 0
        result = pq.getResult(self.conn)
        if result == NULL:
            return 0
        if pq.resultStatus(result) == PGRES_FATAL_ERROR and pq.resultErrorField(result, c"C") != NULL:
            error = error_of(result)
            if error.severity == "FATAL":
                self.head.error = error
        pq.clear(result)
        return 0

    cdef int _lose(self, str reason) except -1:
        """Close the connection and finish every execution in flight with what is known about it (driver-24). No effect
        if the connection is closed."""
        cdef Execution execution
        cdef list lost = []
        cdef bint behind_fatal = False
        cdef bint unsent = False
        if self.state == ConnectionState.CLOSED:
            return 0
        self.close_reason = reason
        self._enter(ConnectionState.CLOSED)
        if self.head is not None:
            self.head.seconds += now() - self.head.head_since
            lost.append(self.head)
        lost.extend(self.queue)
        self.head = None
        self.queue.clear()
        self.in_flight = 0
        for statement in self.admitted:
            (<Statement>statement).admissions -= 1
        self.admitted.clear()
        # In the order in which the server runs them. behind_fatal: the server has ended the session because of an
        # execution in front, so that it has not run this one.
        for execution in lost:
            unsent = unsent or execution.flush_mark == self.flushes
            if execution.committed:
                # An earlier transaction of this script is permanent.
                execution.loss = Loss.IN_DOUBT
                behind_fatal = self.ended and execution.error is not None and execution.error.severity == "FATAL"
            elif behind_fatal or execution.flush_mark == self.flushes:
                execution.loss = Loss.NOT_STARTED
            elif execution is lost[0] and execution.error is not None and execution.error.severity == "FATAL":
                behind_fatal = self.ended
                # 57P01 to 57P05: the server was shut down or the session terminated, which rolls back its transaction.
                known = self.ended and execution.error.sqlstate.startswith("57P") and not execution.seen_result
                execution.loss = Loss.ROLLED_BACK if known else Loss.IN_DOUBT
            else:
                execution.loss = Loss.IN_DOUBT
        self.buffer.release()
        if self.end_timer is not None:
            self.end_timer.cancel()
            self.end_timer = None
        self.loop.remove_reader(self.fd)
        if self.writer_registered:
            self.loop.remove_writer(self.fd)
            self.writer_registered = False
        self.conn = NULL
        self.writer.conn = NULL
        if unsent:
            # PQfinish would send the waiting messages ahead of its Terminate, and the server would run them.
            shutdown(self.fd, SHUT_RDWR)
        self.pgconn.finish()
        for execution in lost:
            self._finish(execution)
        self.owner = None
        # These bound methods refer to the connection. The garbage collector could not free this cycle, because it does
        # not see references within C.
        self.on_readable_method = None
        self.flush_method = None
        if self.on_closed is not None:
            self.on_closed(self)
        return 0

    cdef int _enter(self, ConnectionState state) except -1:
        """Change the state; the only place that does so. The socket is not read while PAUSED."""
        if self.state == ConnectionState.PAUSED and state != ConnectionState.PAUSED and state != ConnectionState.CLOSED:
            self.loop.add_reader(self.fd, self.on_readable_method)
        elif state == ConnectionState.PAUSED:
            self.loop.remove_reader(self.fd)
        self.state = state
        return 0
