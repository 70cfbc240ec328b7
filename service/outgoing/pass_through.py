"""Passing the response of another service to the client: unchanged, at the pace of the client."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, HttpResponse
from rowcall.service.log.request_log import logging_protocol_of
from rowcall.service.request_context.client_liveness import cancel_on_disconnect
from rowcall.service.request_context.head_protocol import is_head
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext
from rowcall.service.response.stream_body import StreamBody
from rowcall.service.response.streaming import Coder, PipeBody, client_of_only_response, coder_of, open_body

log = logging.getLogger("rowcall")

GATHERED = 65_536
"""Maximum size in bytes of bodies of known length that are read completely, to be sent in one piece."""
SOON = 0.02
"""Seconds within which a body of unknown length has to be complete to be sent in one piece. Most are small and arrive
at once, and a body that breaks off within this time is still reported as an error.
"""


async def pass_through(
    context: RequestContext, protocol: Any, answer: HttpResponse, headers: Headers, time_limit: float, silence: float
) -> None:
    """Send the response to the client. After a part of the body was sent, nothing is raised: if the body breaks off,
    the server is silent or the client does not read, that is logged, and the connection of the client is closed (with
    HTTP/2, only the stream).

    protocol: of the request. headers: those of the response, without framing. time_limit: seconds that the client may
    leave the body unread. silence: seconds that the server may send nothing, unless it sends events; a small body of
    known length (`is_gathered`) has to be complete within them.

    Raises, before anything was sent:
        OutboundError: the body breaks off.
        TimeoutError: the server has not sent enough within `silence` seconds.
        ClientDisconnectedError: the client has disconnected.
    """
    if is_head(context) or answer.status in (204, 205, 304):
        answer.close()
        length = answer.header("content-length") if is_head(context) else None
        protocol.response_empty(answer.status, headers if length is None else _with_length(headers, length))
        return
    if answer.complete:
        protocol.response_bytes(answer.status, headers, answer.take())
    elif is_gathered(answer):
        async with asyncio.timeout(silence):
            body = await answer.read(None)
        protocol.response_bytes(answer.status, headers, body)
    elif sends_events(answer):
        await _stream(context, protocol, answer, headers, time_limit, None)
    elif await cancel_on_disconnect(protocol, _ends_soon(answer, silence)):
        protocol.response_bytes(answer.status, headers, await answer.read(None))
    else:
        await _stream(context, protocol, answer, headers, time_limit, silence)


def _with_length(headers: Headers, length: str) -> Headers:
    """Return the headers with this Content-Length in place of their own."""
    return [*(field for field in headers if field[0].lower() != "content-length"), ("content-length", length)]


async def _ends_soon(answer: HttpResponse, silence: float) -> bool:
    """Wait for the first data of a body and, if its length is unknown, for at most `SOON` seconds for its end. Return
    whether the body is complete and small (`GATHERED`). The data stays in the response. silence: seconds within which
    the first data has to arrive.

    Raises (the response is closed after any error):
        OutboundError: the body breaks off.
        TimeoutError: no data has arrived in time.
    """
    try:
        async with asyncio.timeout(silence):
            await answer.gather(0)
        if answer.length is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(SOON, silence)):
                    await answer.gather(GATHERED)
    except BaseException:
        answer.close()
        raise
    return answer.complete and answer.buffered <= GATHERED


def is_gathered(answer: HttpResponse) -> bool:
    """Whether the body has a known length of at most `GATHERED` bytes, so that it is read completely before it is sent.
    Event streams are excluded."""
    return answer.length is not None and answer.length <= GATHERED and not sends_events(answer)


def sends_events(answer: HttpResponse) -> bool:
    """Whether the response is an event stream, which has no known end."""
    return (answer.header("content-type") or "").lower().startswith("text/event-stream")


async def _stream(
    context: RequestContext,
    protocol: Any,
    answer: HttpResponse,
    headers: Headers,
    time_limit: float,
    silence: float | None,
) -> None:
    """Send the response part by part. If its body breaks off, that is logged, and the connection of the client is
    closed. protocol: of the request. time_limit: seconds that the client may leave the body unread. silence: seconds
    that the server may send nothing; None: events, without a limit.
    """
    # Events are not compressed: they are small, and each has to be delivered immediately.
    coder = None if silence is None else coder_of(protocol, headers)
    if coder is not None:
        headers = [field for field in headers if field[0].lower() != "content-length"]
    elif answer.length is not None:
        headers = _with_length(headers, str(answer.length))
    try:
        body = open_body(protocol, answer.status, headers, time_limit, str(context.scope.client))
    except BaseException:
        answer.close()
        raise
    context.answered = True
    complete = False
    try:
        complete = await _pump(answer, body, silence, coder)
    except ClientDisconnectedError:
        log.debug("%s: the client has left in the middle of the body", context.scope.path)
    except (OutboundError, TimeoutError) as error:
        why = str(error) or "no data within the time limit"
        log.warning("%s: the response of the other service is cut off: %s", context.scope.path, why)
    finally:
        if complete:
            await body.close()
        else:
            answer.close()
            body.abort(client_of_only_response(context.scope))
        if (waiting := logging_protocol_of(protocol)) is not None:
            waiting.stream_ended()


async def _pump(answer: HttpResponse, body: PipeBody | StreamBody, silence: float | None, coder: Coder | None) -> bool:
    """Write the body to the client as it arrives, and return True at its end. silence: seconds that the server may send
    nothing; None: no limit. coder: compresses the body; None: it is sent unchanged.

    Raises:
        OutboundError: the body breaks off.
        TimeoutError: the server has sent nothing for `silence` seconds.
        ClientDisconnectedError: the client has disconnected, or does not read.
    """
    loop = asyncio.get_running_loop()
    while True:
        if answer.has_more:
            piece = answer.take()
        else:
            next_chunk = loop.create_task(answer.chunk())
            try:
                await body.wait_for(next_chunk, silence)
            finally:
                if not next_chunk.done():
                    next_chunk.cancel()
            if not next_chunk.done():
                raise TimeoutError
            piece = next_chunk.result()
        if not piece:
            if coder is not None:
                await body.write(coder.end())
            return True
        await body.write(piece if coder is None else coder.part(piece))
