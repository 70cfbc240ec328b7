"""`proxy_out`: the routine runs, its result is sent to another service, and the response of that service is the
response (proxies-14).

The response of the routine is captured by a protocol that replaces the one of the server. The request to the other
service begins as soon as the routine begins to respond, so that a large result is never held in memory as a whole. Its
response is passed through as soon as it begins, also while the routine still delivers rows: a service that transforms
the result reads on only while its response is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from rowcall.core.endpoint.capabilities import Forwarding
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import private_headers
from rowcall.core.errors.problems import Problem
from rowcall.core.outgoing.address import read_address
from rowcall.core.outgoing.forwarding import BODY_METHODS
from rowcall.service.http_client.messages import Headers, HttpResponse, OutgoingRequest
from rowcall.service.outgoing.bodies import UpstreamTimeout
from rowcall.service.outgoing.forwarding import NO_HOST, checked_path, raw_path_of
from rowcall.service.outgoing.pass_through import pass_through
from rowcall.service.outgoing.proxy import FAILURES, answer_headers, failure, overriding_fields
from rowcall.service.request.subrequests import CapturedResponse
from rowcall.service.request_context.client_liveness import cancel_on_disconnect
from rowcall.service.request_context.protocols import find_wrapper
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import trace_of

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

JSON = "application/json; charset=utf-8"


class _Result(CapturedResponse):
    """Captures the response of the routine. A response with an error (status 400 or more) is not captured, but sent to
    the client.

    outer: the protocol of the request. begin: begins to send a result to the other service, and returns the task that
    does so and passes the response through. responding: attribute; this task; None: the routine has not responded yet,
    or has responded with an error.
    """

    def __init__(self, outer: Any, begin: Callable[[HttpResponse], asyncio.Task[None]]) -> None:
        super().__init__(outer)
        self.inner = outer
        self._begin = begin
        self.responding: asyncio.Task[None] | None = None

    def begin_response(self, status: int, headers: Headers, source: Any = None) -> HttpResponse:
        """Return the object that receives the body of the result, and begin to send it. Parameters as for
        `CapturedResponse`.
        """
        answer = super().begin_response(status, headers, source)
        self.responding = self._begin(answer)
        return answer

    def response_empty(self, status: int, headers: Headers) -> None:
        if status >= 400:
            self.outer.response_empty(status, headers)
        else:
            super().response_empty(status, headers)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        if status >= 400:
            self.outer.response_bytes(status, headers, body)
        else:
            super().response_bytes(status, headers, body)


class _Sender:
    """Sends the results of one endpoint to the other service. forwarding: method and URL of the annotation."""

    def __init__(self, endpoint: Endpoint, forwarding: Forwarding, services: Services) -> None:
        self._endpoint = endpoint
        self._options = services.options.outbound.proxy
        self._client = services.client
        self._inside = services.send_subrequest
        self._method = forwarding.method
        self._host = forwarding.url or self._options.host
        self._time_limit = services.options.http.slow_client
        self._private_fields = list(private_headers(endpoint))

    async def respond(self, context: RequestContext, protocol: Any, result: HttpResponse) -> None:
        """Send the result, and pass the response through. protocol: of the request. Raises as `send` does,
        `ClientDisconnectedError`, and `OutboundError` or `TimeoutError` as `pass_through` does.
        """
        answer = await cancel_on_disconnect(protocol, self.send(context, result))
        # The headers of the comment were sent with the result (proxies-14).
        own = overriding_fields(self._endpoint, self._private_fields, answer)
        internal = (self._host or "").startswith("/")
        headers = answer_headers(answer, self._options, own, internal=internal)
        await pass_through(context, protocol, answer, headers, self._time_limit, self._options.timeout)

    async def send(self, context: RequestContext, result: HttpResponse) -> HttpResponse:
        """Send the result as the body, if the method has one, and return the response once its header section has
        arrived; the result may not have been sent completely by then. Raises `TimeoutError`, `OutboundError`,
        `RefusedError`, `BadUrlError` or `Problem` if there is none.
        """
        try:
            answer = await self._send(context, result)
        except BaseException:
            result.close()
            raise
        # A result of which nothing more is sent must not block the routine that still writes it.
        if answer.ended:
            result.close()
        else:
            answer.on_end = lambda _: result.close()
        return answer

    async def _send(self, context: RequestContext, result: HttpResponse) -> HttpResponse:
        """Send the result as `send` does. It is closed if the method has no body."""
        method = self._method or context.scope.method
        client, send_subrequest, host = self._client, self._inside, self._host
        if host is None or client is None or send_subrequest is None:
            raise Problem(500, NO_HOST)
        headers = [("content-type", JSON)] if method in BODY_METHODS else []
        async with UpstreamTimeout(self._options.timeout) as upstream:
            body: bytes | AsyncIterator[bytes] | None = None
            if method not in BODY_METHODS:
                result.close()
            elif result.complete or host.startswith("/"):
                with upstream.pause():
                    body = await result.read(None)
            else:
                body = _stream_chunks(result, upstream)
            if host.startswith("/"):
                return await send_subrequest(method, host, headers, body if isinstance(body, bytes) else None, context)
            trace = trace_of(context.protocol)
            query = context.scope.query_string
            target = host.rstrip("/") + raw_path_of(context.scope)
            address = read_address(f"{target}?{query}" if query else target)
            return await client.send(OutgoingRequest(method, address, headers, body), named=True, trace=trace)


async def _stream_chunks(result: HttpResponse, upstream: UpstreamTimeout) -> AsyncIterator[bytes]:
    """Yield the result in chunks as the routine makes it. upstream: time limit of the request to the other service,
    which is suspended while the routine makes the next chunk.
    """
    while True:
        with upstream.pause():
            piece = await result.chunk()
        if not piece:
            return
        yield piece


def catch_result(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step before the routine that captures its response, and begins to send it to the other service as soon
    as it is there; None: the endpoint has no `proxy_out`, passes the response of a proxy through, or only invalidates.

    The step raises `Problem` if the path cannot be sent.
    """
    forwarding = endpoint.options.proxy_out
    if forwarding is None or endpoint.passes_through or endpoint.options.invalidates:
        return None
    sender = _Sender(endpoint, forwarding, services)

    def catch(context: RequestContext) -> None:
        checked_path(context.scope)  # before the routine runs
        loop = asyncio.get_running_loop()
        protocol = context.protocol

        def begin(result: HttpResponse) -> asyncio.Task[None]:
            responding = loop.create_task(sender.respond(context, protocol, result))

            def give_up(_context: RequestContext, _error: Exception | None) -> None:
                responding.cancel()

            # If the request fails meanwhile, nothing waits for the other service.
            context.at_end(give_up)
            return responding

        context.protocol = _Result(protocol, begin)

    return catch


def send_result(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step after the routine that waits until the response of the other service, to which the result of the
    routine is sent, was passed through to the client. None: as for `catch_result`. The step raises `Problem` as that of
    `proxy` does."""
    if endpoint.options.proxy_out is None or endpoint.passes_through or endpoint.options.invalidates:
        return None
    options = services.options.outbound.proxy

    async def send(context: RequestContext) -> None:
        captured = find_wrapper(context.protocol, _Result)
        if captured is None or captured.responding is None:
            return
        context.protocol = captured.outer
        try:
            await captured.responding
        except FAILURES as error:
            raise failure(endpoint, error, options, "ProxyOut").problem() from None

    return send
