"""Selects the connection of a pipelined pool to which an execution is submitted."""

from rowcall.ext.base.clock cimport now
from rowcall.ext.driver.connection cimport Connection, ConnectionState
from rowcall.ext.driver.execution cimport Execution, Statement


# Seconds for which the head of a pool's only connection may run until the connection gets no further executions.
cdef double STALLED = 0.05


# Expected wait in seconds up to which no other server process is woken, if processors are scarce.
cdef double SHORT_WAIT = 0.000_5


cdef Connection _select(list connections, int depth, double slow, bint crowded, Statement statement):
    """Return the connection with the fewest executions in flight that can run the statement; None: there is none.

    It must be ready, and have fewer than `depth` executions in flight. A connection whose head has been running for
    more than `slow` seconds is skipped, as executions behind the head wait for it. If the pool has only this
    connection, it is skipped after STALLED seconds, or `slow` if that is longer.

    crowded: processes wait for a processor. Then the first connection with only a short wait is returned instead: each
    further server process that is woken costs more processor time, on both sides, than a brief statement does.
    """
    cdef Connection best = None
    cdef Connection connection
    cdef int least = depth
    cdef double bearable = max(slow, STALLED) if len(connections) == 1 else slow
    for entry in connections:
        connection = <Connection?>entry
        if connection.in_flight >= least or connection.state != ConnectionState.READY:
            continue
        if statement.guarded and statement.name not in connection.writer.prepared:
            continue
        if connection.head is not None and now() - connection.head.head_since > bearable:
            continue
        best = connection
        least = connection.in_flight
        # No other connection can be better.
        if least == 0 or (crowded and least * statement.usual_seconds < SHORT_WAIT):
            break
    return best


def try_submit(list connections not None, int depth, double slow, bint crowded, Execution execution not None):
    """Submit an execution to the connection of a pool with the fewest executions in flight. Return False if no
    connection can take it.

    connections: all connections of the pool. depth: maximum number of executions in flight on a connection. slow:
    seconds; a connection whose head has been running for longer is skipped, the only connection of a pool at the
    earliest after STALLED seconds. crowded: processes wait for a processor, so that a connection with a short wait is
    preferred to an idle one. Raises what `Connection.submit` raises, and TypeError for an item that is no `Connection`.
    """
    cdef Connection best = _select(connections, depth, slow, crowded, execution.statement)
    if best is None:
        return False
    best.submit(execution)
    return True


def are_stalled(list connections not None, double seconds):
    """Return whether the head of each ready connection has been running for more than `seconds`.

    True if no connection is ready.
    """
    cdef Connection connection
    for entry in connections:
        connection = <Connection?>entry
        if connection.state != ConnectionState.READY:
            continue
        if connection.head is None or now() - connection.head.head_since <= seconds:
            return False
    return True
