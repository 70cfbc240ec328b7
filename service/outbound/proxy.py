"""`proxy`: the request goes to another service, and its answer is the answer, or goes to the routine
(reference 05, 4.4)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rowcall.core.cache.entry import Entry
from rowcall.core.catalogue.source import Transport
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.outbound.address import BadUrlError
from rowcall.core.outbound.envelope import Kept, is_for_all, opened, sealed
from rowcall.core.outbound.forwarding import response_headers
from rowcall.core.outbound.guard import RefusedError
from rowcall.core.outbound.options import ProxyOptions
from rowcall.core.outbound.reply import Reply, headers_json
from rowcall.service.exchange.arguments import put
from rowcall.service.exchange.attendance import while_client_waits
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.outbound.bodies import whole_body
from rowcall.service.outbound.decoding import decoded_body
from rowcall.service.outbound.forwarding import Forward
from rowcall.service.outbound.relay import relay
from rowcall.service.response.headers import comment_fields
from rowcall.service.store.flights import ALONE, Keeper, ending
from rowcall.service.upstream.errors import OutboundError
from rowcall.service.upstream.messages import Answer, Headers

if TYPE_CHECKING:
    from rowcall.service.pipeline.services import Services

log = logging.getLogger("rowcall")


def proxy(endpoint: Endpoint, services: Services, keeper: Keeper | None) -> Step | None:
    """keeper: where answers that only pass through are kept."""
    wish = endpoint.options.proxy
    if wish is None or endpoint.options.invalidates:
        return None
    forward = Forward(endpoint, wish, services)
    if not endpoint.passes_through:
        return _transform(endpoint, forward, services)
    passing = _Passing(endpoint, forward, services)
    return passing.send if keeper is None else _Kept(passing, keeper).send


def keep_for_proxy(endpoint: Endpoint, services: Services) -> Step | None:
    """In front of binding: what the routine and the other service both read is kept, and what is part of a key."""
    if endpoint.options.proxy is None:
        return None
    if endpoint.passes_through:
        if not endpoint.options.invalidates or endpoint.method == "GET":
            return None
    elif endpoint.transport is not Transport.BODY and endpoint.raw_body is None:
        return None
    limit = services.options.http.body_limit

    async def keep(exchange: Exchange) -> None:
        await whole_body(exchange, limit)

    return keep


class _Passing:
    """The answer of the other service is the answer; the routine never runs."""

    def __init__(self, endpoint: Endpoint, forward: Forward, services: Services) -> None:
        self.endpoint = endpoint
        self._forward = forward
        self._patience = services.options.http.slow_client
        self._inside = is_inside(endpoint, services.options.outbound.proxy)
        self.options = services.options.outbound.proxy
        self.limit = services.options.http.body_limit
        self.reads_body = endpoint.method != "GET"

    async def send(self, exchange: Exchange) -> None:
        answer = await self.ask(exchange)
        await self.relay(exchange, answer)

    async def ask(self, exchange: Exchange) -> Answer:
        """Raises `Problem`."""
        try:
            return await while_client_waits(exchange.protocol, self._forward.send(exchange))
        except FAILURES as error:
            raise failure(self.endpoint, error, self.options).problem() from None

    async def relay(self, exchange: Exchange, answer: Answer) -> None:
        """Raises `Problem` where nothing has been sent yet."""
        exchange.follow(())
        headers = answer_headers(answer, self.options, comment_fields(exchange), inside=self._inside)
        try:
            await relay(exchange, answer, headers, self._patience, self.options.timeout)
        except FAILURES as error:
            raise failure(self.endpoint, error, self.options).problem() from None

    def kept(self, answer: Answer, body: bytes) -> Kept:
        options = self.options
        headers: Headers = []
        if options.forward_response_headers and not self._inside:
            headers = response_headers(answer.headers, options.exclude_response_headers, ())
        return Kept(answer.status, answer.header("content-type"), headers, body)


class _Kept:
    """The same, with answers that are kept (spec 2.1 rule 6): what another service has said, and nothing else."""

    def __init__(self, passing: _Passing, keeper: Keeper) -> None:
        self._passing = passing
        self._keeper = keeper

    async def send(self, exchange: Exchange) -> None:
        if exchange.scope.method == "HEAD":
            await self._passing.send(exchange)
            return
        if self._passing.reads_body:
            # It is part of the key.
            await whole_body(exchange, self._passing.limit)
        coming = self._keeper.begin(exchange)
        found = await coming if isinstance(coming, Awaitable) else coming
        if type(found) is Entry:
            exchange.follow(())
            self._answer(exchange, opened(found.body))
        elif found is ALONE:
            await self._passing.send(exchange)
        else:
            exchange.ticket = found
            exchange.at_end(ending)
            await self._fetch(exchange)

    def _answer(self, exchange: Exchange, kept: Kept) -> None:
        own = comment_fields(exchange)
        taken = {name for name, _ in own}
        content_type = [] if kept.content_type is None else [("content-type", kept.content_type)]
        headers = [*content_type, *own, *(field for field in kept.headers if field[0] not in taken)]
        if kept.status in (204, 205, 304):
            exchange.protocol.response_empty(kept.status, headers)
        else:
            exchange.protocol.response_bytes(kept.status, headers, kept.body)

    async def _fetch(self, exchange: Exchange) -> None:
        answer = await self._passing.ask(exchange)
        body = await self._whole(exchange, answer)
        ticket, exchange.ticket = exchange.ticket, None
        if body is None:
            ticket.pass_on()
            await self._passing.relay(exchange, answer)
            return
        kept = self._passing.kept(answer, body)
        ticket.keep(Entry(sealed(kept), 1), self._keeper.seconds(exchange))
        exchange.follow(())
        self._answer(exchange, kept)

    async def _whole(self, exchange: Exchange, answer: Answer) -> bytes | None:
        """The body; None for an answer that is not kept, with what has been read put back."""
        largest = self._keeper.largest
        events = (answer.header("content-type") or "").lower().startswith("text/event-stream")
        if events or not is_for_all(answer.headers) or (answer.length is not None and answer.length > largest):
            return None
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._passing.options.timeout):
                while piece := await answer.chunk():
                    pieces.append(piece)
                    size += len(piece)
                    if size > largest:
                        answer.put_back(b"".join(pieces))
                        return None
        except FAILURES as error:
            answer.close()
            raise failure(self._passing.endpoint, error, self._passing.options).problem() from None
        except BaseException:
            answer.close()
            raise
        return b"".join(pieces)


def _transform(endpoint: Endpoint, forward: Forward, services: Services) -> Step:
    options = services.options.outbound.proxy
    replies = endpoint.outgoing.replies
    binary = {index for index, _ in replies if endpoint.parameters[index].cast == "bytea"}
    limit = services.options.outbound.client.max_response

    async def send(exchange: Exchange) -> None:
        try:
            reply = await while_client_waits(exchange.protocol, _reply(forward, exchange, limit))
        except FAILURES as error:
            failed = failure(endpoint, error, options)
            reply = Reply(failed.status, error=failed.message)
        for index, part in replies:
            put(exchange, index, reply.value(part, binary=index in binary))
        exchange.has_null = None in exchange.arguments

    return send


async def _reply(forward: Forward, exchange: Exchange, limit: int | None) -> Reply:
    answer = await forward.send(exchange)
    try:
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


def answer_headers(answer: Answer, options: ProxyOptions, own: Headers, *, inside: bool) -> Headers:
    """own: those of the comment, which win. An endpoint of this service gives its content type alone."""
    taken = {name for name, _ in own}
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
    return Failure(502, str(error))
