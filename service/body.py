"""Reading a request body against the limit, before and while it arrives."""

from __future__ import annotations

from typing import Any

from granian._granian import RSGIProtocolClosed

from rowcall.core.problems import Problem
from rowcall.service.exchange import ClientGoneError


def too_large(limit: int) -> Problem:
    # The rest of the body is still on its way, so the connection cannot serve another request.
    return Problem(413, f"the body is larger than {limit} bytes", headers=(("connection", "close"),))


async def read_body(scope: Any, protocol: Any, limit: int) -> bytes:
    """The whole body. Raises `Problem` (413 beyond `limit` bytes, 400 for a broken length) or `ClientGoneError`."""
    announced = scope.headers.get("content-length")
    if announced is None:
        return await _read_chunks(protocol, limit)
    if not announced.isascii() or not announced.isdigit():
        raise Problem(400, "the header Content-Length is not a number")
    if int(announced) > limit:
        raise too_large(limit)
    try:
        body: bytes = await protocol()
    except RSGIProtocolClosed:
        raise ClientGoneError from None
    return body


async def _read_chunks(protocol: Any, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async for piece in protocol:
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
    except RSGIProtocolClosed:
        raise ClientGoneError from None
    return b"".join(pieces)
