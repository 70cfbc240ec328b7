"""The body of a request on its way to another service: read as it comes, or kept where somebody else needs it too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from granian._granian import RSGIProtocolClosed

from rowcall.core.errors.problems import Problem
from rowcall.service.request.body import BODIES, broken_chunks, cut_off, read_body, too_large, too_slow
from rowcall.service.request_context.request_context import RequestContext

SMALL = 65_536
"""Bytes up to which a body is read before it is sent: a request that is whole can be sent again."""


async def gathered(context: RequestContext, length: int | None, limit: int, on_piece: Callable[[], None]) -> bytes:
    """The whole body as it comes, whatever it is encoded as: nobody here reads it."""
    return b"".join([piece async for piece in pieces(context, length, limit, on_piece)])


async def whole_body(context: RequestContext, limit: int) -> bytes:
    """To be read here too. Kept, for whoever asks next."""
    if context.body is None:
        context.body = await read_body(context.scope, context.protocol, limit)
    body: bytes = context.body
    return body


def announced_length(scope: Any, limit: int) -> int | None:
    """What Content-Length says; None without it. Raises `Problem` 413 and 400."""
    text = scope.headers.get("content-length")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit():
        raise Problem(400, "the header Content-Length is not a number")
    if int(text) > limit:
        raise too_large(limit)
    return int(text)


def may_have_body(scope: Any) -> bool:
    """A request over HTTP/2 need not announce its body."""
    headers = scope.headers
    return (
        headers.get("content-length") not in (None, "0")
        or "transfer-encoding" in headers
        or (headers.get("content-length") is None and str(scope.http_version).startswith("2"))
    )


async def pieces(
    context: RequestContext, length: int | None, limit: int, on_piece: Callable[[], None]
) -> AsyncIterator[bytes]:
    """As the client sends them. Raises `Problem`: 413 beyond `limit` bytes, 400 for a body that is cut off, 408 for one
    that comes too slowly; the time that the other service takes to read does not count."""
    size = silence = 0
    loop = asyncio.get_running_loop()
    limits = BODIES.limits
    waited = 0.0
    requested = loop.time()
    scope = context.scope
    # See `service.request.body`: what granian gives at the end, and what it gives for an error.
    bearable = 1 if scope.http_version.startswith("1") and "trailer" not in scope.headers else 2
    try:
        async for piece in context.protocol:
            silence = 0 if piece else silence + 1
            if length is None and silence > bearable:
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
