"""The body of a streamed response on the transport of its connection, where the HTTP server runs in this event loop.

It has the interface of `streaming.PipeBody`, without a pipe: the transport reports when the client does not keep up.
"""

from __future__ import annotations

import asyncio
from typing import Any

from rowcall.ext.http1.connection import RequestProtocol
from rowcall.service.request_context.request_context import ClientDisconnectedError

CHECK_AGAIN = 1.0
"""Seconds without anything to send, after which the client is checked."""


class StreamBody:
    """One body. Write it in parts and close it, or cut it off."""

    def __init__(
        self,
        innermost: RequestProtocol,
        protocol: Any,
        status: int,
        headers: list[tuple[str, str]],
        time_limit: float,
    ) -> None:
        """Begin the response. innermost: the protocol of the HTTP server. protocol: the same, or one that wraps it and
        changes the response.

        time_limit: seconds for which the client may leave unread what it was sent.
        """
        self._loop = asyncio.get_running_loop()
        self._time_limit = time_limit
        self._writer = innermost.prepare_stream()
        protocol.response_file(status, headers, self._writer.name)

    async def write(self, data: bytes) -> None:
        """Send `data`; return when the transport takes more.

        Raises `ClientDisconnectedError` if the client has disconnected, or has read so little that the transport takes
        no more data after the time limit.
        """
        if not self._writer.send_bytes(data):
            raise ClientDisconnectedError("the client has closed the connection")
        if self._writer.full():
            await asyncio.wait((self._writer.room(),), timeout=self._time_limit)
            if self._writer.full():
                raise ClientDisconnectedError(f"the client has not read for {self._time_limit:g} s")

    async def wait_for(self, event: asyncio.Future[Any], seconds: float | None = None) -> None:
        """Return when `event` is done, or after `seconds` (None: without a limit). Raises `ClientDisconnectedError` if
        the client disconnects before.
        """
        until = None if seconds is None else self._loop.time() + seconds
        while not event.done():
            left = CHECK_AGAIN if until is None else min(CHECK_AGAIN, until - self._loop.time())
            if left <= 0:
                return
            await asyncio.wait((event,), timeout=left)
            if not event.done() and self._writer.hung_up():
                raise ClientDisconnectedError("the client has closed the connection")

    async def close(self) -> None:
        """End the body."""
        self._writer.close()

    def abort(self, _client: str) -> None:
        """End an incomplete body by ending its connection."""
        self._writer.abort()
