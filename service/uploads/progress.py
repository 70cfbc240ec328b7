"""Tells whoever listens how much of a body has arrived: less than a browser knows of what it sends, but everybody can
listen, and it is what has come through proxies in between."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import orjson

from rowcall.service.database.call import NoticeListener

PAUSE = 0.2
"""Seconds between two words, at least."""


async def told(scope: Any, pieces: AsyncIterator[bytes], notice_listener: NoticeListener) -> AsyncIterator[bytes]:
    """The same pieces, of a whole body. The last word comes when all of them have."""
    announced = scope.headers.get("content-length")
    of = int(announced) if announced is not None and announced.isdecimal() else None
    telling = _ProgressReporter(notice_listener, 0, of)
    async for piece in telling.over(pieces):
        yield piece
    telling.tell(telling.received)


async def told_of_part(
    pieces: AsyncIterator[bytes], notice_listener: NoticeListener, begins: int, length: int | None
) -> AsyncIterator[bytes]:
    """The same pieces, of a file that comes over several requests. begins: bytes that were there before. length: of
    the file, None where that is not known yet."""
    telling = _ProgressReporter(notice_listener, begins, length)
    async for piece in telling.over(pieces):
        yield piece
    telling.tell(length)


class _ProgressReporter:
    def __init__(self, notice_listener: NoticeListener, received: int, of: int | None) -> None:
        self.received = received
        self._notice_listener = notice_listener
        self._of = of
        self._told = ""

    async def over(self, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Tells of those between, and leaves the last word to others."""
        last = 0.0
        async for piece in pieces:
            self.received += len(piece)
            yield piece
            if time.monotonic() - last > PAUSE and self.received != self._of:
                last = time.monotonic()
                self.tell(self._of)

    def tell(self, of: int | None) -> None:
        """Unless it is what was told before."""
        word = orjson.dumps({"received": self.received, "of": of}).decode()
        if word != self._told:
            self._told = word
            self._notice_listener.tell(word)
