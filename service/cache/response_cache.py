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
from rowcall.ext.driver.execution import Execution, finished_execution
from rowcall.service.cache.background_refresh import Refresher
from rowcall.service.cache.keys import KeyOf, has_plain_key, key_of, reads_body
from rowcall.service.cache.stale_responses import StaleResponses
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.response.headers import argument_text
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.single_flight import NOT_SHARED, CacheBackend, CacheLease, Found, ending

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
    time_limit = services.options.database.timeout if endpoint.options.timeout is None else endpoint.options.timeout
    key_for = key_of(endpoint, plan, services)
    tell = status_reporter(services.options.cache.status_header, count)
    keep = _keep(endpoint, services, plan)
    if plan.tags:
        run = (announce(endpoint, plan), *run)
    # Not for the steps that run, nor for the one behind them.
    steps_to_skip = len(run) + 1

    def give(context: RequestContext, entry: Entry, word: str, steps_to_skip: int) -> None:
        context.execution = finished_execution(entry.body, entry.rows, entry.is_null)
        if log_hit is not None:
            log_hit(context)
        if tell is not None:
            tell(context, word)
        context.skip(steps_to_skip)

    def take(context: RequestContext, found: Found) -> None:
        if type(found) is Entry:
            give(context, found, "hit", steps_to_skip)
            return
        if tell is not None:
            tell(context, "bypass" if found is NOT_SHARED else "miss")
        if found is not NOT_SHARED:
            context.lease = found
            context.at_end(ending)

    if plan.stale is None:
        look_up = _look_up(key_for, store, time_limit, take)
        if isinstance(store, MemoryCache) and not plan.rules and has_plain_key(endpoint, plan):
            look_up = store.lookup(plan.prefix, plan.parameters, time_limit, steps_to_skip, log_hit, tell, look_up)
            largest = services.answers.largest(plan.place)
            needs_row = _needs_row(endpoint) or endpoint.shape.path is ResultPath.SCALAR
            keep = store.cache_writer(plan.seconds, largest, plan.max_rows, keep, needs_row=needs_row)
    else:
        refresher = Refresher(endpoint.name, (*run, keep), services.database)
        stale = StaleResponses(store, plan.stale, refresher, give, steps_to_skip)
        look_up = stale.look_up(key_for, time_limit, take)
        run = stale.guarded(run)
    if not plan.rules:
        return (look_up, *run, keep)
    skips = skips_of(endpoint, plan)

    def look_up_unless_skipped(context: RequestContext) -> Waiting:
        if not skips(context):
            return look_up(context)
        context.lease = None  # nobody asks for the values noted for the key
        if tell is not None:
            tell(context, "bypass")
        return None

    return (look_up_unless_skipped, *run, keep)


def _look_up(
    key_for: KeyOf, store: CacheBackend, time_limit: float, take: Callable[[RequestContext, Found], None]
) -> Step:
    begin = store.begin

    async def take_later(context: RequestContext, waiting: Awaitable[Found]) -> None:
        take(context, await waiting)

    def look_up(context: RequestContext) -> Awaitable[None] | None:
        key = key_for(context)
        if key is None:
            take(context, NOT_SHARED)
            return None
        result = begin(key, time_limit)
        if type(result) is not Entry and isinstance(result, Awaitable):
            return take_later(context, result)
        take(context, result)
        return None

    return look_up


def announce(endpoint: Endpoint, plan: CachePlan) -> Callable[[RequestContext], Awaitable[None] | None]:
    """In front of a run, whose answer shall be forgotten by its tags while it is made (`cache_tags`)."""
    tags_for = tags_of(endpoint, plan)
    seconds_of = lifetime_of(plan)
    stale = 0.0 if plan.stale is None else plan.stale.longest

    def announced(context: RequestContext) -> Awaitable[None] | None:
        lease: CacheLease | None = context.lease
        if lease is None:
            return None
        seconds = seconds_of(context)
        return lease.announce(tags_for(context), None if seconds is None else seconds + stale)

    return announced


def _keep(endpoint: Endpoint, services: Services, plan: CachePlan) -> Step:
    """Behind the run."""
    seconds_of = lifetime_of(plan)
    shareable = _shareable(endpoint, plan)
    largest = services.answers.largest(plan.place)
    stale = 0.0 if plan.stale is None else plan.stale.longest

    def keep(context: RequestContext) -> None:
        lease: CacheLease | None = context.lease
        if lease is None:
            return
        execution = context.execution
        if execution is None or (not execution.streaming and _is_no_answer(endpoint, execution)):
            return  # an error follows, and those who wait get it too
        context.lease = None
        if execution.streaming or len(execution.body or b"") >= largest or not shareable(execution):
            lease.pass_on()
        else:
            entry = Entry(execution.body or b"", execution.rows, execution.is_null, tags=lease.tags)
            lease.keep(entry, seconds_of(context), stale)

    return keep


def tags_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[RequestContext], tuple[str, ...]]:
    """The tags of the answer to a request."""
    names = placeholder_names(endpoint.parameters)
    templates = tuple(parse_template(tag, names) for tag in plan.tags)
    if all("{" not in tag for tag in plan.tags):
        return lambda _context: plan.tags
    # A tag is one word, whatever a value holds.
    return lambda context: tuple(
        "".join(template.fill(partial(argument_text, context)).split()).replace(",", "") for template in templates
    )


class _CacheStatusProtocol(HeadersProtocol):
    """Says where the answer comes from."""

    __slots__ = ()


def status_reporter(
    header: str | None, count: Callable[[str], None] | None
) -> Callable[[RequestContext, str], None] | None:
    """Says in a header of the answer where it comes from, and to who counts."""
    if header is None:
        return None if count is None else lambda _context, word: count(word)

    def tell(context: RequestContext, word: str) -> None:
        if count is not None:
            count(word)
        protocol = context.protocol
        if type(protocol) is HeadProtocol:
            protocol.inner = telling(protocol.inner, word)
        else:
            context.protocol = telling(protocol, word)

    def telling(protocol: Any, word: str) -> HeadersProtocol:
        # What was said before turns out to be otherwise: the last answer is given instead of a new one.
        inner = protocol.inner if type(protocol) is _CacheStatusProtocol else protocol
        return _CacheStatusProtocol(inner, [(header, word)])

    return tell


def lifetime_of(plan: CachePlan) -> Callable[[RequestContext], float | None]:
    """Seconds; None: for ever. The rule that fits, comment, profile (caching-35)."""
    if not plan.rules:
        return lambda _context: plan.seconds

    def lifetime(context: RequestContext) -> float | None:
        for index, rule in plan.rules:
            if rule.fits(argument_text(context, index)):
                return rule.seconds
        return plan.seconds

    return lifetime


def skips_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[RequestContext], bool]:
    """The first rule that fits decides (caching-34)."""

    def skips(context: RequestContext) -> bool:
        for index, rule in plan.rules:
            if rule.fits(argument_text(context, index)):
                if rule.seconds is None:
                    log.debug("%s: the cache is skipped for this value of %s", endpoint.name, rule.parameter)
                return rule.seconds is None
        return False

    return skips


def _is_no_answer(endpoint: Endpoint, execution: Execution) -> bool:
    return endpoint.shape.path is ResultPath.SCALAR and execution.rows == 0


def _shareable(endpoint: Endpoint, plan: CachePlan) -> Callable[[Execution], bool]:
    """Whether a result is one that is kept (caching-15)."""
    if _needs_row(endpoint):
        return lambda execution: execution.rows > 0
    most = plan.max_rows
    return (lambda execution: execution.rows <= most) if most else (lambda _request: True)


def _needs_row(endpoint: Endpoint) -> bool:
    return endpoint.shape.path is ResultPath.ROWS and endpoint.options.single


def invalidating(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan | None,
    log_it: Callable[[RequestContext, bool, bytes | None], None] | None,
) -> Step:
    """The only step of an endpoint that forgets an answer (caching-40): rules are ignored (caching-40).
    plan: None where answers of the endpoint are never kept. log_it: told whether there was one, and its key."""

    def answer(context: RequestContext, found: bool, key: bytes | None) -> None:
        if log_it is not None:
            log_it(context, found, key)
        body = b'{"invalidated":true}' if found else b'{"invalidated":false}'
        context.protocol.response_bytes(200, [("content-type", "application/json")], body)

    def find_nothing(context: RequestContext) -> None:
        context.follow(())
        answer(context, False, None)

    if plan is None:
        return find_nothing
    store: CacheBackend = services.answers.of(plan.place)
    key_for = key_of(endpoint, plan, services)

    async def answer_later(context: RequestContext, key: bytes | None, waiting: Awaitable[bool]) -> None:
        answer(context, await waiting, key)

    def forget(context: RequestContext) -> Awaitable[None] | None:
        services.answers.expect_heard(plan.place)
        key = key_for(context)
        found = False if key is None else store.forget(key)
        # Nothing follows, where a proxy would go on.
        context.follow(())
        if isinstance(found, Awaitable):
            return answer_later(context, key, found)
        answer(context, found, key)
        return None

    if not reads_body(endpoint, plan):
        return forget
    limit = services.options.http.body_limit

    async def forget_for_body(context: RequestContext) -> None:
        if context.body is None:
            context.body = await read_body(context.scope, context.protocol, limit)
        waiting = forget(context)
        if waiting is not None:
            await waiting

    return forget_for_body
