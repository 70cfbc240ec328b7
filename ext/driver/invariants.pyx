"""Check a connection against the invariants of docs/internals/connection.md, for tests.

Nothing in the service calls this. The invariants hold while no method of the connection runs, that is, between two
callbacks of the event loop.
"""

from rowcall.ext.base.libpq cimport PQTRANS_IDLE, pq
from rowcall.ext.driver.connection cimport Connection, ConnectionState
from rowcall.ext.driver.execution cimport Execution, ExecutionState, Statement


def invariant_violations(Connection connection not None):
    """Return a sentence for each invariant of the connection that does not hold, with its number; an empty list if all
    hold. The functions below append their sentences to `broken`."""
    cdef list broken = []
    _check_queue(connection, broken)
    _check_state(connection, broken)
    _check_flushes(connection, broken)
    _check_statements(connection, broken)
    if connection.state == ConnectionState.CLOSED:
        _check_closed(connection, broken)
    return broken


cdef int _check_queue(Connection connection, list broken) except -1:
    cdef Execution execution
    cdef int count = len(connection.queue) + (connection.head is not None)
    if connection.in_flight != count:
        broken.append(f"connection-1: {connection.in_flight} executions are counted, {count} are in flight")
    if connection.head is None and connection.queue:
        broken.append("connection-1: executions wait behind no head")
    # The head, which may be None, is one more object than those in the queue.
    if len({id(execution) for execution in connection.queue} | {id(connection.head)}) != len(connection.queue) + 1:
        broken.append("connection-1: an execution is in flight twice")
    for execution in connection.queue:
        if execution.state not in (ExecutionState.SENT, ExecutionState.DISCARDING) or execution.step or execution.parse:
            broken.append(f"connection-2: an execution in state {execution.state} waits, at step {execution.step}")
        if execution.head_since:
            broken.append("connection-2: the time of a waiting execution runs")
    execution = connection.head
    if execution is None:
        if connection.state != ConnectionState.CLOSED and connection.buffer.length:
            broken.append("connection-3: the buffer has bytes of no execution")
        return 0
    if execution.state in (ExecutionState.WAITING, ExecutionState.DONE) or not execution.head_since:
        broken.append(f"connection-2: the head is in state {execution.state}")
    if not 0 <= execution.step <= execution.step_count + 1 or execution.step_count > execution.room:
        broken.append(f"connection-2: the head is at step {execution.step} of {execution.step_count}")
    if execution.parse > (0 if execution.parses is None else len(execution.parses)):
        broken.append("connection-2: more statements were prepared than had to be")
    if execution.state == ExecutionState.DISCARDING and execution.script is None and connection.buffer.length:
        broken.append("connection-3: the buffer has bytes of an execution whose rows are dropped")
    return 0


cdef int _check_state(Connection connection, list broken) except -1:
    cdef ConnectionState state = connection.state
    cdef bint streams = connection.head is not None and connection.head.state == ExecutionState.STREAMING
    if state == ConnectionState.PAUSED and (not streams or connection.fatal_reason is not None):
        broken.append("connection-4: the connection is paused, but its head does not stream")
    if state == ConnectionState.READY and (connection.close_reason is not None or connection.fatal_reason is not None):
        broken.append(f"connection-5: the connection accepts executions, but is to close: {connection.close_reason}")
    if state == ConnectionState.DRAINING and connection.close_reason is None:
        broken.append("connection-5: the connection drains without a reason")
    if state == ConnectionState.DRAINING and connection.head is None and connection.fatal_reason is None:
        broken.append("connection-5: the connection drains, but has nothing in flight")
    if (connection.fatal_reason is None) != (connection.end_timer is None) and state != ConnectionState.CLOSED:
        broken.append("connection-5: nothing limits the waiting for the end of the connection")
    if connection.cancelling and state == ConnectionState.READY:
        broken.append("connection-6: the connection accepts executions while a cancel request is being sent")
    if state == ConnectionState.CANCELLING and not connection.cancelling:
        broken.append("connection-6: the connection waits for a cancel request that was not sent")
    if state == ConnectionState.READY and connection.head is None and not connection.owned \
            and pq.transactionStatus(connection.conn) != PQTRANS_IDLE:
        broken.append("connection-7: the connection accepts executions within a transaction without an owner")
    return 0


cdef int _check_flushes(Connection connection, list broken) except -1:
    cdef Execution execution
    cdef long mark = 0
    for execution in ([] if connection.head is None else [connection.head, *connection.queue]):
        # The head of a script is sent again, behind the others.
        if execution.flush_mark < mark and execution.script is None:
            broken.append("connection-8: an execution counts as sent before one in front of it")
        if execution.script is None:
            mark = execution.flush_mark
        if execution.flush_mark > connection.flushes:
            broken.append("connection-8: an execution waits for a flush that is not the next one")
        if execution.flush_mark == connection.flushes and not connection.flush_scheduled:
            broken.append("connection-8: an execution waits for a flush that is not scheduled")
    return 0


cdef int _check_statements(Connection connection, list broken) except -1:
    cdef Statement statement
    cdef set names = {(<Statement>statement).name for statement in connection.admitted}
    if len(names) != len(connection.admitted):
        broken.append("connection-9: a guarded statement was admitted twice")
    for statement in connection.admitted:
        if not statement.guarded or statement.admissions < 1:
            broken.append(f"connection-9: statement {statement.id} was admitted, but is not guarded or admissions")
    if connection.state == ConnectionState.READY and not names <= connection.writer.prepared:
        broken.append("connection-9: an admitted statement is not prepared")
    return 0


cdef int _check_closed(Connection connection, list broken) except -1:
    if connection.head is not None or connection.queue or connection.admitted:
        broken.append("connection-10: a closed connection has executions or statements")
    if connection.conn != NULL or connection.writer_registered or connection.end_timer is not None:
        broken.append("connection-10: a closed connection has a socket or a timer")
    if connection.close_reason is None or connection.owner is not None or connection.on_readable_method is not None:
        broken.append("connection-10: a closed connection has no reason, or references that keep it alive")
    return 0
