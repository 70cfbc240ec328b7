"""Kept answers of other services: status, headers and body, as they were sent on (spec 2.1 rule 6).

The step that asks the other service answers by itself, so its answer is caught where it leaves: at the protocol.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.plan import CachePlan
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.service.cache.keys import key_of, reads_body
from rowcall.service.cache.steps import lifetime_of, skips_of
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.exchange.head import HeadProtocol
from rowcall.service.exchange.protocols import Headers, ObservedProtocol
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.store.flights import ALONE, Alone, Found, Ticket, ending


def around_answer(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan,
    forward: Step,
    log_hit: Step | None,
    count: Callable[[str], None] | None = None,
) -> tuple[Step, ...]:
    """`forward` answers the exchange; nothing follows behind these steps. log_hit: logs an answer that was kept.
    count: told `hit` or `miss`."""
    store = services.answers.of(plan.place)
    patience = services.options.outbound.proxy.timeout
    key_for = key_of(endpoint, plan, services)
    seconds_of = lifetime_of(plan)
    skips = skips_of(endpoint, plan)
    limit = services.options.http.body_limit
    largest = services.answers.largest(plan.place)
    needs_body = reads_body(endpoint, plan)

    def take(exchange: Exchange, found: Found) -> None:
        if count is not None:
            count("hit" if type(found) is Entry else "bypass" if found is ALONE else "miss")
        if type(found) is Entry:
            if log_hit is not None:
                log_hit(exchange)
            status, headers = orjson.loads(found.head)
            fields = [(name, value) for name, value in headers]
            if status in (204, 205, 304):
                exchange.protocol.response_empty(status, fields)
            else:
                exchange.protocol.response_bytes(status, fields, found.body)
            exchange.answered = True
            exchange.follow(())
        elif found is not ALONE:
            exchange.ticket = found
            exchange.at_end(ending)
            exchange.protocol = _Keeping(exchange, seconds_of(exchange), largest)

    async def look_up(exchange: Exchange) -> None:
        if needs_body and exchange.body is None:
            exchange.body = await read_body(exchange.scope, exchange.protocol, limit)
        key = None if skips(exchange) else key_for(exchange)
        if key is None:
            return
        found = store.begin(key, patience)
        if type(found) is not Entry and isinstance(found, Awaitable):
            found = await found
        if type(found) is not Entry and type(exchange.protocol) is HeadProtocol:
            # It asks for less than an answer that could be kept.
            if not isinstance(found, Alone | Entry):
                found.give_up(None)
            return
        take(exchange, found)

    return (look_up, forward)


class _Keeping(ObservedProtocol):
    """Keeps the answer that is sent in one piece. `room`: bytes that are waited for, so that it is."""

    __slots__ = ("_exchange", "_seconds", "room")

    def __init__(self, exchange: Exchange, seconds: float | None, room: int) -> None:
        super().__init__(exchange.protocol)
        self._exchange = exchange
        self._seconds = seconds
        self.room = room

    def response_empty(self, status: int, headers: Headers) -> None:
        self._keep(status, headers, b"")
        self.inner.response_empty(status, headers)

    def response_bytes(self, status: int, headers: Headers, body: bytes) -> None:
        self._keep(status, headers, body)
        self.inner.response_bytes(status, headers, body)

    def response_file(self, status: int, headers: Headers, file: str) -> None:
        ticket: Ticket | None = self._exchange.ticket
        if ticket is not None:
            self._exchange.ticket = None
            ticket.pass_on()
        self.inner.response_file(status, headers, file)

    def _keep(self, status: int, headers: Headers, body: bytes) -> None:
        ticket: Ticket | None = self._exchange.ticket
        if ticket is None:
            return
        self._exchange.ticket = None
        # Whatever its status: without an answer of the other service the exchange fails, and nothing comes here with a
        # ticket (`ending`). A cookie is one caller's.
        kept = [(name, value) for name, value in headers if name.lower() != "set-cookie"]
        ticket.keep(Entry(body, 1, head=orjson.dumps([status, kept])), self._seconds)
