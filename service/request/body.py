"""Reading of request bodies with limits of size, rate and time, and within a memory budget of the worker.

Clients may be anonymous here, so memory is used only for data that has arrived: bodies are gathered in chunks, bodies
that arrive too slowly or take too long are ended, and if too many are held at the same time, further ones are refused
with 503. The limits apply to the worker process as a whole.
"""

from __future__ import annotations

import asyncio
import ctypes
import io
import sys
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from types import CoroutineType
from typing import Any

from granian._granian import RSGIHTTPScope, RSGIProtocolClosed  # type: ignore[attr-defined]  # its stubs lack one

from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.http.limits import BodyLimits
from rowcall.ext.driver.request_context import BodyArrival
from rowcall.service.request_context.deadline import DeadlineError, is_past
from rowcall.service.request_context.header_values import read_header
from rowcall.service.request_context.request_context import RequestContext, Waiting

SMALL = 65_536
"""Bytes of a body that is read as a whole; the progress of a larger one is observed."""
LOOK_EVERY = 0.5
"""Seconds between two checks of bodies that are being read."""
FREE_PIECES, SMALLEST_PIECE = 4096, 64
"""This many chunks of a body are always accepted; beyond, their average size must reach the second number, in bytes."""
GIVEN_BACK = 4_194_304
"""Bytes of released bodies from which the allocator is asked to return memory to the system."""

arriving: set[Any] = set()
"""Scopes of the requests whose body is awaited. The wait for their clients is limited
(`service.sockets.unused_connections`).
"""


REFUSED_BEFORE_BODY = frozenset({401, 403, 404, 405, 429, 504})
"""Statuses of refusals whose request body has often not been read: a deadline (504) may pass while it arrives."""


def may_be_closed_behind_body(scope: Any) -> bool:
    """Return whether the HTTP server may close the connection because the body of this request stays unread.

    granian does so if the body has not arrived when the response is sent, and announces it only if the response says
    so; a client that sends its next request on the connection would get no response. The event loop's own server
    discards small bodies, and announces the end itself.
    """
    if type(scope) is not RSGIHTTPScope or not scope.http_version.startswith("1"):
        return False
    headers = scope.headers
    return "transfer-encoding" in headers or headers.get("content-length", "0") not in ("", "0")


def too_large(limit: int) -> Problem:
    """Return the problem of a body beyond the limit in bytes (413), behind which the connection is closed."""
    # The rest of the body is still being sent, so the connection cannot serve another request.
    return Problem(413, f"the body is larger than {limit} bytes", headers=(("connection", "close"),))


def _refuse_encoded(scope: Any) -> None:
    """Raise `Problem` 415 for a compressed body, which would be misread as broken text."""
    coding = read_header(scope.headers, "content-encoding")
    if coding is None or coding.strip().lower() in ("", "identity"):
        return
    detail = f"the body has the Content-Encoding {coding[:40]!r}, and only plain ones are read"
    raise Problem(415, detail, headers=(("accept-encoding", "identity"), ("connection", "close")))


def incomplete_body_problem() -> Problem:
    """Return the problem of an incomplete body (400). The received part may look complete, and must not be used."""
    return Problem(400, "the body ends before it is complete", headers=(("connection", "close"),))


def invalid_chunks_problem() -> Problem:
    """Return the problem of chunks that are invalid or end too early (400)."""
    detail = "the body is cut off or its chunks are broken (trailer fields have to be announced by the header Trailer)"
    return Problem(400, detail, headers=(("connection", "close"),))


def silent_client_problem(time_limit: float) -> Problem:
    """Return the problem of a client that has sent nothing for `time_limit` seconds (408)."""
    detail = f"nothing of the body has arrived for {time_limit:g} s"
    return Problem(408, detail, headers=(("connection", "close"),))


def too_slow() -> Problem:
    """Return the problem of a body that arrives more slowly than the limits allow (408)."""
    return Problem(408, "the body arrives too slowly", headers=(("connection", "close"),))


def _too_many_pieces() -> Problem:
    return Problem(400, "the body comes in too many small pieces", headers=(("connection", "close"),))


def _no_room() -> Problem:
    problem = unavailable("too many large bodies are arriving at the same time")
    problem.headers = (*problem.headers, ("connection", "close"))
    return problem


class _BodyReader:
    """The progress of one body that is being read. received: bytes that have arrived. late: reading was cancelled,
    because the body arrived too slowly."""

    __slots__ = ("began", "hidden_bytes", "late", "received", "task")

    def __init__(self, began: float, task: asyncio.Task[Any] | None, hidden_bytes: int) -> None:
        """began: in seconds of the event loop's clock. task: reads the body, and is cancelled if it arrives too slowly.
        hidden_bytes: bytes of a small body, which are only visible when it is complete; 0 for a large one.
        """
        self.began = began
        self.task = task
        self.hidden_bytes = hidden_bytes
        self.received = 0
        self.late = False

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()


class Bodies:
    """The bodies that a worker reads and holds."""

    def __init__(self) -> None:
        self._limits = BodyLimits()
        self._reading: set[_BodyReader | BodyArrival] = set()
        self._arriving = 0
        """Bytes of large bodies that have been received and are not complete."""
        self._whole: list[bytes] = []
        """Large bodies that are complete; a request may still use them."""
        self._freed = 0
        """Bytes of large bodies released since memory was last returned to the system."""
        self._settling = False
        """Memory has just been returned: the buffers of the HTTP server for the same bodies become free a
        moment later.
        """
        self._looking = False

    @property
    def limits(self) -> BodyLimits:
        return self._limits

    def configure(self, limits: BodyLimits) -> None:
        self._limits = limits

    async def read(self, scope: Any, protocol: Any, limit: int) -> bytes:
        """Return the whole body.

        Raises: Problem: 413 beyond `limit` bytes, 400 for an invalid length or an incomplete body, 408 for one that is
        too slow, 415 for a compressed one, 503 if the worker holds too many.
        """
        _refuse_encoded(scope)
        announced = scope.headers.get("content-length")
        if announced is not None:
            if not announced.isascii() or not announced.isdigit():
                raise Problem(400, "the header Content-Length is not a number")
            if len(announced) > 18 or int(announced) > limit:
                raise too_large(limit)
        loop = asyncio.get_running_loop()
        small = announced is not None and int(announced) <= SMALL
        reading = _BodyReader(loop.time(), asyncio.current_task(), int(announced) if small else 0)
        self._reading.add(reading)
        self._watch(loop)
        try:
            if small:
                body: bytes = await protocol()
                return body
            return await self._gather(scope, protocol, limit, reading, counted=announced is None)
        except RSGIProtocolClosed:
            raise incomplete_body_problem() from None
        except asyncio.CancelledError:
            if not reading.late or reading.task is None:
                raise
            reading.task.uncancel()
            raise too_slow() from None
        finally:
            self._reading.discard(reading)

    def read_small(self, context: RequestContext, limit: int) -> Waiting:
        """Read a small body into the request context, without a task if the HTTP server can call back. Return what has
        to be awaited.

        None: `context.body` is set already; or the body is compressed, large, or has no known length, so that `read`
        has to read it or report the error. limit: in bytes.
        """
        headers = context.scope.headers
        announced = headers.get("content-length")
        if announced is None or len(announced) > 5 or not (announced.isascii() and announced.isdigit()):
            return None
        size = int(announced)
        if size > limit or size > SMALL or "content-encoding" in headers:
            return None
        protocol = context.protocol
        # Of the event loop's HTTP server: nearly every small body arrives with its head, and needs no future.
        received = getattr(protocol, "received_body", None)
        if received is not None:
            context.body = received()
            if context.body is not None:
                return None
        future = protocol()
        if type(future) is CoroutineType:
            return _fill(context, future)
        if future.done() and not future.cancelled() and future.exception() is None:
            context.body = future.result()
            return None
        self._watch(asyncio.get_running_loop())
        return BodyArrival(context, future, self._reading, arriving, _no_body, size)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the periodic checks of bodies, unless they run."""
        if not self._looking:
            self._looking = True
            loop.call_later(LOOK_EVERY, self._check_progress)

    async def _gather(self, scope: Any, protocol: Any, limit: int, reading: _BodyReader, *, counted: bool) -> bytes:
        """Read a body completely and return it. Raises `Problem` if the body is larger than `limit` bytes, incomplete,
        sent in too many small pieces, or has no room in the memory budget.

        reading: gets the number of received bytes. counted: the body has no Content-Length, so only its chunks show
        where it ends.
        """
        buffer = io.BytesIO()
        pieces = silence = 0
        whole = False
        bearable = _empty_pieces_at_the_end(scope) if counted else 2
        try:
            async for piece in protocol:
                silence = 0 if piece else silence + 1
                if silence > bearable:
                    if counted:
                        raise invalid_chunks_problem()
                    break
                size = len(piece)
                if reading.received + size > limit:
                    raise too_large(limit)
                self._make_room(reading, size)
                reading.received += size
                self._arriving += size
                pieces += 1
                if pieces > FREE_PIECES + reading.received // SMALLEST_PIECE:
                    raise _too_many_pieces()
                buffer.write(piece)
            # Without a copy, which would be expensive for a body of 30 MB.
            body = buffer.getvalue()
            whole = True
        finally:
            self._arriving -= reading.received
            if not whole:
                self._freed += reading.received
        if not counted and len(body) < int(scope.headers.get("content-length")):
            raise incomplete_body_problem()
        if len(body) > SMALL:
            self._whole.append(body)
        return body

    def _make_room(self, reading: _BodyReader, size: int) -> None:
        """Raise `Problem` 503 if the memory budget is used up. A single body may be as large as its limit allows. size:
        bytes of the next chunk.
        """
        if reading.received + size <= SMALL:
            return
        if self._arriving + size + sum(map(len, self._whole)) <= self._limits.budget:
            return
        self._release_unreferenced()
        others = self._arriving - reading.received + sum(map(len, self._whole))
        if others and self._arriving + size + sum(map(len, self._whole)) > self._limits.budget:
            raise _no_room()

    def _release_unreferenced(self) -> None:
        """Release complete bodies that are no longer referenced elsewhere."""
        referenced: list[bytes] = []
        while self._whole:
            body = self._whole.pop()
            # Two references: the local variable, and the argument of `getrefcount`.
            if sys.getrefcount(body) > 2:
                referenced.append(body)
            else:
                self._freed += len(body)
        self._whole = referenced

    def _check_progress(self) -> None:
        """End bodies that arrive too slowly or take too long, release complete ones, and schedule the next check."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        limits = self._limits
        for reading in list(self._reading):
            age = now - reading.began
            due = (age - limits.grace) * limits.rate
            behind = due > max(reading.received, reading.hidden_bytes)
            if (behind or 0 < limits.longest < age) and not reading.late:
                reading.late = True
                reading.cancel()
        self._release_unreferenced()
        enough = self._freed >= GIVEN_BACK
        if enough:
            self._freed = 0
        if enough or self._settling:
            _return_freed_memory()
        self._settling = enough
        self._looking = bool(self._reading or self._whole or self._settling)
        if self._looking:
            loop.call_later(LOOK_EVERY, self._check_progress)


def _return_freed_memory() -> None:
    """Return freed memory to the system: glibc holds it otherwise, so that one large body would occupy memory without
    end.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


BODIES = Bodies()
"""The bodies of this process."""


async def _fill(context: RequestContext, body: Awaitable[bytes]) -> None:
    """Store the body in the request context when it has arrived."""
    context.body = await body


def _no_body(arrival: BodyArrival, error: BaseException, context: RequestContext) -> Exception:
    """Return the error of a body that was awaited without a task and has not arrived."""
    if arrival.late:
        return too_slow()
    if isinstance(error, asyncio.CancelledError) and is_past(context):
        return DeadlineError(context)
    return (
        error
        if isinstance(error, Exception) and not isinstance(error, RSGIProtocolClosed)
        else incomplete_body_problem()
    )


async def read_body(scope: Any, protocol: Any, limit: int) -> bytes:
    """Read the whole body, as `Bodies.read` does. limit: in bytes."""
    arriving.add(scope)
    try:
        return await BODIES.read(scope, protocol, limit)
    finally:
        arriving.discard(scope)


async def body_chunks(scope: Any, protocol: Any, limit: int, time_limit: float) -> AsyncIterator[bytes]:
    """Iterate over the chunks of a body as they arrive: each is read from the client when it is requested.

    limit: largest size in bytes. time_limit: longest silence of a client, in seconds. Raises `Problem`: 413, 400 and
    415 as `read_body` does, and 408 if the client is silent for longer. No memory budget applies.
    """
    _refuse_encoded(scope)
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
            async with asyncio.timeout(time_limit):
                piece = await anext(chunks, None)
        except TimeoutError:
            raise silent_client_problem(time_limit) from None
        if piece is None:
            break
        size += len(piece)
        if piece:
            yield piece
    if announced is not None and size < int(announced):
        raise incomplete_body_problem()


async def _chunks(scope: Any, protocol: Any, limit: int) -> AsyncIterator[bytes]:
    """Yield the chunks of a body. While it waits for the client, the scope of the request is in `arriving`, so that the
    wait has a time limit. Raises `Problem`: 413 beyond `limit` bytes, 400 for a body that is cut off."""
    size = silence = 0
    bearable = _empty_pieces_at_the_end(scope)
    arriving.add(scope)
    try:
        async for piece in protocol:
            silence = 0 if piece else silence + 1
            if silence > bearable:
                raise invalid_chunks_problem()
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            # Processing the chunk may take longer; the client is not being waited for meanwhile.
            arriving.discard(scope)
            yield piece
            arriving.add(scope)
    except RSGIProtocolClosed:
        raise incomplete_body_problem() from None
    finally:
        arriving.discard(scope)


def _empty_pieces_at_the_end(scope: Any) -> int:
    """Return how many empty chunks granian delivers for a complete body.

    It delivers one for the end, and one for each error too: a single one for chunks of HTTP/1.1 that are invalid or end
    too early, and an endless number for a stream of HTTP/2 that its client has reset. Complete bodies have a second one
    for trailer fields, which senders announce (RFC 9110, 6.6.2), and in HTTP/2 for a last frame without data.
    """
    return 1 if scope.http_version.startswith("1") and "trailer" not in scope.headers else 2
