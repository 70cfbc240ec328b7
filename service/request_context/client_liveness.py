"""Cancels work when the client disconnects.

Watching a connection costs a task, so only work that takes longer than `WATCH_AFTER_SECONDS` is watched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from rowcall.service.request_context.request_context import ClientDisconnectedError

Done = TypeVar("Done")

WATCH_AFTER_SECONDS = 0.25
"""Seconds that work may take before its client is watched."""


async def cancel_on_disconnect(protocol: Any, work: Awaitable[Done]) -> Done:
    """Return the result of `work`, which is cancelled if the client of `protocol` disconnects.

    Raises: ClientDisconnectedError: the client has disconnected.
    """
    loop = asyncio.get_running_loop()
    watch = _Watch(protocol, asyncio.current_task())
    timer = loop.call_later(WATCH_AFTER_SECONDS, watch.begin)
    try:
        return await work
    except asyncio.CancelledError:
        if watch.gone:
            raise ClientDisconnectedError("the client has closed the connection") from None
        raise
    finally:
        timer.cancel()
        watch.end()


class _Watch:
    """Watches the client of one piece of work, and cancels the task of the work if the client disconnects."""

    def __init__(self, protocol: Any, worker: asyncio.Task[Any] | None) -> None:
        self._protocol = protocol
        self._worker = worker
        self._watching: asyncio.Task[None] | None = None
        self.gone = False

    def begin(self) -> None:
        self._watching = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        await self._protocol.client_disconnect()
        if self._worker is not None:
            self.gone = True
            self._worker.cancel()

    def end(self) -> None:
        self._worker = None
        if self._watching is not None:
            self._watching.cancel()
