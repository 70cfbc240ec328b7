"""Tells whoever listens how much of a body has arrived: less than a browser knows of what it sends, but everybody can
listen, and it is what has come through proxies in between."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import orjson

from rowcall.service.database.call import Hearer

PAUSE = 0.2
"""Seconds between two words, at least."""


async def told(scope: Any, pieces: AsyncIterator[bytes], hearer: Hearer) -> AsyncIterator[bytes]:
    """The same pieces. The last word comes when all of them have."""
    announced = scope.headers.get("content-length")
    of = int(announced) if announced is not None and announced.isdecimal() else None
    received = 0
    last = 0.0
    async for piece in pieces:
        received += len(piece)
        yield piece
        if time.monotonic() - last > PAUSE and received != of:
            last = time.monotonic()
            hearer.tell(_word(received, of))
    hearer.tell(_word(received, received))


def _word(received: int, of: int | None) -> str:
    return orjson.dumps({"received": received, "of": of}).decode()
