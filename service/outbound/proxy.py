"""`proxy`: the request goes to another service, and its answer is the answer, or goes to the routine
(proxies-9 to proxies-13)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import is_personal
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.outbound.address import BadUrlError
from rowcall.core.outbound.forwarding import OF_CONNECTION, response_headers
from rowcall.core.outbound.guard import RefusedError
from rowcall.core.outbound.options import ProxyOptions
from rowcall.core.outbound.reply import Reply, headers_json
from rowcall.core.text.cache_control import private
from rowcall.ext.base.heads import lowered
from rowcall.service.exchange.arguments import put
from rowcall.service.exchange.attendance import while_client_waits
from rowcall.service.exchange.exchange import Exchange, Step, Waiting
from rowcall.service.outbound.bodies import whole_body
from rowcall.service.outbound.decoding import decoded_body
from rowcall.service.outbound.flight import Flight, Flights
from rowcall.service.outbound.forwarding import Forward
from rowcall.service.outbound.relay import relay, sends_events
from rowcall.service.outbound.timing import tell_time
from rowcall.service.response.headers import comment_fields
from rowcall.service.upstream.errors import OutboundError
from rowcall.service.upstream.messages import Answer, Arriving, Headers

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def proxy(endpoint: Endpoint, services: Services) -> Step | None:
    wish = endpoint.options.proxy
    if wish is None:
        return None
    forward = Forward(endpoint, wish, services)
    if endpoint.passes_through:
        return _passthrough(endpoint, forward, services)
    return _transform(endpoint, forward, services)


def keep_for_proxy(endpoint: Endpoint, services: Services) -> Step | None:
    """In front of binding: what the routine and the other service both read is kept."""
    if endpoint.options.proxy is None or endpoint.passes_through:
        return None
    if endpoint.transport is not Transport.BODY and endpoint.raw_body is None:
        return None
    limit = services.options.http.body_limit

    async def keep(exchange: Exchange) -> None:
        await whole_body(exchange, limit)

    return keep


def _passthrough(endpoint: Endpoint, forward: Forward, services: Services) -> Step:
    options = services.options.outbound.proxy
    patience = services.options.http.slow_client
    inside = is_inside(endpoint, options)

    timed = services.options.http.server_timing

    async def send(exchange: Exchange) -> None:
        await answer_with(exchange, forward.send(exchange), asyncio.get_running_loop().time())

    async def answer_with(exchange: Exchange, asked: Awaitable[Answer], began: float) -> None:
        room = getattr(exchange.protocol, "room", 0)
        try:
            answer = await while_client_waits(exchange.protocol, asked)
            headers = told(exchange, answer, began)
            if room and not sends_events(answer):
                async with asyncio.timeout(options.timeout):
                    await answer.gather(room)
            await relay(exchange, answer, headers, patience, options.timeout)
        except FAILURES as error:
            raise failure(endpoint, error, options).problem() from None
        # The routine never runs.
        exchange.follow(())

    def told(exchange: Exchange, answer: Answer, began: float) -> Headers:
        if timed:
            tell_time(exchange, "upstream", asyncio.get_running_loop().time() - began)
        return answer_headers(answer, options, own_fields(endpoint, comment_fields(exchange), answer), inside=inside)

    dropped = options.exclude_response_headers | OF_CONNECTION
    plain = options.forward_response_headers and not timed

    def finish(exchange: Exchange, answer: Answer, began: float) -> None:
        headers = lowered(answer.headers, dropped) if plain and exchange.comment_headers is None else None
        if headers is None:
            headers = told(exchange, answer, began)
        exchange.protocol.response_bytes(answer.status, headers, answer.take())
        exchange.follow(())

    def go_on(exchange: Exchange, flight: Flight, arriving: Arriving) -> Awaitable[None]:
        return answer_with(exchange, forward.go_on(flight, arriving, flight.moment), flight.moment)

    client = services.client
    if client is None or not forward.may_begin:
        return send
    flights = Flights(client, finish, go_on)

    def begin(exchange: Exchange) -> Waiting:
        flight = Flight(exchange, flights)
        try:
            if not forward.begin(exchange, flight):
                return send(exchange)
        except FAILURES as error:
            raise failure(endpoint, error, options).problem() from None
        flights.add(flight)
        return flight

    return begin


def _transform(endpoint: Endpoint, forward: Forward, services: Services) -> Step:
    options = services.options.outbound.proxy
    replies = endpoint.outgoing.replies
    binary = {index for index, _ in replies if endpoint.parameters[index].cast == "bytea"}
    limit = services.options.outbound.client.max_response

    timed = services.options.http.server_timing

    async def send(exchange: Exchange) -> None:
        began = asyncio.get_running_loop().time()
        try:
            reply = await while_client_waits(exchange.protocol, _reply(forward, exchange, limit, options.timeout))
        except FAILURES as error:
            failed = failure(endpoint, error, options)
            reply = Reply(failed.status, error=failed.message)
        if timed:
            tell_time(exchange, "upstream", asyncio.get_running_loop().time() - began)
        for index, part in replies:
            put(exchange, index, reply.value(part, binary=index in binary))
        exchange.has_null = None in exchange.arguments

    return send


async def _reply(forward: Forward, exchange: Exchange, limit: int | None, seconds: float) -> Reply:
    answer = await forward.send(exchange)
    try:
        async with asyncio.timeout(seconds):
            body = decoded_body(await answer.read(limit), answer.header("content-encoding"), limit)
    except BaseException:
        answer.close()
        raise
    return Reply(answer.status, body, headers_json(answer.headers), answer.header("content-type"))


def is_inside(endpoint: Endpoint, options: ProxyOptions) -> bool:
    """The other service is this one."""
    wish = endpoint.options.proxy or endpoint.options.proxy_out
    host = None if wish is None else wish.url or options.host
    return host is not None and host.startswith("/")


def own_fields(endpoint: Endpoint, fields: Headers, answer: Answer) -> Headers:
    """Return the fields that win over those of the upstream response.

    fields: those of the comment, with the caching headers of a personal response. Where the comment has no
    `Cache-Control`, the upstream's own is sent, as private as the endpoint: it may be stricter than the default.
    """
    options = endpoint.options
    if not is_personal(options) or any(name.lower() == "cache-control" for name, _ in options.headers):
        return fields
    upstream = ", ".join(value for name, value in answer.headers if name.lower() == "cache-control")
    if not upstream:
        return fields
    return [(name, private(upstream) if name == "cache-control" else value) for name, value in fields]


def answer_headers(answer: Answer, options: ProxyOptions, own: Headers, *, inside: bool) -> Headers:
    """own: those of the comment, which win. An endpoint of this service gives its content type alone."""
    # Fields of `Vary` add up.
    taken = {name for name, _ in own if name != "vary"} if own else ()
    content_type = answer.header("content-type")
    headers: Headers = [("content-type", content_type)] if content_type is not None else []
    headers += own
    if options.forward_response_headers and not inside:
        headers += response_headers(answer.headers, options.exclude_response_headers, taken)
    return headers


FAILURES = (TimeoutError, OutboundError, RefusedError, BadUrlError, Problem)


class Failure:
    """What the client, or the routine, is told when no answer has come."""

    def __init__(self, status: int, message: str, problem: Problem | None = None) -> None:
        self.status = status
        self.message = message
        self._problem = problem

    def problem(self) -> Problem:
        return self._problem or Problem(self.status, self.message)


def failure(endpoint: Endpoint, error: Exception, options: ProxyOptions, what: str = "Proxy") -> Failure:
    if isinstance(error, Problem):
        if error.status < 500:
            # The request itself was wrong: nobody but its client can know better.
            raise error
        return Failure(error.status, error.detail or error.title, error)
    if isinstance(error, TimeoutError):
        log.warning("%s: the other service has not answered within %g s", endpoint.name, options.timeout)
        return Failure(504, f"{what} request timed out after {options.timeout:g} seconds")
    log.warning("%s: the other service cannot be asked: %s", endpoint.name, error)
    retry_after = getattr(error, "retry_after", None)
    if retry_after is not None:
        return Failure(503, str(error), unavailable(str(error), retry_after))
    return Failure(502, str(error))
