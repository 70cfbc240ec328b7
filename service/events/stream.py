"""One subscriber's response: open until the client leaves, its session expires, or the service ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rowcall.core.events.event import Viewer
from rowcall.core.events.wire import CONNECTED
from rowcall.service.exchange.protocols import Headers


class Stream:
    """on_end(stream): once, when nothing can be sent any more."""

    __slots__ = ("_gone", "_on_end", "_transport", "path", "viewer")

    def __init__(
        self, protocol: Any, headers: Headers, path: str, viewer: Viewer, on_end: Callable[[Stream], None]
    ) -> None:
        self.path = path
        self.viewer = viewer
        self._on_end = on_end
        self._transport = protocol.response_stream(200, headers)
        # The future of the HTTP server itself: no task for each of thousands of streams that wait.
        self._gone = _innermost(protocol).client_disconnect()
        self._gone.add_done_callback(self._left)
        self.send(CONNECTED)

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.send_bytes(data)

    def end(self) -> None:
        """The response is complete."""
        if self._transport is None:
            return
        # The HTTP server ends the body when nobody holds its sending end any more.
        self._transport = None
        self._gone.cancel()
        self._on_end(self)

    def _left(self, _gone: Any) -> None:
        self.end()


def _innermost(protocol: Any) -> Any:
    while (inner := getattr(protocol, "inner", None)) is not None:
        protocol = inner
    return protocol
