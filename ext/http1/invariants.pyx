"""Check a connection of the HTTP/1.1 server against the invariants of docs/internals/http-engine.md, for tests.

Nothing in the service calls this. The invariants hold between two callbacks of the event loop.
"""

from cpython.bytes cimport PyBytes_GET_SIZE

from rowcall.ext.http1.connection cimport (
    CLOSING, Connection, DETACHED, DISCARDING, LINGERING, READING_HEAD, RequestProtocol, RUNNING)
from rowcall.ext.http1.request_head cimport RequestHead


def invariant_violations(Connection connection not None):
    """Return a sentence for each invariant of the connection that does not hold, with its number; an empty list if all
    hold. The functions below append their sentences to `broken`."""
    cdef list broken = []
    _check_request(connection, broken)
    _check_input(connection, broken)
    _check_end(connection, broken)
    if connection.phase == RUNNING and connection.request is not None:
        _check_body(connection.request, broken)
    return broken


cdef int _check_request(Connection connection, list broken) except -1:
    cdef RequestProtocol request = connection.request
    if connection.phase in (RUNNING, DISCARDING) and request is None:
        broken.append(f"engine-1: phase {connection.phase} without a request")
    if connection.phase in (READING_HEAD, LINGERING, DETACHED) and request is not None:
        broken.append(f"engine-1: a request in phase {connection.phase}")
    if connection.phase == RUNNING and request is not None and request.connection is not connection:
        broken.append("engine-2: the connection waits for a response that was sent")
    if connection.phase == DISCARDING and request is not None:
        if request.connection is not None:
            broken.append("engine-2: a body is dropped before its request has been answered")
        if request.body_complete or request.body_broken or request.pieces:
            broken.append("engine-2: nothing of the body remains to be dropped")
    if connection.advancing:
        broken.append("engine-3: the connection takes every call for one from within")
    if connection.output and not connection.gathered:
        broken.append("engine-3: bytes of a response were not sent")
    if connection.gathered != (connection in connection.server.unsent):
        broken.append("engine-3: the server does not send what the connection has gathered")
    return 0


cdef int _check_input(Connection connection, list broken) except -1:
    cdef RequestHead head
    cdef bint waits = connection.phase == READING_HEAD and connection.pending is not None
    if connection.pending is not None and connection.position > PyBytes_GET_SIZE(connection.pending):
        broken.append("engine-4: the position is behind the received bytes")
        return 0
    if waits and not connection.writing_paused:
        # `parse` returns 0 for an incomplete head only.
        head = RequestHead.__new__(RequestHead)
        if connection.eof or (not _may_be_preface(connection) and head.parse(connection.pending, connection.position)):
            broken.append("engine-4: a request has been received, but is not handled")
    if connection.reading_paused and connection.phase < CLOSING and not connection.eof:
        if not connection.waiting_for_admission and not (waits and connection.writing_paused) \
                and not (connection.phase == RUNNING and _is_ahead(connection)):
            broken.append(f"engine-5: reading is paused without a reason, in phase {connection.phase}")
    return 0


cdef bint _may_be_preface(Connection connection) except -1:
    return connection.fresh and connection.server.take_http2 is not None and connection._begins_http2()


cdef bint _is_ahead(Connection connection) except -1:
    return connection.request.is_ahead() or (connection.request.body_complete and connection.has_more())


cdef int _check_body(RequestProtocol request, list broken) except -1:
    cdef bint ended = request.body_complete or request.body_broken or request.input_ended
    if request.waiting_bytes != sum([len(piece) for piece in request.pieces]):
        broken.append("engine-6: the bytes that wait are counted wrongly")
    if request.chunks is None and (request.remaining < 0 or request.body_complete != (request.remaining == 0)):
        broken.append(f"engine-6: {request.remaining} bytes remain of a body that counts as {request.body_complete}")
    if request.reader is not None and (ended or (request.pieces and not request.whole)):
        broken.append("engine-7: a read waits for what has arrived")
    if request.connection is not None and request.connection.eof and not ended:
        broken.append("engine-7: a body is expected from a client that sends nothing any more")
    return 0


cdef int _check_end(Connection connection, list broken) except -1:
    cdef Connection other
    cdef Py_ssize_t running = 0
    for other in connection.server.connections:
        running += other.phase == RUNNING
    if connection.server.running != running:
        broken.append(f"engine-8: {running} connections have a request in progress, not {connection.server.running}")
    if (connection in connection.server.connections) != (connection.phase != DETACHED):
        broken.append("engine-8: a connection that has ended is counted, or one that has not is not")
    if connection.phase == CLOSING and not connection.transport.is_closing():
        broken.append("engine-9: the transport of a connection that ends is open")
    if connection.phase == LINGERING and not connection.deadline:
        broken.append("engine-9: nothing limits the time for which input is dropped")
    if connection.eof and connection.phase in (READING_HEAD, DISCARDING, LINGERING) and not connection.writing_paused:
        broken.append(f"engine-9: the client has ended its input, and the connection is in phase {connection.phase}")
    if connection.writable is not None and not connection.writable.done() and not connection.writing_paused:
        broken.append("engine-10: a sender waits for room that is there")
    return 0
