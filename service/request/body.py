"""Reading a request body against the limit, before and while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from granian._granian import RSGIProtocolClosed

from rowcall.core.errors.problems import Problem

arriving: set[Any] = set()
"""Scopes of the requests whose body is being waited for. Their clients have no right to be waited for without end
(`service.sockets.unused_connections`)."""


def too_large(limit: int) -> Problem:
    # The rest of the body is still on its way, so the connection cannot serve another request.
    return Problem(413, f"the body is larger than {limit} bytes", headers=(("connection", "close"),))


def cut_off() -> Problem:
    """What is there of it may look like a whole one, and must not be taken for it."""
    return Problem(400, "the body ends before it is complete", headers=(("connection", "close"),))


def broken_chunks() -> Problem:
    detail = "the body is cut off or its chunks are broken (trailer fields have to be announced by the header Trailer)"
    return Problem(400, detail, headers=(("connection", "close"),))


def silent(patience: float) -> Problem:
    detail = f"nothing of the body has arrived for {patience:g} s"
    return Problem(408, detail, headers=(("connection", "close"),))


async def read_body(scope: Any, protocol: Any, limit: int) -> bytes:
    """The whole body. Raises `Problem`: 413 beyond `limit` bytes, 400 for a broken length and for a body cut off."""
    announced = scope.headers.get("content-length")
    if announced is None:
        return await _read_chunks(scope, protocol, limit)
    if not announced.isascii() or not announced.isdigit():
        raise Problem(400, "the header Content-Length is not a number")
    if int(announced) > limit:
        raise too_large(limit)
    arriving.add(scope)
    try:
        body: bytes = await protocol()
    except RSGIProtocolClosed:
        raise cut_off() from None
    finally:
        arriving.discard(scope)
    return body


async def _read_chunks(scope: Any, protocol: Any, limit: int) -> bytes:
    return b"".join([piece async for piece in _chunks(scope, protocol, limit)])


async def body_pieces(scope: Any, protocol: Any, limit: int, patience: float) -> AsyncIterator[bytes]:
    """The body as it arrives: the next piece is read from the client when it is asked for.

    patience: seconds for which a client may send nothing. Raises `Problem` as `read_body` does, and 408.
    """
    announced = scope.headers.get("content-length")
    if announced is not None:
        if not announced.isascii() or not announced.isdigit():
            raise Problem(400, "the header Content-Length is not a number")
        if int(announced) > limit:
            raise too_large(limit)
    size = 0
    chunks = aiter(_chunks(scope, protocol, limit))
    while True:
        try:
            async with asyncio.timeout(patience):
                piece = await anext(chunks, None)
        except TimeoutError:
            raise silent(patience) from None
        if piece is None:
            break
        size += len(piece)
        if piece:
            yield piece
    if announced is not None and size < int(announced):
        raise cut_off()


async def _chunks(scope: Any, protocol: Any, limit: int) -> AsyncIterator[bytes]:
    size = silence = 0
    bearable = _empty_pieces_at_the_end(scope)
    arriving.add(scope)
    try:
        async for piece in protocol:
            silence = 0 if piece else silence + 1
            if silence > bearable:
                raise broken_chunks()
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            yield piece
    except RSGIProtocolClosed:
        raise cut_off() from None
    finally:
        arriving.discard(scope)


def _empty_pieces_at_the_end(scope: Any) -> int:
    """How many granian gives for a body that is complete.

    It gives one for the end, and one for each error too: a single one for chunks of HTTP/1.1 that are broken or end too
    early, and no end of them for a stream of HTTP/2 that its client has reset. Complete bodies have a second one for
    trailer fields, which whoever sends them announces (RFC 9110, 6.6.2), and in HTTP/2 for a last frame without data.
    """
    return 1 if scope.http_version.startswith("1") and "trailer" not in scope.headers else 2
