"""What happens when somebody subscribes (reference 05, 6.4).

A stream is not a topic: every one gets every event that its reader may see, whichever endpoint published it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial

from rowcall.core.events.event import Viewer
from rowcall.service.events.broadcaster import Broadcaster
from rowcall.service.events.stream import Stream
from rowcall.service.exchange.exchange import Exchange
from rowcall.service.pipeline.services import Services


class Subscription:
    def __init__(self, path: str, services: Services, broadcaster: Broadcaster) -> None:
        self._path = path
        self._headers = list(services.options.events.headers)
        # RFC 9113, 8.2.2: HTTP/2 knows no such header.
        self._headers_http2 = [field for field in self._headers if field[0] != "connection"]
        self._broadcaster = broadcaster

    def open(self, exchange: Exchange) -> Awaitable[None] | None:
        scope = exchange.scope
        if scope.method == "HEAD":
            exchange.protocol.response_empty(200, self._headers_of(scope.http_version))
            return None
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._broadcaster.feed.join(partial(self._open, exchange, opened))
        return opened

    def _open(self, exchange: Exchange, opened: asyncio.Future[None]) -> None:
        if opened.done():
            return
        try:
            self._begin(exchange)
        except Exception as error:
            opened.set_exception(error)
        else:
            opened.set_result(None)

    def _begin(self, exchange: Exchange) -> None:
        scope = exchange.scope
        viewer = Viewer(scope.query_string or "", exchange.user)
        headers = self._headers_of(scope.http_version)
        self._broadcaster.add(Stream(exchange.protocol, headers, self._path, viewer, self._broadcaster.remove))

    def _headers_of(self, http_version: str) -> list[tuple[str, str]]:
        return self._headers if http_version.startswith("1") else self._headers_http2
