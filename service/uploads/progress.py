"""Progress of an upload: publishes as events how much of a body has arrived, and how many of its rows have run.

A browser knows more about what it sends, but any client can subscribe to this, and it counts what has passed the
proxies in between.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from rowcall.service.database.call import NoticeListener

PAUSE = 0.2
"""Minimum seconds between two events."""


def progress_of_body(scope: Any, notice_listener: NoticeListener) -> ProgressReporter:
    """Return the reporter of a whole body. notice_listener: publishes the events."""
    announced = scope.headers.get("content-length")
    total = int(announced) if announced is not None and announced.isdecimal() else None
    return ProgressReporter(notice_listener, 0, total)


async def with_progress(pieces: AsyncIterator[bytes], reporter: ProgressReporter) -> AsyncIterator[bytes]:
    """Yield the same chunks, of a whole body, and report progress. The last event follows after all of them."""
    async for piece in reporter.over(pieces):
        yield piece
    reporter.publish(reporter.received)


async def with_progress_of_part(
    pieces: AsyncIterator[bytes], notice_listener: NoticeListener, begins: int, length: int | None
) -> AsyncIterator[bytes]:
    """Yield the same chunks, of a file that arrives in several requests, and report progress.

    begins: bytes that had arrived before. length: of the file; None if unknown.
    """
    reporter = ProgressReporter(notice_listener, begins, length)
    async for piece in reporter.over(pieces):
        yield piece
    reporter.publish(length)


class ProgressReporter:
    """Publishes the progress of an upload as events. received: bytes that have arrived before; None: the body is not
    read here. of: bytes of the body, if known."""

    def __init__(self, notice_listener: NoticeListener, received: int | None, of: int | None) -> None:
        self.received = received
        self._notice_listener = notice_listener
        self._of = of
        self._rows: dict[str, object] = {}
        """File, sheet, and numbers of rows, once rows have run."""
        self._reported = ""
        self._last_rows = 0.0

    async def over(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks and report progress in between. The last event is left to the caller."""
        last = 0.0
        async for piece in pieces:
            self.received = (self.received or 0) + len(piece)
            yield piece
            if time.monotonic() - last > PAUSE and self.received != self._of:
                last = time.monotonic()
                self.publish(self._of)

    def report_rows(self, place: Mapping[str, object], rows: int, failed: int, *, last: bool = False) -> None:
        """Report rows of a file, unless the last report is less than `PAUSE` seconds ago. place: names of file and
        sheet. rows: number of rows that have run. failed: number of those that were refused. last: all have run; always
        reported.
        """
        now = time.monotonic()
        if not last and now - self._last_rows <= PAUSE:
            return
        self._last_rows = now
        self._rows = {**place, "rows": rows, **({"failed": failed} if failed else {})}
        self.publish(self._of)

    def publish(self, of: int | None) -> None:
        """Publish the progress, unless it equals the last event. of: bytes of the whole body or file; None: unknown."""
        bytes_members = {} if self.received is None else {"received": self.received, "of": of}
        word = orjson.dumps({**bytes_members, **self._rows}).decode()
        if word != self._reported:
            self._reported = word
            self._notice_listener.send(word)
