"""Reading a request body against the limit, before and while it arrives."""

from __future__ import annotations

from typing import Any

from granian._granian import RSGIProtocolClosed

from rowcall.core.errors.problems import Problem


def too_large(limit: int) -> Problem:
    # The rest of the body is still on its way, so the connection cannot serve another request.
    return Problem(413, f"the body is larger than {limit} bytes", headers=(("connection", "close"),))


def cut_off() -> Problem:
    """What is there of it may look like a whole one, and must not be taken for it."""
    return Problem(400, "the body ends before it is complete", headers=(("connection", "close"),))


def broken_chunks() -> Problem:
    detail = "the body is cut off or its chunks are broken (trailer fields have to be announced by the header Trailer)"
    return Problem(400, detail, headers=(("connection", "close"),))


async def read_body(scope: Any, protocol: Any, limit: int) -> bytes:
    """The whole body. Raises `Problem`: 413 beyond `limit` bytes, 400 for a broken length and for a body cut off."""
    announced = scope.headers.get("content-length")
    if announced is None:
        return await _read_chunks(scope, protocol, limit)
    if not announced.isascii() or not announced.isdigit():
        raise Problem(400, "the header Content-Length is not a number")
    if int(announced) > limit:
        raise too_large(limit)
    try:
        body: bytes = await protocol()
    except RSGIProtocolClosed:
        raise cut_off() from None
    return body


async def _read_chunks(scope: Any, protocol: Any, limit: int) -> bytes:
    pieces: list[bytes] = []
    size = silence = 0
    bearable = _empty_pieces_at_the_end(scope)
    try:
        async for piece in protocol:
            silence = 0 if piece else silence + 1
            if silence > bearable:
                raise broken_chunks()
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            pieces.append(piece)
    except RSGIProtocolClosed:
        raise cut_off() from None
    return b"".join(pieces)


def _empty_pieces_at_the_end(scope: Any) -> int:
    """How many granian gives for a body that is complete.

    It gives one for the end, and one for each error too: a single one for chunks of HTTP/1.1 that are broken or end too
    early, and no end of them for a stream of HTTP/2 that its client has reset. Complete bodies have a second one for
    trailer fields, which whoever sends them announces (RFC 9110, 6.6.2), and in HTTP/2 for a last frame without data.
    """
    return 1 if scope.http_version.startswith("1") and "trailer" not in scope.headers else 2
