"""Reading from replicas: which calls may use them, and how a client reads its own writes.

The response of an endpoint that may write has, in a cookie and in a header, a position of the write-ahead log which
includes the write. The client sends it back with its next requests. They are read from a replica that has replayed this
position, or from the primary.
"""

from __future__ import annotations

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.database.call import Call
from rowcall.service.database.replicas.positions import (
    PRIMARY,
    current_position,
    position_of_request,
    response_fields,
)
from rowcall.service.database.replicas.reads import Begin, Reads
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step


def reads_of(
    call: Call, begin: Begin, endpoint: Endpoint, services: Services, *, current: bool = False
) -> Reads | None:
    """Return the object that runs the requests of a call on replicas, or on the primary if no replica is recent enough.
    None: the call always runs on the connection of its endpoint. begin: starts the call on a database. current: a
    replica must have everything that is committed when the call begins, because the response is stored."""
    replicas = services.replicas
    options = endpoint.options
    if replicas is None or services.main is not None or call.procedure or options.upload is not None:
        return None
    # A replica may not know yet that a user was locked; and what is recorded or published is written with the call.
    if options.login or options.logout or endpoint.recorded or call.publish is not None:
        return None
    wish = options.reading
    if wish is None:
        if replicas.options.only_annotated or call.volatile or call.hear is not None:
            return None
    elif not wish.replica:
        return None
    longest = replicas.options.longest_lag
    if wish is not None and wish.lag is not None:
        longest = wish.lag if longest is None else min(wish.lag, longest)
    replica_options = replicas.options

    def position(context: RequestContext) -> int | None:
        return position_of_request(replica_options, context.scope.headers)

    return Reads(call, begin, services.database, replicas, longest, position, current=current)


def record_position(endpoint: Endpoint, services: Services, *, writes: bool) -> Step | None:
    """Return the step that follows a call which may write, and sends the WAL position of the primary to the client, or
    `primary` if it is unknown (cookie and header). None: there are no replicas, the call does not write or runs on a
    replica, or neither cookie nor header is configured. writes: whether the call may write."""
    replicas = services.replicas
    if replicas is None or services.main is not None or not writes:
        return None
    if endpoint.options.reading is not None and endpoint.options.reading.replica:
        return None
    options = replicas.options
    primary = replicas.primary

    async def send_position(context: RequestContext) -> None:
        request = context.execution
        text = PRIMARY
        # A streaming call has not committed yet, and its response begins before it does.
        if request is None or not request.streaming:
            text = await current_position(primary)
        fields = response_fields(options, text, secure=context.scope.scheme == "https")
        context.protocol = HeadersProtocol(context.protocol, fields)

    return send_position if options.cookie is not None or options.header is not None else None
