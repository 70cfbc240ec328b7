"""The request body for another service: streamed as it arrives, or read completely if it is needed here too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from granian._granian import RSGIProtocolClosed

from rowcall.core.errors.problems import Problem
from rowcall.service.request.body import BODIES, broken_chunks, cut_off, read_body, too_large, too_slow
from rowcall.service.request_context.request_context import RequestContext

SMALL = 65_536
"""Maximum size in bytes of bodies that are read before they are sent: a complete request can be repeated."""


async def gathered(context: RequestContext, length: int | None, limit: int, on_piece: Callable[[], None]) -> bytes:
    """Return the whole body as it arrives, without decoding it. length: its announced length in bytes; None: unknown.
    limit: in bytes. on_piece: called for each chunk. Raises `Problem` as `pieces` does.
    """
    return b"".join([piece async for piece in pieces(context, length, limit, on_piece)])


async def whole_body(context: RequestContext, limit: int) -> bytes:
    """Return the whole body, and store it in the request context, because steps of this service read it as well. Raises
    `Problem` as `read_body` does, also for a compressed body. limit: in bytes.
    """
    if context.body is None:
        context.body = await read_body(context.scope, context.protocol, limit)
    body: bytes = context.body
    return body


def announced_length(scope: Any, limit: int) -> int | None:
    """Return the value of Content-Length in bytes, or None without it. Raises `Problem`: 400 if it is no number, 413 if
    it is more than `limit` bytes.
    """
    text = scope.headers.get("content-length")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise Problem(400, "the header Content-Length is not a number")
    if int(text) > limit:
        raise too_large(limit)
    return int(text)


def may_have_body(scope: Any) -> bool:
    """Whether the request may have a body. Requests over HTTP/2 need not announce it."""
    headers = scope.headers
    return (
        headers.get("content-length") not in (None, "0")
        or "transfer-encoding" in headers
        or (headers.get("content-length") is None and str(scope.http_version).startswith("2"))
    )


async def pieces(
    context: RequestContext, length: int | None, limit: int, on_piece: Callable[[], None]
) -> AsyncIterator[bytes]:
    """Yield the body in chunks as the client sends it. The time that the other service takes to read does not count as
    slowness of the client. length: its announced length in bytes; None: unknown. on_piece: called for each chunk.

    Raises:
        Problem: 413 beyond `limit` bytes, 400 for a body that is cut off, 408 for one that arrives too slowly.
    """
    size = empty_count = 0
    loop = asyncio.get_running_loop()
    limits = BODIES.limits
    waited = 0.0
    requested = loop.time()
    scope = context.scope
    # See `service.request.body` for what granian yields at the end, and on an error.
    allowed_empty = 1 if scope.http_version.startswith("1") and "trailer" not in scope.headers else 2
    try:
        async for piece in context.protocol:
            empty_count = 0 if piece else empty_count + 1
            if length is None and empty_count > allowed_empty:
                raise broken_chunks()
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            waited += loop.time() - requested
            if size < (waited - limits.grace) * limits.rate or 0 < limits.longest < waited:
                raise too_slow()
            on_piece()
            if piece:
                yield bytes(piece)
            requested = loop.time()
    except RSGIProtocolClosed:
        raise cut_off() from None
    if length is not None and size < length:
        raise cut_off()
