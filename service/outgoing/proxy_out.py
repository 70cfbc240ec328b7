"""`proxy_out`: the routine runs, its result is sent to another service, and the response of that service is the
response (proxies-14).

The response of the routine is captured by a protocol that replaces the one of the server. The request to the other
service begins as soon as the routine begins to respond, so that a large result is never held in memory as a whole.
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
    does so. sending: attribute; this task; None: the routine has not responded yet, or has responded with an error.
    """

    def __init__(self, outer: Any, begin: Callable[[HttpResponse], asyncio.Task[HttpResponse]]) -> None:
        super().__init__(outer)
        self.inner = outer
        self._begin = begin
        self.sending: asyncio.Task[HttpResponse] | None = None

    def begin_response(self, status: int, headers: Headers, source: Any = None) -> HttpResponse:
        """Return the object that receives the body of the result, and begin to send it. Parameters as for
        `CapturedResponse`.
        """
        answer = super().begin_response(status, headers, source)
        self.sending = self._begin(answer)
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
        self._options = services.options.outbound.proxy
        self._client = services.client
        self._inside = services.send_subrequest
        self._method = forwarding.method
        self._host = forwarding.url or self._options.host

    async def send(self, context: RequestContext, result: HttpResponse) -> HttpResponse:
        """Send the result as the body, if the method has one, and return the response once its header section has
        arrived. Raises `TimeoutError`, `OutboundError`, `RefusedError`, `BadUrlError` or `Problem` if there is none.
        """
        method = self._method or context.scope.method
        client, send_subrequest, host = self._client, self._inside, self._host
        try:
            if host is None or client is None or send_subrequest is None:
                raise Problem(500, NO_HOST)
            headers = [("content-type", JSON)]
            async with asyncio.timeout(self._options.timeout) as deadline:
                if method not in BODY_METHODS:
                    body: bytes | AsyncIterator[bytes] | None = None
                elif result.complete or host.startswith("/"):
                    body = await result.read(None)
                else:
                    body = _stream_chunks(result, deadline, self._options.timeout)
                carried = headers if method in BODY_METHODS else []
                if host.startswith("/"):
                    return await send_subrequest(
                        method, host, carried, body if isinstance(body, bytes) else None, context
                    )
                trace = trace_of(context.protocol)
                query = context.scope.query_string
                target = host.rstrip("/") + raw_path_of(context.scope)
                address = read_address(f"{target}?{query}" if query else target)
                return await client.send(OutgoingRequest(method, address, carried, body), named=True, trace=trace)
        finally:
            # A result that is not sent must not block the routine that still writes it.
            result.close()


async def _stream_chunks(result: HttpResponse, deadline: asyncio.Timeout, seconds: float) -> AsyncIterator[bytes]:
    """Yield the result in chunks as the routine makes it. deadline: time limit of the request to the other service,
    which is set to `seconds` from now with each chunk.
    """
    loop = asyncio.get_running_loop()
    while piece := await result.chunk():
        if deadline.when() is not None:
            deadline.reschedule(loop.time() + seconds)
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
        context.protocol = _Result(context.protocol, lambda result: loop.create_task(sender.send(context, result)))

    return catch


def send_result(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step after the routine that waits for the response of the other service, to which the result of the
    routine is sent, and passes it through to the client. None: as for `catch_result`. The step raises `Problem` as that
    of `proxy` does."""
    if endpoint.options.proxy_out is None or endpoint.passes_through or endpoint.options.invalidates:
        return None
    options = services.options.outbound.proxy
    time_limit = services.options.http.slow_client
    internal = (endpoint.options.proxy_out.url or options.host or "").startswith("/")
    private_fields = list(private_headers(endpoint))

    async def send(context: RequestContext) -> None:
        captured = find_wrapper(context.protocol, _Result)
        if captured is None or captured.sending is None:
            return
        context.protocol = captured.outer
        try:
            answer = await cancel_on_disconnect(context.protocol, captured.sending)
            # The headers of the comment were sent with the result (proxies-14).
            headers = answer_headers(
                answer, options, overriding_fields(endpoint, private_fields, answer), internal=internal
            )
            await pass_through(context, answer, headers, time_limit, options.timeout)
        except FAILURES as error:
            raise failure(endpoint, error, options, "ProxyOut").problem() from None

    return send
