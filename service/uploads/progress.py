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
    """Return a reporter for the body of one request. Its expected size is that of Content-Length, unknown without it.
    scope: of the request. notice_listener: publishes the events."""
    announced = scope.headers.get("content-length")
    total = int(announced) if announced is not None and announced.isdecimal() else None
    return ProgressReporter(notice_listener, 0, total)


async def with_progress(pieces: AsyncIterator[bytes], reporter: ProgressReporter) -> AsyncIterator[bytes]:
    """Yield the chunks of a whole body unchanged, and report progress. After the last chunk, publish the final
    event."""
    async for piece in reporter.over(pieces):
        yield piece
    reporter.publish(reporter.received)


async def with_progress_of_part(
    pieces: AsyncIterator[bytes], notice_listener: NoticeListener, offset: int, length: int | None
) -> AsyncIterator[bytes]:
    """Yield the chunks of one request of a resumable upload unchanged, and report progress of the whole file.

    offset: bytes of the file that arrived in earlier requests. length: bytes of the file; None: unknown.
    """
    reporter = ProgressReporter(notice_listener, offset, length)
    async for piece in reporter.over(pieces):
        yield piece
    reporter.publish(length)


class ProgressReporter:
    """Publishes the progress of an upload as events. received: bytes that have arrived so far; None: events have no
    numbers of bytes, because the body has been read already. total: bytes of the body or file; None: unknown."""

    def __init__(self, notice_listener: NoticeListener, received: int | None, total: int | None) -> None:
        self.received = received
        self._notice_listener = notice_listener
        self._total = total
        self._rows: dict[str, object] = {}
        """File, sheet, and numbers of rows, once rows have run."""
        self._reported = ""
        self._last_rows = 0.0

    async def over(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield the chunks unchanged, and report progress in between. After the last chunk, the caller has to call
        `publish`."""
        last = 0.0
        async for piece in pieces:
            self.received = (self.received or 0) + len(piece)
            yield piece
            if time.monotonic() - last > PAUSE and self.received != self._total:
                last = time.monotonic()
                self.publish(self._total)

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
        self.publish(self._total)

    def publish(self, total: int | None) -> None:
        """Publish the progress, unless it equals the last event. total: bytes of the whole body or file; None:
        unknown."""
        bytes_members = {} if self.received is None else {"received": self.received, "of": total}
        word = orjson.dumps({**bytes_members, **self._rows}).decode()
        if word != self._reported:
            self._reported = word
            self._notice_listener.send(word)
