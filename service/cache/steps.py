"""The steps of a cached endpoint: one in front of its run, which may make it needless, and one behind it.

Everything that decides whether a caller may have the answer at all stands before (design 1), so a kept answer never
gets past a 401 or 403; what is made for each request, status and headers, comes after.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.plan import CachePlan, cache_plan
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.ext.driver.request import Request, finished_request
from rowcall.service.cache.keys import key_of, reads_body
from rowcall.service.exchange.exchange import Exchange, Step
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.response.headers import argument_text
from rowcall.service.store.flights import ALONE, AnswerStore, Found, Ticket, ending

log = logging.getLogger("rowcall.cache")


def plan_of(endpoint: Endpoint, services: Services) -> CachePlan | None:
    return cache_plan(endpoint, services.options.cache)


def around(
    endpoint: Endpoint, services: Services, plan: CachePlan, run: tuple[Step, ...], log_hit: Step | None
) -> tuple[Step, ...]:
    """`run` with the two steps around it. log_hit: logs an answer that needs no run."""
    store = services.answers.of(plan.place)
    seconds_of = lifetime_of(plan)
    patience = services.options.database.timeout if endpoint.options.timeout is None else endpoint.options.timeout
    key_for = key_of(endpoint, plan, services)
    # Not for the steps that run, nor for the one behind them.
    needless = len(run) + 1
    shareable = _shareable(endpoint, plan)
    begin = store.begin
    largest = services.answers.largest(plan.place)

    def take(exchange: Exchange, found: Found) -> None:
        if type(found) is Entry:
            exchange.request = finished_request(found.body, found.rows, found.is_null)
            if log_hit is not None:
                log_hit(exchange)
            exchange.skip(needless)
        elif found is not ALONE:
            exchange.ticket = found
            exchange.at_end(ending)

    async def take_later(exchange: Exchange, waiting: Awaitable[Found]) -> None:
        take(exchange, await waiting)

    def look_up(exchange: Exchange) -> Awaitable[None] | None:
        key = key_for(exchange)
        if key is None:
            return None
        found = begin(key, patience)
        if type(found) is not Entry and isinstance(found, Awaitable):
            return take_later(exchange, found)
        take(exchange, found)
        return None

    def keep(exchange: Exchange) -> None:
        ticket: Ticket | None = exchange.ticket
        if ticket is None:
            return
        request = exchange.request
        if request is None or (not request.streaming and _is_no_answer(endpoint, request)):
            return  # an error follows, and those who wait get it too
        exchange.ticket = None
        if request.streaming or len(request.body or b"") >= largest or not shareable(request):
            ticket.pass_on()
        else:
            ticket.keep(Entry(request.body or b"", request.rows, request.is_null), seconds_of(exchange))

    if not plan.rules:
        return (look_up, *run, keep)
    skips = skips_of(endpoint, plan)

    def look_up_unless_skipped(exchange: Exchange) -> Awaitable[None] | None:
        return None if skips(exchange) else look_up(exchange)

    return (look_up_unless_skipped, *run, keep)


def lifetime_of(plan: CachePlan) -> Callable[[Exchange], float | None]:
    """Seconds; None: for ever. The rule that fits, comment, profile (spec 2.3 rules 3 and 4)."""
    if not plan.rules:
        return lambda _exchange: plan.seconds

    def lifetime(exchange: Exchange) -> float | None:
        for index, rule in plan.rules:
            if rule.fits(argument_text(exchange, index)):
                return rule.seconds
        return plan.seconds

    return lifetime


def skips_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[Exchange], bool]:
    """The first rule that fits decides (spec 2.3 rules 1 and 2)."""

    def skips(exchange: Exchange) -> bool:
        for index, rule in plan.rules:
            if rule.fits(argument_text(exchange, index)):
                if rule.seconds is None:
                    log.debug("%s: the cache is skipped for this value of %s", endpoint.name, rule.parameter)
                return rule.seconds is None
        return False

    return skips


def _is_no_answer(endpoint: Endpoint, request: Request) -> bool:
    return endpoint.shape.path is ResultPath.SCALAR and request.rows == 0


def _shareable(endpoint: Endpoint, plan: CachePlan) -> Callable[[Request], bool]:
    """Whether a result is one that is kept (reference 05, 1.4)."""
    if endpoint.shape.path is ResultPath.ROWS and endpoint.options.single:
        return lambda request: request.rows > 0
    most = plan.max_rows
    return (lambda request: request.rows <= most) if most else (lambda _request: True)


def forgetting(endpoint: Endpoint, services: Services, plan: CachePlan) -> Step:
    """The only step of an endpoint that forgets an answer (spec 4.6): rules are ignored (reference 05, 1.9)."""
    store: AnswerStore = services.answers.of(plan.place)
    key_for = key_of(endpoint, plan, services)

    def answer(exchange: Exchange, found: bool) -> None:
        log.debug("%s: %s", endpoint.name, "removed from the cache" if found else "not found in the cache")
        body = b'{"invalidated":true}' if found else b'{"invalidated":false}'
        exchange.protocol.response_bytes(200, [("content-type", "application/json")], body)

    async def answer_later(exchange: Exchange, waiting: Awaitable[bool]) -> None:
        answer(exchange, await waiting)

    def forget(exchange: Exchange) -> Awaitable[None] | None:
        key = key_for(exchange)
        found = False if key is None else store.forget(key)
        # Nothing follows, where a proxy would go on.
        exchange.follow(())
        if isinstance(found, Awaitable):
            return answer_later(exchange, found)
        answer(exchange, found)
        return None

    if not reads_body(endpoint, plan):
        return forget
    limit = services.options.http.body_limit

    async def forget_for_body(exchange: Exchange) -> None:
        if exchange.body is None:
            exchange.body = await read_body(exchange.scope, exchange.protocol, limit)
        waiting = forget(exchange)
        if waiting is not None:
            await waiting

    return forget_for_body
