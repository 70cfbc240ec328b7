"""Reading from replicas: which calls may use them, and how a client reads its own writes.

The response of an endpoint that may write has, in a cookie and in a header, a position of the write-ahead log which
includes the write. The client sends it back with its next requests. They are read from a replica that has replayed this
position, or from the primary.
"""

from __future__ import annotations

import psycopg

from rowcall.core.auth.cookies import cookie_value
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.text.wal_position import parse_position, position_text
from rowcall.service.database.call import Call
from rowcall.service.database.replicas.options import ReplicaOptions
from rowcall.service.database.replicas.reads import Begin, Position, Reads
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step

PRIMARY = "primary"
"""Sent in place of a position: only the primary may be read."""


def reads_of(call: Call, begin: Begin, endpoint: Endpoint, services: Services) -> Reads | None:
    """Return the replica reads of a call, or None if it always runs on the connection of its endpoint. begin: starts
    the call on that connection.
    """
    replicas = services.replicas
    if replicas is None or services.main is not None or call.procedure or endpoint.options.upload is not None:
        return None
    wish = endpoint.options.reading
    if wish is None:
        if replicas.options.only_annotated or call.volatile or call.hear is not None:
            return None
    elif not wish.replica:
        return None
    longest = replicas.options.longest_lag
    if wish is not None and wish.lag is not None:
        longest = wish.lag if longest is None else min(wish.lag, longest)
    return Reads(call, begin, services.database, replicas, longest, _position_of(replicas.options))


def _position_of(options: ReplicaOptions) -> Position:
    """Return the function that reads the WAL position which the client has sent in header and cookie: the later one; 0
    without any; None if the primary must be read.
    """
    cookie, header = options.cookie, options.header

    def position(context: RequestContext) -> int | None:
        headers = context.scope.headers
        texts = (
            None if header is None else headers.get(header),
            None if cookie is None else cookie_value(headers.get("cookie") or "", cookie),
        )
        values = [parse_position(text) for text in texts if text]
        # A text that is no position was not sent by this service, or is `primary`.
        return None if None in values else max((item for item in values if item is not None), default=0)

    return position


def record_position(endpoint: Endpoint, services: Services, *, writes: bool) -> Step | None:
    """Return the step, behind the run of a call, which sends the WAL position of the primary to the client, or
    `primary` if it is unknown; None: there are no replicas, the call does not write or is on a replica, or neither
    cookie nor header is configured. writes: whether the call may write.
    """
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
            try:
                text = position_text(await primary.position())
            except psycopg.Error:
                text = PRIMARY
        fields = _fields(options, text, secure=context.scope.scheme == "https")
        context.protocol = HeadersProtocol(context.protocol, fields)

    return send_position if options.cookie is not None or options.header is not None else None


def _fields(options: ReplicaOptions, text: str, *, secure: bool) -> list[tuple[str, str]]:
    """Return the response headers that send a position. text: the position, or `PRIMARY`. secure: the client uses
    https, so the cookie is sent over https only.
    """
    fields = [] if options.header is None else [(options.header, text)]
    if options.cookie is not None:
        attributes = f"; max-age={max(1, round(options.lifetime))}; path=/; httponly; samesite=lax"
        fields.append(("set-cookie", f"{options.cookie}={text}{attributes}{'; secure' if secure else ''}"))
    return fields
