"""Progress of an upload: publishes as events how much of a body has arrived.

A browser knows more about what it sends, but any client can subscribe to this, and it counts what has passed the
proxies in between.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import orjson

from rowcall.service.database.call import NoticeListener

PAUSE = 0.2
"""Minimum seconds between two events."""


async def with_progress(
    scope: Any, pieces: AsyncIterator[bytes], notice_listener: NoticeListener
) -> AsyncIterator[bytes]:
    """Yield the same chunks, of a whole body, and report progress. The last event follows after all of them."""
    announced = scope.headers.get("content-length")
    total = int(announced) if announced is not None and announced.isdecimal() else None
    reporter = _ProgressReporter(notice_listener, 0, total)
    async for piece in reporter.over(pieces):
        yield piece
    reporter.publish(reporter.received)


async def with_progress_of_part(
    pieces: AsyncIterator[bytes], notice_listener: NoticeListener, begins: int, length: int | None
) -> AsyncIterator[bytes]:
    """Yield the same chunks, of a file that arrives in several requests, and report progress.

    begins: bytes that had arrived before. length: of the file; None if unknown.
    """
    reporter = _ProgressReporter(notice_listener, begins, length)
    async for piece in reporter.over(pieces):
        yield piece
    reporter.publish(length)


class _ProgressReporter:
    def __init__(self, notice_listener: NoticeListener, received: int, of: int | None) -> None:
        self.received = received
        self._notice_listener = notice_listener
        self._of = of
        self._reported = ""

    async def over(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks and report progress in between. The last event is left to the caller."""
        last = 0.0
        async for piece in pieces:
            self.received += len(piece)
            yield piece
            if time.monotonic() - last > PAUSE and self.received != self._of:
                last = time.monotonic()
                self.publish(self._of)

    def publish(self, of: int | None) -> None:
        """Publish the progress, unless it equals the last event."""
        word = orjson.dumps({"received": self.received, "of": of}).decode()
        if word != self._reported:
            self._reported = word
            self._notice_listener.send(word)
