"""`proxy`: the request is sent to another service, whose response is passed through or becomes the input of the routine
(proxies-9 to proxies-13).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.header_lines import is_personal
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.core.outgoing.address import BadUrlError
from rowcall.core.outgoing.forwarding import OF_CONNECTION, response_headers
from rowcall.core.outgoing.guard import RefusedError
from rowcall.core.outgoing.options import ProxyOptions
from rowcall.core.outgoing.reply import Reply, headers_json
from rowcall.core.text.cache_control import private
from rowcall.ext.base.http_heads import lowercase_headers
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, HttpResponse, ResponseWaiter
from rowcall.service.outgoing.bodies import whole_body
from rowcall.service.outgoing.decoding import decoded_body
from rowcall.service.outgoing.forwarding import ForwardRequest
from rowcall.service.outgoing.in_flight import InFlightRequest, InFlightRequests
from rowcall.service.outgoing.pass_through import pass_through, sends_events
from rowcall.service.outgoing.timing import record_time
from rowcall.service.request_context.arguments import record_nulls, set_argument
from rowcall.service.request_context.client_liveness import cancel_on_disconnect
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.response.headers import comment_fields

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def proxy(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sends requests to the other service; None: the endpoint is no proxy.

    If the endpoint only passes through, the step responds with the response of the other service. If there is none, it
    raises `Problem`: 504 after the time limit, 503 while the circuit breaker of the service is open, in most other
    cases 502. Otherwise, the step fills parameters of the routine with the response, or with status and message of the
    failure.

    In both cases, it raises `Problem` below 500 for a request of the client that cannot be forwarded, such as one with
    an invalid path or body.
    """
    forwarding = endpoint.options.proxy
    if forwarding is None:
        return None
    forward = ForwardRequest(endpoint, forwarding, services)
    if endpoint.passes_through:
        return _passthrough(endpoint, forward, services)
    return _transform(endpoint, forward, services)


def read_body_for_proxy(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step before binding that reads the body into the request context; None unless both the routine and the
    other service need it.
    """
    if endpoint.options.proxy is None or endpoint.passes_through:
        return None
    if endpoint.transport is not Transport.BODY and endpoint.raw_body is None:
        return None
    limit = services.options.http.limits.body_size

    async def keep(context: RequestContext) -> None:
        await whole_body(context, limit)

    return keep


def _passthrough(endpoint: Endpoint, forward: ForwardRequest, services: Services) -> Step:
    """Return the step that sends the request and passes the response through. It raises `Problem` as for `proxy`."""
    options = services.options.outbound.proxy
    time_limit = services.options.http.slow_client
    internal = is_inside(endpoint, options)

    timed = services.options.http.server.server_timing

    async def send(context: RequestContext) -> None:
        await answer_with(context, forward.send(context), asyncio.get_running_loop().time())

    async def answer_with(context: RequestContext, response: Awaitable[HttpResponse], began: float) -> None:
        room = getattr(context.protocol, "room", 0)
        try:
            answer = await cancel_on_disconnect(context.protocol, response)
            headers = response_fields(context, answer, began)
            if room and not sends_events(answer):
                async with asyncio.timeout(options.timeout):
                    await answer.gather(room)
            await pass_through(context, context.protocol, answer, headers, time_limit, options.timeout)
        except FAILURES as error:
            raise failure(endpoint, error, options).problem() from None
        # The routine does not run.
        context.follow(())

    def response_fields(context: RequestContext, answer: HttpResponse, began: float) -> Headers:
        if timed:
            record_time(context, "upstream", asyncio.get_running_loop().time() - began)
        return answer_headers(
            answer, options, overriding_fields(endpoint, comment_fields(context), answer), internal=internal
        )

    dropped = options.exclude_response_headers | OF_CONNECTION
    plain = options.forward_response_headers and not timed

    def finish(context: RequestContext, answer: HttpResponse, began: float) -> None:
        headers = lowercase_headers(answer.headers, dropped) if plain and context.comment_headers is None else None
        if headers is None:
            headers = response_fields(context, answer, began)
        context.protocol.response_bytes(answer.status, headers, answer.take())
        context.follow(())

    def continue_request(
        context: RequestContext, in_flight_request: InFlightRequest, arriving: ResponseWaiter
    ) -> Awaitable[None]:
        return answer_with(
            context,
            forward.continue_request(in_flight_request, arriving, in_flight_request.sent_at),
            in_flight_request.sent_at,
        )

    client = services.client
    if client is None or not forward.may_begin:
        return send
    in_flight_requests = InFlightRequests(client, finish, continue_request)

    def begin(context: RequestContext) -> Waiting:
        in_flight_request = InFlightRequest(context, in_flight_requests)
        try:
            if not forward.begin(context, in_flight_request):
                return send(context)
        except FAILURES as error:
            raise failure(endpoint, error, options).problem() from None
        in_flight_requests.add(in_flight_request)
        return in_flight_request

    return begin


def _transform(endpoint: Endpoint, forward: ForwardRequest, services: Services) -> Step:
    """Return the step that sends the request and fills parameters of the routine with the response, or with status and
    message of a failure.
    """
    options = services.options.outbound.proxy
    replies = endpoint.outgoing.replies
    binary = {index for index, _ in replies if endpoint.parameters[index].cast == "bytea"}
    members = endpoint.outgoing.members
    limit = services.options.outbound.client.max_response

    timed = services.options.http.server.server_timing

    async def send(context: RequestContext) -> None:
        began = asyncio.get_running_loop().time()
        try:
            reply = await cancel_on_disconnect(context.protocol, _reply(forward, context, limit, options.timeout))
        except FAILURES as error:
            outcome = failure(endpoint, error, options)
            reply = Reply(outcome.status, error=outcome.message)
        if timed:
            record_time(context, "upstream", asyncio.get_running_loop().time() - began)
        for index, part in replies:
            set_argument(context, index, reply.value(part, binary=index in binary))
        record_nulls(context, members)

    return send


async def _reply(forward: ForwardRequest, context: RequestContext, limit: int | None, seconds: float) -> Reply:
    """Send the request and return the reply with its decoded body. limit: largest body in bytes; None: no limit.
    seconds: within which the body has to arrive. Raises as `ForwardRequest.send` and `decoded_body` do.
    """
    answer = await forward.send(context)
    try:
        async with asyncio.timeout(seconds):
            body = decoded_body(await answer.read(limit), answer.header("content-encoding"), limit)
    except BaseException:
        answer.close()
        raise
    return Reply(answer.status, body, headers_json(answer.headers), answer.header("content-type"))


def is_inside(endpoint: Endpoint, options: ProxyOptions) -> bool:
    """Return whether the target is an endpoint of this service."""
    forwarding = endpoint.options.proxy or endpoint.options.proxy_out
    host = None if forwarding is None else forwarding.url or options.host
    return host is not None and host.startswith("/")


def overriding_fields(endpoint: Endpoint, fields: Headers, answer: HttpResponse) -> Headers:
    """Return the fields that take precedence over those of the upstream response.

    fields: those of the comment, with the caching headers of a personal response. answer: the upstream response. If
    the comment of a personal endpoint has no `Cache-Control`, that of the upstream response is used, made private: it
    may be stricter than the default.
    """
    if not is_personal(endpoint) or any(name.lower() == "cache-control" for name, _ in endpoint.options.headers):
        return fields
    upstream = ", ".join(value for name, value in answer.headers if name.lower() == "cache-control")
    if not upstream:
        return fields
    return [(name, private(upstream) if name == "cache-control" else value) for name, value in fields]


def answer_headers(answer: HttpResponse, options: ProxyOptions, own: Headers, *, internal: bool) -> Headers:
    """Return the headers of the response to the client. answer: the upstream response. own: headers of the comment,
    which take precedence. internal: the response is that of an endpoint of this service, of which only the content type
    is used.
    """
    # `Vary` headers are added to each other.
    taken = {name for name, _ in own if name != "vary"} if own else ()
    content_type = answer.header("content-type")
    headers: Headers = [("content-type", content_type)] if content_type is not None else []
    headers += own
    if options.forward_response_headers and not internal:
        headers += response_headers(answer.headers, options.exclude_response_headers, taken)
    return headers


FAILURES = (TimeoutError, OutboundError, RefusedError, BadUrlError, Problem)
"""Errors of a request to another service, which `failure` converts."""


class Failure:
    """Status and message for the client, or the routine, when there is no response. problem: the error for the client;
    None: a `Problem` is made from status and message."""

    def __init__(self, status: int, message: str, problem: Problem | None = None) -> None:
        self.status = status
        self.message = message
        self._problem = problem

    def problem(self) -> Problem:
        """Return the error for the client."""
        return self._problem or Problem(self.status, self.message)


def failure(endpoint: Endpoint, error: Exception, options: ProxyOptions, what: str = "Proxy") -> Failure:
    """Return status and message for an error of a request, and log the error unless it is a `Problem`. Raises `error`
    itself if it is a `Problem` below 500, because the request of the client is at fault. error: one of `FAILURES`.
    what: kind of the request, for the message."""
    if isinstance(error, Problem):
        if error.status < 500:
            # The request itself is invalid, so the client gets the error.
            raise error
        return Failure(error.status, error.detail or error.title, error)
    if isinstance(error, TimeoutError):
        log.warning("%s: the other service has not answered within %g s", endpoint.name, options.timeout)
        return Failure(504, f"{what} request timed out after {options.timeout:g} seconds")
    log.warning("%s: the request to the other service failed: %s", endpoint.name, error)
    retry_after = getattr(error, "retry_after", None)
    if retry_after is not None:
        return Failure(503, str(error), unavailable(str(error), retry_after))
    return Failure(502, str(error))
