"""Writes segments into the buffer of libpq, and records which statements they prepare.

A segment is `[Parse if new] [statements ahead] call Sync`. `ext.driver.connection` decides when a segment is written
and sent, and reads its results. A part of a segment cannot be taken back, so all values are checked before its first
byte is written.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc

from rowcall.ext.base.libpq cimport pq
from rowcall.ext.driver.execution cimport (
    STEP_AHEAD,
    STEP_CALL,
    STEP_PARSE,
    STEP_RESET,
    Part,
    check_values,
    formats_of,
    types_of,
)


cdef enum:
    # Number of values for which the arrays of a message are on the stack.
    FEW_PARAMETERS = 64
    # Upper limit for the bytes of the messages around a statement's text, values and name.
    MESSAGE_BYTES = 96


cdef class SegmentWriter:
    """Writes the segments of one connection. The methods set `failed` if libpq has refused a message."""

    def __cinit__(self):
        self.prepared = set()

    cdef int connect(self, PGconn *conn, bint named) noexcept:
        """Set the connection, which is borrowed and in pipeline mode. named: statements are prepared; otherwise a
        statement is parsed for every execution."""
        self.conn = conn
        self.named = named
        return 0

    cdef int write(self, Execution execution) except -1:
        """Write the first segment of an execution, without its Sync. Raises ValueError or TypeError for values that
        cannot be sent."""
        _start_segment(execution)
        # All values are checked before the first byte: after a part of a segment, the connection has to be closed.
        check_values(execution.statement, execution.values)
        if execution.ahead is not None:
            for statement, values in execution.ahead:
                check_values(statement, values)
        if execution.script is not None:
            execution.placed = execution.part = 0
            execution.start_part()
            return self.write_part(execution)
        if execution.ahead is not None:
            execution.make_room(2 * (<int>len(execution.ahead) + 1))
            for statement, values in execution.ahead:
                self.command(execution, statement, values, STEP_AHEAD)
            execution.steps_ahead = execution.step_count
        if execution.guarded_to_prepare is not None:
            self._parse(execution, execution.guarded_to_prepare)
            # The statement counts as prepared only after `admit`.
            self.prepared.discard(execution.guarded_to_prepare.name)
        self.command(execution, execution.statement, execution.values, STEP_CALL)
        return 0

    cdef int write_part(self, Execution execution) except -1:
        """Write the next segment of the script of an execution, without its Sync: the statements from `placed` up to
        and including the next `last` one. Their values have been checked by `write`."""
        cdef tuple parts = execution.script.parts
        cdef Part part
        cdef int placed = execution.placed
        cdef int room = 0
        _start_segment(execution)
        execution.steps_ahead = 0
        # Each statement may have a Parse, so it has up to two steps.
        while True:
            part = <Part>parts[placed]
            placed += 1
            room += 2
            if part.ahead_first and execution.ahead is not None:
                room += 2 * <int>len(execution.ahead)
            if part.last:
                break
        execution.make_room(room)
        while execution.placed < placed:
            part = <Part>parts[execution.placed]
            if part.ahead_first and execution.ahead is not None:
                for statement, values in execution.ahead:
                    self.command(execution, statement, values, STEP_AHEAD)
                if execution.placed == 0:
                    execution.steps_ahead = execution.step_count
            self.command(execution, part.statement, execution.values, STEP_CALL)
            # Without a flush request, the server delays results until the Sync, and the service would not know which
            # statement of the script is running.
            if execution.unlimited and not part.last and not pq.sendFlushRequest(self.conn):
                self.failed = True
            execution.placed += 1
        return 0

    cdef int write_all(self, Execution execution, list statements) except -1:
        """Write statements without parameters as one segment of `execution`, without its Sync. Raises ValueError,
        behind a part of the segment, for more statements than `execution` has room for."""
        _start_segment(execution)
        for statement in statements:
            self.command(execution, statement, [], STEP_RESET)
        return 0

    cdef int command(self, Execution execution, Statement statement, list values, Step step) except -1:
        """Write one statement with its values, and before it its Parse if this connection has not prepared it yet.

        values: those of the execution, of which `statement.picks` selects, each bytes or None for NULL; libpq copies
        them. step: kind of the statement. Raises ValueError if the segment has no room for it, and MemoryError.
        """
        cdef const char *few[FEW_PARAMETERS]
        cdef const char **texts = few
        cdef int few_sizes[FEW_PARAMETERS]
        cdef int *sizes = few_sizes
        cdef tuple picks = statement.picks
        cdef int n = statement.count
        cdef int i, place, sent
        if execution.step_count + 2 > execution.room:
            raise ValueError("too many statements for one segment")
        if n > FEW_PARAMETERS:
            # One allocation for both arrays.
            texts = <const char **>malloc(n * (sizeof(char *) + sizeof(int)))
            if texts == NULL:
                raise MemoryError()
            sizes = <int *>(texts + n)
        # In the messages, each parameter has the length of its value and may have a format code.
        self.unsent_bytes += MESSAGE_BYTES + 6 * n
        try:
            for i in range(n):
                if picks is None:
                    value = values[i]
                else:
                    place = picks[i]
                    value = None if place < 0 else values[place]
                if value is None:
                    texts[i] = NULL
                else:
                    texts[i] = PyBytes_AS_STRING(<bytes>value)
                    # For text values libpq determines the size itself.
                    sizes[i] = <int>PyBytes_GET_SIZE(value)
                    self.unsent_bytes += sizes[i]
            if not self.named:
                self.unsent_bytes += PyBytes_GET_SIZE(statement.sql) + 4 * n
                sent = pq.sendQueryParams(
                    self.conn, PyBytes_AS_STRING(statement.sql), n, types_of(statement), texts, sizes,
                    formats_of(statement), 0
                )
            else:
                if statement.name not in self.prepared:
                    self._parse(execution, statement)
                sent = pq.sendQueryPrepared(
                    self.conn, PyBytes_AS_STRING(statement.name), n, texts, sizes, formats_of(statement), 0
                )
        finally:
            if texts != few:
                free(texts)
        execution.steps[execution.step_count] = step
        execution.step_count += 1
        if not sent:
            self.failed = True
        return 0

    cdef int _parse(self, Execution execution, Statement statement) except -1:
        """Write the Parse of a statement, which counts as prepared from now on. The caller has made room for its
        step."""
        cdef int count = 0 if statement.type_memory is None else statement.count
        self.unsent_bytes += MESSAGE_BYTES + PyBytes_GET_SIZE(statement.sql) + 4 * count
        if not pq.sendPrepare(
            self.conn, PyBytes_AS_STRING(statement.name), PyBytes_AS_STRING(statement.sql), count, types_of(statement)
        ):
            self.failed = True
        execution.steps[execution.step_count] = STEP_PARSE
        execution.step_count += 1
        if execution.parses is None:
            execution.parses = []
        execution.parses.append(statement)
        # Executions behind this one rely on this Parse. If it fails, they fail with 26000 and are run again.
        self.prepared.add(statement.name)
        return 0

    cdef int drop_parse(self, Execution execution) except -1:
        """Record that the Parse of the present step of `execution` has failed, so that its statement is not
        prepared."""
        if execution.parses is not None and execution.parse < len(execution.parses):
            self.prepared.discard((<Statement>execution.parses[execution.parse]).name)
            execution.parse += 1
        return 0

    cdef bint is_statement_prepared(self, Execution execution, Step step) except -1:
        """Return whether the statement that the present step of `execution` prepares or runs counts as prepared: its
        Parse has not failed. step: kind of this step.

        Without a script, this is always the statement of the call. In a script, it is the statement of the present
        part; for a step in front of the call, one prepared statement of `ahead` is enough.
        """
        if execution.script is None:
            return execution.statement.name in self.prepared
        if step == STEP_AHEAD:
            for statement, _ in execution.ahead:
                if (<Statement>statement).name in self.prepared:
                    return True
            return False
        if execution.part >= len(execution.script.parts):
            return False
        return (<Part>execution.script.parts[execution.part]).statement.name in self.prepared

    cdef int sync(self) except -1:
        """End a segment; return 1, or 0 if libpq has refused it."""
        if pq.sendPipelineSync != NULL:
            return 1 if pq.sendPipelineSync(self.conn) else 0
        # PQpipelineSync sends all waiting bytes.
        self.unsent_bytes = max(self.unsent_bytes, SENT_UNASKED)
        return 1 if pq.pipelineSync(self.conn) else 0


cdef inline void _start_segment(Execution execution) noexcept:
    """Reset the steps of an execution for a new segment."""
    execution.step_count = 0
    execution.step = 0
    execution.parse = 0
    execution.parses = None
