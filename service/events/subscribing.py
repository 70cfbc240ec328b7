"""The streams that endpoints offer: their paths, and what happens when somebody subscribes (reference 05, 6.4).

A stream is not a topic: every one gets every event that its reader may see, whichever endpoint published it. Nobody is
turned away when connecting; what they may see is decided for each event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.events.event import Viewer
from rowcall.core.events.stream_path import stream_path
from rowcall.service.auth.basic import basic_step, wants_basic
from rowcall.service.events.broadcaster import Broadcaster
from rowcall.service.events.stream import Stream
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.pipeline.services import Services


def stream_steps(
    endpoints: Iterable[Endpoint], services: Services, broadcaster: Broadcaster
) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Path and steps of each stream. A path that several endpoints ask for is one stream."""
    found: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        path = stream_path(endpoint, services.options.events.level)
        if path is not None:
            found[path] = endpoint
    for path, endpoint in found.items():
        yield path, tuple(_steps(endpoint, path, services, broadcaster))


def _steps(endpoint: Endpoint, path: str, services: Services, broadcaster: Broadcaster) -> Iterator[Step]:
    if wants_basic(endpoint, services):
        yield _basic_if_given(basic_step(endpoint, services))
    elif services.options.auth.schemes:
        yield services.auth.sessions.authenticate
    yield _Subscription(path, services, broadcaster).open


def _basic_if_given(check: Step) -> Step:
    """A stream is open to whoever says no name; a wrong password is told all the same."""

    def check_if_given(exchange: Exchange) -> Awaitable[None] | None:
        header = exchange.scope.headers.get("authorization")
        return check(exchange) if header is not None and header.startswith("Basic ") else None  # type: ignore[return-value]

    return check_if_given


class _Subscription:
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
        if not self._broadcaster.feed.joined:
            return self._open_later(exchange)
        self._open(exchange)
        return None

    async def _open_later(self, exchange: Exchange) -> None:
        await self._broadcaster.feed.join()
        self._open(exchange)

    def _open(self, exchange: Exchange) -> None:
        scope = exchange.scope
        viewer = Viewer(scope.query_string or "", exchange.user)
        headers = self._headers_of(scope.http_version)
        self._broadcaster.add(Stream(exchange.protocol, headers, self._path, viewer, self._broadcaster.remove))

    def _headers_of(self, http_version: str) -> list[tuple[str, str]]:
        return self._headers if http_version.startswith("1") else self._headers_http2
