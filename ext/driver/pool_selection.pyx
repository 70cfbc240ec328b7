"""Which of the pipelined connections of a lane takes a request."""

from rowcall.ext.driver.connection cimport Connection, ConnectionState
from rowcall.ext.driver.execution cimport Execution, Statement, now


# Seconds that the first execution of a pool's only connection may run before the connection gets no further ones.
cdef double STALLED = 0.05


cdef Connection _least_busy(list connections, int depth, double slow, Statement statement):
    """The one with the fewest requests in flight, fewer than `depth`, that can run `statement`; None when there is
    none.

    One whose head has been running for more than `slow` seconds is passed over where there are others, and one that
    has been for much longer always: whoever stands behind it waits as long as it does.
    """
    cdef Connection best = None
    cdef Connection connection
    cdef int least = depth
    cdef double bearable = max(slow, STALLED) if len(connections) == 1 else slow
    for entry in connections:
        connection = <Connection?>entry
        if connection.in_flight >= least or connection.state != ConnectionState.READY:
            continue
        if statement.guarded and statement.name not in connection.prepared:
            continue
        if connection.head is not None and now() - connection.head.head_since > bearable:
            continue
        best = connection
        least = connection.in_flight
        if least == 0:
            break
    return best


def try_submit(list connections not None, int depth, double slow, Execution execution not None):
    """Places `request` on the least busy connection. False when all are full, or none is ready."""
    cdef Connection best = _least_busy(connections, depth, slow, execution.statement)
    if best is None:
        return False
    best.submit(execution)
    return True


def stalled(list connections not None, double seconds):
    """Whether each connection that takes requests has been at its head for more than `seconds`."""
    cdef Connection connection
    for entry in connections:
        connection = <Connection?>entry
        if connection.state != ConnectionState.READY:
            continue
        if connection.head is None or now() - connection.head.head_since <= seconds:
            return False
    return True
