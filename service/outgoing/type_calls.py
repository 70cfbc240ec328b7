"""The step that sends the requests of HTTP types and fills the parameters that receive the responses (outbound-12,
outbound-13).

All types of a call are requested at the same time, one request for each distinct type, each with its own attempts. A
request that fails never fails the endpoint: its routine receives the failure.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.endpoint.template import Template, ValueOf, parse_template, placeholder_names, virtual_parameters
from rowcall.core.errors.problems import Problem
from rowcall.core.outgoing.address import BadUrlError, has_dot_segment, names_its_host, read_address, url_for_logs
from rowcall.core.outgoing.guard import RefusedError
from rowcall.core.outgoing.outgoing import TypeCall
from rowcall.core.outgoing.reply import FAILED, TIMED_OUT, Reply, headers_json, retry_after
from rowcall.core.outgoing.request_definition import RequestDefinition
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.http_client.messages import Headers, HttpResponse, OutgoingRequest
from rowcall.service.outgoing.decoding import decoded_body
from rowcall.service.outgoing.hedging import hedge_request
from rowcall.service.outgoing.timing import record_time
from rowcall.service.outgoing.type_cache import cached_reply, request_key
from rowcall.service.request_context.arguments import record_nulls, set_argument
from rowcall.service.request_context.client_liveness import cancel_on_disconnect
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.trace import NAMES, trace_of
from rowcall.service.response.headers import argument_text

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")

LONGEST_PAUSE = 30.0
"""Maximum delay in seconds: if a server requires a longer one, the request is not repeated."""


def ignore_nulls_of_types(endpoint: Endpoint, _services: Services) -> Step | None:
    """Return the step after binding that lets a STRICT routine be called although parameters of HTTP types are still
    NULL, because the responses fill them later. None: the routine is not STRICT, or has no HTTP types."""
    if not endpoint.routine.strict or not endpoint.outgoing.filled:
        return None
    return partial(record_nulls, ignored=endpoint.outgoing.pending)


def call_types(endpoint: Endpoint, services: Services) -> Step | None:
    """Return the step that sends the requests and fills the parameters with the responses, or with the failures; None:
    the endpoint has no HTTP types, or only invalidates. The step raises `Problem` 400 if values of the request make a
    segment of a path `.` or `..`."""
    if not endpoint.outgoing.calls or endpoint.options.invalidates:
        return None
    calls = [_Call(endpoint, call, services) for call in endpoint.outgoing.calls]
    members = endpoint.outgoing.members

    timed = services.options.http.server.server_timing

    async def send(context: RequestContext) -> None:
        began = asyncio.get_running_loop().time()
        await cancel_on_disconnect(context.protocol, _send_all(calls, context))
        if timed:
            record_time(context, "calls", asyncio.get_running_loop().time() - began)
        if endpoint.routine.strict:
            record_nulls(context, members)

    return send


async def _send_all(calls: list[_Call], context: RequestContext) -> None:
    """Send the requests of all types at the same time, and fill the parameters when all have ended. Raises `Problem`
    400 as `_Call.check_path` does, before any request is sent.
    """
    for call in calls:
        call.check_path(context)
    if len(calls) == 1:
        replies = [await calls[0].reply(context)]
    else:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call.reply(context)) for call in calls]
        replies = [task.result() for task in tasks]
    # Only now, so that no request sees the response of another one.
    for call, reply in zip(calls, replies, strict=True):
        call.fill(context, reply)


class _Call:
    """One HTTP type of one endpoint, with its templates parsed. call: the type, and the parameters that receive its
    response.
    """

    def __init__(self, endpoint: Endpoint, call: TypeCall, services: Services) -> None:
        definition = call.definition
        names = placeholder_names(endpoint.parameters)
        parse: Callable[[str], Template] = partial(
            parse_template, names=names, staying=virtual_parameters(endpoint.parameters)
        )
        self._endpoint = endpoint.name
        self._definition = definition
        self._type = call
        self._services = services
        self._binary = {index for index, _ in call.fields if endpoint.parameters[index].cast == "bytea"}
        self._named = names_its_host(definition.url)
        self._written = definition.url if "{" in definition.url.partition("#")[0].partition("?")[0] else None
        self._url = parse(definition.url)
        written = _path_of(self._url.fill(lambda _index: "x"))
        # A dot segment in the comment itself is intended by the operator.
        self._fills_path = not self._url.is_fixed and not has_dot_segment(written)
        self._headers = tuple((name, parse(value)) for name, value in definition.headers)
        self._content_type = None if definition.content_type is None else parse(definition.content_type)
        self._body = None if definition.body is None else parse(definition.body)

    def check_path(self, context: RequestContext) -> None:
        """Raise `Problem` 400 if values of the request make a path segment `.` or `..`."""
        if self._fills_path and has_dot_segment(_path_of(self._url.fill(partial(argument_text, context)))):
            raise Problem(400, f"a value makes a segment of the path of {self._type.name}'s request '.' or '..'")

    def fill(self, context: RequestContext, reply: Reply) -> None:
        """Set the parameters that receive the reply: those for single fields of the HTTP type, and those for the whole
        type, as a row."""
        for index, part in self._type.fields:
            set_argument(context, index, reply.value(part, binary=index in self._binary))
        for index, parts in self._type.rows:
            set_argument(context, index, reply.row(parts))

    async def reply(self, context: RequestContext) -> Reply:
        """Return the cached reply, or send the request, repeated as its definition says, and return the last reply. A
        failure is returned as a reply, and not raised."""
        value_of = partial(argument_text, context)
        url = self._url.fill(value_of)
        try:
            attempt = (
                self._new_internal_attempt(context, url, value_of)
                if url.startswith("/")
                else self._new_attempt(context, url, value_of)
            )
        except (BadUrlError, RefusedError) as error:
            log.error("%s: type %s: %s is not called: %s", self._endpoint, self._type.name, url_for_logs(url), error)
            return Reply(FAILED, error=str(error))
        shown = url_for_logs(url)
        keeps = self._services.type_answers
        if not self._definition.cached or keeps is None:
            return await self._with_retries(shown, attempt)
        return await cached_reply(
            keeps, attempt.key, self._definition.cache_seconds, partial(self._with_retries, shown, attempt)
        )

    def _new_attempt(self, context: RequestContext, url: str, value_of: ValueOf) -> _Attempt:
        """Return the attempt, not yet run, that sends the request to another service. url: with values filled in.
        value_of: returns the value of a placeholder. Raises `BadUrlError` and `RefusedError` if the request cannot be
        sent."""
        body = None if self._body is None else self._body.fill(value_of).encode()
        request = OutgoingRequest(
            self._definition.method, read_address(url), self._headers_with_trace(context, value_of), body
        )
        client = self._services.client
        if client is None:
            raise RefusedError("Service:HttpClientOptions:Enabled is false")
        return _Attempt(
            request_key(self._definition.method, url, request.headers, body),
            partial(client.send, request, named=self._named, trace=trace_of(context.protocol)),
            partial(client.record_timeout, request.address),
            self._definition.timeout,
            client.options.max_response,
            hedge=self._definition.hedge,
        )

    def _new_internal_attempt(self, context: RequestContext, target: str, value_of: ValueOf) -> _Attempt:
        """Return the attempt, not yet run, that sends an internal subrequest. target: path and query. value_of: returns
        the value of a placeholder. Raises `RefusedError` if outgoing requests are off."""
        headers = self._filled_headers(value_of)
        body = None if self._body is None else self._body.fill(value_of).encode()
        send_subrequest = self._services.send_subrequest
        if send_subrequest is None:
            raise RefusedError("Service:HttpClientOptions:Enabled is false")
        limit = None if self._services.client is None else self._services.client.options.max_response
        written = self._written
        call = partial(send_subrequest, self._definition.method, target, headers, body, context, written=written)
        key = request_key(self._definition.method, target, headers, body)
        # A path that was found with one template need not exist with another.
        key = key if written is None else f"{written}\n".encode() + key
        return _Attempt(key, call, _no_breaker, None, limit, send_subrequest=True)

    def _headers_with_trace(self, context: RequestContext, value_of: ValueOf) -> Headers:
        """Return the headers of the request, and those of the trace that it belongs to (W3C Trace Context)."""
        headers = self._filled_headers(value_of)
        named = {name.lower() for name, _ in headers}
        own = ((name, context.scope.headers.get(name)) for name in NAMES if name not in named)
        return [*headers, *((name, value) for name, value in own if value is not None)]

    def _filled_headers(self, value_of: ValueOf) -> Headers:
        """Return the headers of the definition with values filled in; a content type only with a body. value_of:
        returns the value of a placeholder.
        """
        headers = [(name, template.fill(value_of)) for name, template in self._headers]
        if self._content_type is not None and self._body is not None:
            headers.append(("Content-Type", self._content_type.fill(value_of)))
        return headers

    async def _with_retries(self, shown: str, attempt: _Attempt) -> Reply:
        """Send the request until it succeeds, the delays of the definition are used up, or it must not be repeated.
        Return the last reply. shown: the URL for the log, without secrets."""
        definition = self._definition
        delays = iter(definition.retry_delays)
        number = 0
        while True:
            number += 1
            log.debug("%s: type %s: %s %s", self._endpoint, self._type.name, definition.method, shown)
            began = asyncio.get_running_loop().time()
            reply = await attempt.run()
            elapsed = (asyncio.get_running_loop().time() - began) * 1000
            delay = _pause(next(delays, None), reply) if attempt.transient and _wants_retry(definition, reply) else None
            self._report(shown, reply, number, elapsed, delay)
            if delay is None:
                return reply
            await asyncio.sleep(delay)

    def _report(self, shown: str, reply: Reply, number: int, elapsed: float, delay: float | None) -> None:
        """Log an attempt. number: of the attempt, from 1. elapsed: its time in milliseconds. delay: seconds until the
        next one; None: there is no next one.
        """
        what = f"{self._endpoint}: type {self._type.name}: {self._definition.method} {shown}"
        outcome = reply.error or f"status {reply.status}"
        if delay is not None:
            log.warning("%s: attempt %d: %s; again in %g s", what, number, outcome, delay)
        elif reply.error is None or reply.status not in (FAILED, TIMED_OUT):
            size = 0 if reply.body is None else len(reply.body)
            log.debug("%s: %s, %s, %d bytes, %.0f ms", what, outcome, reply.content_type, size, elapsed)
        elif reply.status == TIMED_OUT:
            log.warning("%s: %s", what, outcome)
        else:
            log.error("%s: %s", what, outcome)


def _path_of(url: str) -> str:
    """Return a URL without its scheme, query and fragment: `/path`, or `host/path` if it is absolute."""
    _, scheme, rest = url.partition("://")
    return (rest if scheme else url).partition("#")[0].partition("?")[0]


def _pause(delay: float | None, reply: Reply) -> float | None:
    """Return the seconds until the next attempt: `delay`, or more if the other service requires it. None: no further
    attempt, because it requires more than `LONGEST_PAUSE`. delay: of the definition; None: none is left.
    """
    if delay is None or reply.retry_after is None:
        return delay
    return max(delay, reply.retry_after) if reply.retry_after <= LONGEST_PAUSE else None


def _wants_retry(definition: RequestDefinition, reply: Reply) -> bool:
    """Return whether to repeat the request: always after timeouts and network errors; else after the listed statuses
    or, if none are listed, after any that is no success.
    """
    if reply.status in (FAILED, TIMED_OUT) and reply.error is not None:
        return True
    if definition.retry_codes:
        return reply.status in definition.retry_codes
    return not reply.success


def _no_breaker() -> None:
    """Do nothing: endpoints of this service have no circuit breaker."""


def _ignore_reply(_reply: Reply) -> None:
    """Do nothing: the body was read to its end."""


class _Attempt:
    """Sends one request, any number of times; the runs share nothing but `transient`.

    send: sends it. on_timeout: called when the time limit has passed. timeout: the limit in seconds; None: no limit.
    limit: largest body of the response in bytes; None: no limit. send_subrequest: it is an internal subrequest. hedge:
    seconds after which a second request is sent; None: never.
    """

    def __init__(
        self,
        key: bytes,
        send: Callable[[], Awaitable[HttpResponse]],
        on_timeout: Callable[[], None],
        timeout: float | None,
        limit: int | None,
        *,
        send_subrequest: bool = False,
        hedge: float | None = None,
    ) -> None:
        self.key = key
        """Cache key: equal for requests that send the same."""
        self._send = send
        self._on_timeout = on_timeout
        self._timeout = timeout
        self._limit = limit
        self._inside = send_subrequest
        self._hedge = hedge
        self.transient = True
        """Whether another attempt may succeed."""

    async def run(self) -> Reply:
        """Send the request once, and return the reply or the failure. Nothing is raised."""
        try:
            async with asyncio.timeout(self._timeout):
                if self._hedge is None:
                    return await self._send_once()
                return await hedge_request(self._send_once, self._hedge, _ignore_reply)
        except TimeoutError:
            self._on_timeout()
            return Reply(TIMED_OUT, error=f"Request timed out after {self._timeout:g} seconds")
        except RefusedError as error:
            self.transient = False
            return Reply(FAILED, error=str(error))
        except OutboundError as error:
            return Reply(FAILED, error=str(error))

    async def _send_once(self) -> Reply:
        """Send the request and return the reply with its decoded body. Raises `OutboundError` and `RefusedError`."""
        answer = await self._send()
        try:
            body = decoded_body(await answer.read(self._limit), answer.header("content-encoding"), self._limit)
        except BaseException:
            answer.close()
            raise
        wait = retry_after(answer.header("retry-after"), time.time())
        reply = Reply(
            answer.status, body, headers_json(answer.headers), answer.header("content-type"), retry_after=wait
        )
        if self._inside and not reply.success:
            error = f"Internal request returned {answer.status}"
            return replace(reply, error=error)
        return reply
