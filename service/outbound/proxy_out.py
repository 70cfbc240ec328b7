"""`proxy_out`: the routine runs, its result goes to another service, and the answer of that is the answer
(proxies-14).

What the routine answers is caught by a protocol that stands in the place of the server's own. The request to the other
service begins as soon as the routine begins to answer, so that a large result is never held as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from rowcall.core.endpoint.capabilities import Forwarding
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import private_headers
from rowcall.core.errors.problems import Problem
from rowcall.core.outbound.address import read_address
from rowcall.core.outbound.forwarding import BODY_METHODS
from rowcall.service.exchange.attendance import while_client_waits
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.exchange.head import HeadProtocol
from rowcall.service.exchange.trace import trace_of
from rowcall.service.outbound.forwarding import NO_HOST, checked_path, sent_path
from rowcall.service.outbound.proxy import FAILURES, answer_headers, failure, own_fields
from rowcall.service.outbound.relay import relay
from rowcall.service.request.self_calls import Capture
from rowcall.service.upstream.messages import Answer, Headers, OutgoingRequest

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

JSON = "application/json; charset=utf-8"


class _Result(Capture):
    """Catches what the routine answers, unless it is an error: that goes to the client."""

    def __init__(self, outer: Any, begin: Callable[[Answer], asyncio.Task[Answer]]) -> None:
        super().__init__(outer)
        self.outer = outer
        self.inner = outer
        self._begin = begin
        self.sending: asyncio.Task[Answer] | None = None

    def answered(self, status: int, headers: Headers, source: Any = None) -> Answer:
        answer = super().answered(status, headers, source)
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
    def __init__(self, endpoint: Endpoint, wish: Forwarding, services: Services) -> None:
        self._options = services.options.outbound.proxy
        self._client = services.client
        self._inside = services.inside
        self._method = wish.method
        self._host = wish.url or self._options.host

    async def send(self, exchange: Exchange, result: Answer) -> Answer:
        method = self._method or exchange.scope.method
        client, inside, host = self._client, self._inside, self._host
        try:
            if host is None or client is None or inside is None:
                raise Problem(500, NO_HOST)
            headers = [("content-type", JSON)]
            async with asyncio.timeout(self._options.timeout) as deadline:
                if method not in BODY_METHODS:
                    body: bytes | AsyncIterator[bytes] | None = None
                elif result.complete or host.startswith("/"):
                    body = await result.read(None)
                else:
                    body = _streamed(result, deadline, self._options.timeout)
                carried = headers if method in BODY_METHODS else []
                if host.startswith("/"):
                    return await inside(method, host, carried, body if isinstance(body, bytes) else None, exchange)
                trace = trace_of(exchange.protocol)
                query = exchange.scope.query_string
                target = host.rstrip("/") + sent_path(exchange.scope)
                address = read_address(f"{target}?{query}" if query else target)
                return await client.send(OutgoingRequest(method, address, carried, body), named=True, trace=trace)
        finally:
            # Whatever nobody has sent on must not hold up the routine that still writes it.
            result.close()


async def _streamed(result: Answer, deadline: asyncio.Timeout, seconds: float) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    while piece := await result.chunk():
        if deadline.when() is not None:
            deadline.reschedule(loop.time() + seconds)
        yield piece


def catch_result(endpoint: Endpoint, services: Services) -> Step | None:
    """In front of running the routine."""
    wish = endpoint.options.proxy_out
    if wish is None or endpoint.passes_through or endpoint.options.invalidates:
        return None
    sender = _Sender(endpoint, wish, services)

    def catch(exchange: Exchange) -> None:
        checked_path(exchange.scope)  # before the routine runs
        protocol = exchange.protocol
        if type(protocol) is HeadProtocol:
            protocol = protocol.inner
        loop = asyncio.get_running_loop()
        exchange.protocol = _Result(protocol, lambda result: loop.create_task(sender.send(exchange, result)))

    return catch


def send_result(endpoint: Endpoint, services: Services) -> Step | None:
    """Behind the answer of the routine."""
    if endpoint.options.proxy_out is None or endpoint.passes_through or endpoint.options.invalidates:
        return None
    options = services.options.outbound.proxy
    patience = services.options.http.slow_client
    inside = (endpoint.options.proxy_out.url or options.host or "").startswith("/")
    private_fields = list(private_headers(endpoint.options))

    async def send(exchange: Exchange) -> None:
        caught = exchange.protocol
        while caught is not None and not isinstance(caught, _Result):
            caught = getattr(caught, "inner", None)
        if caught is None or caught.sending is None:
            return
        exchange.protocol = caught.outer
        if exchange.scope.method == "HEAD":
            exchange.protocol = HeadProtocol(caught.outer)
        try:
            answer = await while_client_waits(exchange.protocol, caught.sending)
            # Headers of the comment were for the result (proxies-14).
            headers = answer_headers(answer, options, own_fields(endpoint, private_fields, answer), inside=inside)
            await relay(exchange, answer, headers, patience, options.timeout)
        except FAILURES as error:
            raise failure(endpoint, error, options, "ProxyOut").problem() from None

    return send
