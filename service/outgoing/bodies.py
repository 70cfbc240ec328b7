"""The request body for another service: streamed as it arrives, or read completely if it is needed here too."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from granian._granian import RSGIProtocolClosed

from rowcall.core.errors.problems import Problem
from rowcall.service.request.body import (
    BODIES,
    LOOK_EVERY,
    incomplete_body_problem,
    invalid_chunks_problem,
    read_body,
    too_large,
    too_slow,
)
from rowcall.service.request_context.request_context import RequestContext

SMALL = 65_536
"""Maximum size in bytes of bodies that are read before they are sent: a complete request can be repeated."""


class UpstreamTimeout:
    """Time limit for another service, which is suspended while this service waits for its own client (`pause`). An
    asynchronous context manager; it ends the block with `TimeoutError`. seconds: the limit; after each pause, it begins
    anew."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout: asyncio.Timeout | None = None

    async def __aenter__(self) -> UpstreamTimeout:
        self._timeout = asyncio.timeout(self._seconds)
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            await timeout.__aexit__(kind, error, traceback)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Suspend the time limit during the block; afterwards, it begins anew. Has no effect after the time limit has
        expired or its block has been left: the rest of a request body may still be sent when the response has begun."""
        self._reschedule(None)
        try:
            yield
        finally:
            self._reschedule(asyncio.get_running_loop().time() + self._seconds)

    def _reschedule(self, when: float | None) -> None:
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(when)


async def read_whole_body(context: RequestContext, length: int | None, limit: int, upstream: UpstreamTimeout) -> bytes:
    """Return the whole body as it arrives, without decoding it. length: its announced length in bytes; None: unknown.
    limit: in bytes. upstream: its time limit is paused meanwhile. Raises `Problem` as `body_chunks` does.
    """
    return b"".join([piece async for piece in body_chunks(context, length, limit, upstream)])


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


async def body_chunks(
    context: RequestContext, length: int | None, limit: int, upstream: UpstreamTimeout
) -> AsyncIterator[bytes]:
    """Yield the body in chunks as the client sends it. For the limits of slow bodies, only the time spent waiting for
    the client counts; meanwhile, the time limit of the other service (`upstream`) is suspended. length: announced
    length of the body in bytes; None: unknown.

    Raises:
        Problem: 413 beyond `limit` bytes, 400 for a body that is cut off, 408 for one that arrives too slowly.
    """
    size = empty_count = 0
    loop = asyncio.get_running_loop()
    waited = 0.0
    scope = context.scope
    # See `service.request.body` for what granian yields at the end, and on an error.
    allowed_empty = 1 if scope.http_version.startswith("1") and "trailer" not in scope.headers else 2
    chunks = aiter(context.protocol)
    while True:
        requested = loop.time()
        with upstream.pause():
            piece = await _next(chunks, max(LOOK_EVERY, _time_left(size, waited)))
        if piece is None:
            break
        waited += loop.time() - requested
        empty_count = 0 if piece else empty_count + 1
        if length is None and empty_count > allowed_empty:
            raise invalid_chunks_problem()
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        if _time_left(size, waited) < 0:
            raise too_slow()
        if piece:
            yield bytes(piece)
    if length is not None and size < length:
        raise incomplete_body_problem()


async def _next(chunks: AsyncIterator[bytes], seconds: float) -> bytes | None:
    """Return the next chunk of a body, or None at its end. Raises `Problem`: 408 after these seconds, 400 if the client
    has disconnected.
    """
    try:
        async with asyncio.timeout(None if seconds == math.inf else seconds):
            return await anext(chunks)
    except StopAsyncIteration:
        return None
    except TimeoutError:
        raise too_slow() from None
    except RSGIProtocolClosed:
        raise incomplete_body_problem() from None


def _time_left(size: int, waited: float) -> float:
    """Return the seconds until the body counts as too slow, negative if it does already; infinite without limits. size:
    bytes that have arrived. waited: seconds spent waiting for the client so far."""
    limits = BODIES.limits
    by_rate = limits.grace + size / limits.rate if limits.rate else math.inf
    return min(by_rate, limits.longest or math.inf) - waited
