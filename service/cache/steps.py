"""The steps of a cached endpoint: one in front of its run, which may make it needless, and one behind it.

Everything that decides whether a caller may have the answer at all stands before (execution-1), so a kept answer never
gets past a 401 or 403; what is made for each request, status and headers, comes after.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.plan import CachePlan, cache_plan
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.ext.driver.request import Request, finished_request
from rowcall.service.cache.keys import KeyOf, has_plain_key, key_of, reads_body
from rowcall.service.cache.outdated import OutdatedAnswers
from rowcall.service.cache.refreshing import Refresher
from rowcall.service.exchange.exchange import Exchange, Step, Waiting
from rowcall.service.exchange.head import HeadProtocol
from rowcall.service.exchange.protocols import HeadersProtocol
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.response.headers import argument_text
from rowcall.service.store.flights import ALONE, AnswerStore, Found, Ticket, ending
from rowcall.service.store.memory_answers import MemoryAnswers

log = logging.getLogger("rowcall.cache")


def plan_of(endpoint: Endpoint, services: Services) -> CachePlan | None:
    options = services.options
    return cache_plan(endpoint, options.cache, timestamps_utc=options.timestamps_utc, commands=options.before)


def around(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan,
    run: tuple[Step, ...],
    log_hit: Step | None,
    count: Callable[[str], None] | None = None,
) -> tuple[Step, ...]:
    """`run` with the steps around it. log_hit: logs an answer that needs no run. count: told `hit`, `miss`, `stale` or
    `bypass`."""
    store = services.answers.of(plan.place)
    patience = services.options.database.timeout if endpoint.options.timeout is None else endpoint.options.timeout
    key_for = key_of(endpoint, plan, services)
    tell = teller(services.options.cache.status_header, count)
    keep = _keep(endpoint, services, plan)
    if plan.tags:
        run = (announce(endpoint, plan), *run)
    # Not for the steps that run, nor for the one behind them.
    needless = len(run) + 1

    def give(exchange: Exchange, entry: Entry, word: str, needless: int) -> None:
        exchange.request = finished_request(entry.body, entry.rows, entry.is_null)
        if log_hit is not None:
            log_hit(exchange)
        if tell is not None:
            tell(exchange, word)
        exchange.skip(needless)

    def take(exchange: Exchange, found: Found) -> None:
        if type(found) is Entry:
            give(exchange, found, "hit", needless)
            return
        if tell is not None:
            tell(exchange, "bypass" if found is ALONE else "miss")
        if found is not ALONE:
            exchange.ticket = found
            exchange.at_end(ending)

    if plan.stale is None:
        look_up = _look_up(key_for, store, patience, take)
        if isinstance(store, MemoryAnswers) and not plan.rules and has_plain_key(endpoint, plan):
            look_up = store.lookup(plan.prefix, plan.parameters, patience, needless, log_hit, tell, look_up)
            largest = services.answers.largest(plan.place)
            needs_row = _needs_row(endpoint) or endpoint.shape.path is ResultPath.SCALAR
            keep = store.keeping(plan.seconds, largest, plan.max_rows, keep, needs_row=needs_row)
    else:
        refresher = Refresher(endpoint.name, (*run, keep), services.database)
        outdated = OutdatedAnswers(store, plan.stale, refresher, give, needless)
        look_up = outdated.look_up(key_for, patience, take)
        run = outdated.guarded(run)
    if not plan.rules:
        return (look_up, *run, keep)
    skips = skips_of(endpoint, plan)

    def look_up_unless_skipped(exchange: Exchange) -> Waiting:
        if not skips(exchange):
            return look_up(exchange)
        exchange.ticket = None  # nobody asks for the values noted for the key
        if tell is not None:
            tell(exchange, "bypass")
        return None

    return (look_up_unless_skipped, *run, keep)


def _look_up(key_for: KeyOf, store: AnswerStore, patience: float, take: Callable[[Exchange, Found], None]) -> Step:
    begin = store.begin

    async def take_later(exchange: Exchange, waiting: Awaitable[Found]) -> None:
        take(exchange, await waiting)

    def look_up(exchange: Exchange) -> Awaitable[None] | None:
        key = key_for(exchange)
        if key is None:
            take(exchange, ALONE)
            return None
        found = begin(key, patience)
        if type(found) is not Entry and isinstance(found, Awaitable):
            return take_later(exchange, found)
        take(exchange, found)
        return None

    return look_up


def announce(endpoint: Endpoint, plan: CachePlan) -> Callable[[Exchange], Awaitable[None] | None]:
    """In front of a run, whose answer shall be forgotten by its tags while it is made (`cache_tags`)."""
    tags_for = tags_of(endpoint, plan)
    seconds_of = lifetime_of(plan)
    stale = 0.0 if plan.stale is None else plan.stale.longest

    def announced(exchange: Exchange) -> Awaitable[None] | None:
        ticket: Ticket | None = exchange.ticket
        if ticket is None:
            return None
        seconds = seconds_of(exchange)
        return ticket.announce(tags_for(exchange), None if seconds is None else seconds + stale)

    return announced


def _keep(endpoint: Endpoint, services: Services, plan: CachePlan) -> Step:
    """Behind the run."""
    seconds_of = lifetime_of(plan)
    shareable = _shareable(endpoint, plan)
    largest = services.answers.largest(plan.place)
    stale = 0.0 if plan.stale is None else plan.stale.longest

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
            entry = Entry(request.body or b"", request.rows, request.is_null, tags=ticket.tags)
            ticket.keep(entry, seconds_of(exchange), stale)

    return keep


def tags_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[Exchange], tuple[str, ...]]:
    """The tags of the answer to a request."""
    names = placeholder_names(endpoint.parameters)
    templates = tuple(parse_template(tag, names) for tag in plan.tags)
    if all("{" not in tag for tag in plan.tags):
        return lambda _exchange: plan.tags
    # A tag is one word, whatever a value holds.
    return lambda exchange: tuple(
        "".join(template.fill(partial(argument_text, exchange)).split()).replace(",", "") for template in templates
    )


class _TellingProtocol(HeadersProtocol):
    """Says where the answer comes from."""

    __slots__ = ()


def teller(header: str | None, count: Callable[[str], None] | None) -> Callable[[Exchange, str], None] | None:
    """Says in a header of the answer where it comes from, and to who counts."""
    if header is None:
        return None if count is None else lambda _exchange, word: count(word)

    def tell(exchange: Exchange, word: str) -> None:
        if count is not None:
            count(word)
        protocol = exchange.protocol
        if type(protocol) is HeadProtocol:
            protocol.inner = telling(protocol.inner, word)
        else:
            exchange.protocol = telling(protocol, word)

    def telling(protocol: Any, word: str) -> HeadersProtocol:
        # What was said before turns out to be otherwise: the last answer is given instead of a new one.
        inner = protocol.inner if type(protocol) is _TellingProtocol else protocol
        return _TellingProtocol(inner, [(header, word)])

    return tell


def lifetime_of(plan: CachePlan) -> Callable[[Exchange], float | None]:
    """Seconds; None: for ever. The rule that fits, comment, profile (caching-35)."""
    if not plan.rules:
        return lambda _exchange: plan.seconds

    def lifetime(exchange: Exchange) -> float | None:
        for index, rule in plan.rules:
            if rule.fits(argument_text(exchange, index)):
                return rule.seconds
        return plan.seconds

    return lifetime


def skips_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[Exchange], bool]:
    """The first rule that fits decides (caching-34)."""

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
    """Whether a result is one that is kept (caching-15)."""
    if _needs_row(endpoint):
        return lambda request: request.rows > 0
    most = plan.max_rows
    return (lambda request: request.rows <= most) if most else (lambda _request: True)


def _needs_row(endpoint: Endpoint) -> bool:
    return endpoint.shape.path is ResultPath.ROWS and endpoint.options.single


def forgetting(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan | None,
    log_it: Callable[[Exchange, bool, bytes | None], None] | None,
) -> Step:
    """The only step of an endpoint that forgets an answer (caching-40): rules are ignored (caching-40).
    plan: None where answers of the endpoint are never kept. log_it: told whether there was one, and its key."""

    def answer(exchange: Exchange, found: bool, key: bytes | None) -> None:
        if log_it is not None:
            log_it(exchange, found, key)
        body = b'{"invalidated":true}' if found else b'{"invalidated":false}'
        exchange.protocol.response_bytes(200, [("content-type", "application/json")], body)

    def find_nothing(exchange: Exchange) -> None:
        exchange.follow(())
        answer(exchange, False, None)

    if plan is None:
        return find_nothing
    store: AnswerStore = services.answers.of(plan.place)
    key_for = key_of(endpoint, plan, services)

    async def answer_later(exchange: Exchange, key: bytes | None, waiting: Awaitable[bool]) -> None:
        answer(exchange, await waiting, key)

    def forget(exchange: Exchange) -> Awaitable[None] | None:
        services.answers.expect_heard(plan.place)
        key = key_for(exchange)
        found = False if key is None else store.forget(key)
        # Nothing follows, where a proxy would go on.
        exchange.follow(())
        if isinstance(found, Awaitable):
            return answer_later(exchange, key, found)
        answer(exchange, found, key)
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
