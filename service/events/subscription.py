"""Subscription to an event stream (events-7 to events-10).

A stream is not a topic: each one gets every event that its subscriber may see, whichever endpoint has published it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial
from typing import Any

from rowcall.core.endpoint.capabilities import Events, Tenant
from rowcall.core.events.event import Viewer
from rowcall.core.events.position import read_position
from rowcall.service.events.broadcaster import Broadcaster
from rowcall.service.events.stream import Stream
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.surroundings import tenant_of


class Subscription:
    """Opens the streams of an endpoint."""

    def __init__(
        self,
        path: str,
        terms: object,
        events: Events,
        tenant: Tenant | None,
        services: Services,
        broadcaster: Broadcaster,
    ) -> None:
        """path: of the stream. terms: what has to be unchanged for a stream to continue after a reload of the schema.
        events: what the annotations of the endpoint say about its events. tenant: how the tenant of a caller is
        determined; None: callers have none.
        """
        self._path = path
        self._terms = terms
        self._events = events
        self._tenant = tenant
        self._options = services.options.events
        self._roles_match_users = services.options.auth.login.roles_match_users
        self._headers = list(self._options.headers)
        self._headers_http2 = [field for field in self._headers if field[0] != "connection"]
        self._headers_last = [*self._headers_http2, ("connection", "close")]
        self._broadcaster = broadcaster

    def open(self, context: RequestContext) -> Awaitable[None] | None:
        """Open a stream for the caller. The returned awaitable is done when the stream has begun; the stream stays open
        behind it. A HEAD request gets only the headers, and None is returned.
        """
        scope = context.scope
        if scope.method == "HEAD":
            context.protocol.response_empty(200, self._headers_for(scope))
            return None
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._broadcaster.feed.join(partial(self._open, context, opened))
        return opened

    def _open(self, context: RequestContext, opened: asyncio.Future[None]) -> None:
        """Begin the stream, and set the result of `opened`, or the error as its exception. If `opened` is done, because
        the request has ended meanwhile, nothing happens.
        """
        if opened.done():
            return
        try:
            self._begin(context)
        except Exception as error:
            opened.set_exception(error)
        else:
            opened.set_result(None)

    def _begin(self, context: RequestContext) -> None:
        """Create the stream and add it to the broadcaster, which sends its beginning: with the events that follow the
        id in the header Last-Event-ID, if there is one."""
        scope = context.scope
        broadcaster = self._broadcaster
        stream = Stream(
            context.protocol,
            self._headers_for(scope),
            scope.client,
            self._path,
            self._terms,
            Viewer(
                scope.query_string or "",
                context.user,
                self._events.channel or "",
                self._events.filters,
                tenant=tenant_of(self._tenant, context) or "",
                roles_match_users=self._roles_match_users,
            ),
            broadcaster.connections,
            self._options,
            broadcaster.remove,
            broadcaster.add_slow_stream,
            broadcaster.count_dropped,
            shares=not scope.http_version.startswith("1"),
        )
        # An id that cannot be read is not from this service: its client counts as new.
        last = read_position(scope.headers.get("last-event-id") or "") or None
        broadcaster.add(stream, last, last_value=self._events.last_value)

    def _headers_for(self, scope: Any) -> list[tuple[str, str]]:
        """Return the headers without `Connection` for HTTP/2 (RFC 9113, 8.2.2), and with `Connection: close` if the
        connection ends with the response (RFC 9112, 9.3).

        The latter applies if the client has requested it, or uses HTTP/1.0, where only the end of the connection shows
        the end of a body.
        """
        if not scope.http_version.startswith("1"):
            return self._headers_http2
        is_persistent = scope.http_version == "1.1" and "close" not in (scope.headers.get("connection") or "").lower()
        return self._headers if is_persistent else self._headers_last
