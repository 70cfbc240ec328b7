"""The step of a cached endpoint: it looks up the response, and otherwise enters the steps that compute and store it.

Everything that decides whether a caller may have the response precedes them (execution-1), so a cached response never
replaces a 401 or 403. Status and headers, which are made for each request, follow.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.plan import CachePlan, cache_plan
from rowcall.core.endpoint.endpoint import Endpoint, ResultPath
from rowcall.core.endpoint.template import parse_template, placeholder_names
from rowcall.ext.driver.execution import Execution, finished_execution
from rowcall.service.cache.background_refresh import Refresher
from rowcall.service.cache.keys import KeyOf, has_plain_key, key_of, reads_body, text_reader
from rowcall.service.cache.stale_responses import StaleResponses
from rowcall.service.pipeline.services import Services
from rowcall.service.request.body import read_body
from rowcall.service.request_context.protocols import HeadersProtocol
from rowcall.service.request_context.request_context import RequestContext, Step, Waiting
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.single_flight import (
    NOT_SHARED,
    CacheBackend,
    CacheLease,
    LookupResult,
    release_unused_lease,
)

log = logging.getLogger("rowcall.cache")


def plan_of(endpoint: Endpoint, services: Services) -> CachePlan | None:
    """Return the plan of the cache for the endpoint, or None if its responses are not cached."""
    options = services.options
    flags = (options.resolve_nested, options.camel_case, options.safe_numbers, options.timestamps_utc)
    rendering = "".join("1" if flag else "0" for flag in flags)
    return cache_plan(
        endpoint,
        options.cache,
        options.auth.login,
        timestamps_utc=options.timestamps_utc,
        commands=options.before,
        rendering=rendering,
    )


def with_response_cache(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan,
    run: tuple[Step, ...],
    log_hit: Step | None,
    count: Callable[[str], None] | None = None,
) -> Step:
    """Return the lookup, which enters `run` and the cache writer unless it finds a response.

    log_hit: logs a response without a run; None: it is not logged. count: called with `hit`, `miss`, `stale` or
    `bypass`; None: nothing is counted.
    """
    store = services.caches.of(plan.place)
    time_limit = services.options.database.timeout if endpoint.options.timeout is None else endpoint.options.timeout
    key_for = key_of(endpoint, plan, services)
    report = status_reporter(services.options.cache.status_header, count)
    keep = _keep(endpoint, services, plan)
    fast = None
    if isinstance(store, MemoryCache) and plan.stale is None and not plan.rules and has_plain_key(endpoint, plan):
        fast = store
        largest = services.caches.largest(plan.place)
        needs_row = _needs_row(endpoint) or endpoint.shape.path is ResultPath.SCALAR
        keep = store.cache_writer(plan.seconds, largest, plan.max_rows, keep, needs_row=needs_row)
    if plan.tags or plan.further_tags:
        run = (announce(endpoint, plan), *run)

    def give(context: RequestContext, entry: Entry, word: str) -> None:
        context.execution = finished_execution(entry.body, entry.rows, entry.is_null)
        if log_hit is not None:
            log_hit(context)
        if report is not None:
            report(context, word)

    compute = (*run, keep)
    stale = None
    if plan.stale is not None:
        stale = StaleResponses(
            store, plan.stale, Refresher(endpoint.name, compute, services.database), give, endpoint.name
        )
        compute = (*stale.with_fallback(run), keep)

    def take(context: RequestContext, cached: LookupResult) -> None:
        if type(cached) is Entry:
            give(context, cached, "hit")
            return
        if report is not None:
            report(context, "bypass" if cached is NOT_SHARED else "miss")
        if cached is not NOT_SHARED:
            context.lease = cached
            context.at_end(release_unused_lease)
        context.enter(compute)

    if stale is not None:
        look_up = stale.look_up(key_for, time_limit, take)
    else:
        look_up = _look_up(key_for, store, time_limit, take)
    if fast is not None:
        look_up = fast.lookup(plan.prefix, plan.parameters, time_limit, compute, log_hit, report, look_up)
    if not plan.rules:
        return look_up
    skips = skips_of(endpoint, plan)

    def look_up_unless_skipped(context: RequestContext) -> Waiting:
        if not skips(context):
            return look_up(context)
        if report is not None:
            report(context, "bypass")
        context.enter(run)
        return None

    return look_up_unless_skipped


def _look_up(
    key_for: KeyOf, store: CacheBackend, time_limit: float, take: Callable[[RequestContext, LookupResult], None]
) -> Step:
    """Return the step that looks a response up and passes the result to `take`. If the request has no key, the result
    is `NOT_SHARED`. time_limit: seconds that a request may wait for the computation of another one; 0: no limit."""
    begin = store.begin

    async def take_later(context: RequestContext, waiting: Awaitable[LookupResult]) -> None:
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
    """Return the step that announces the tags of the coming response to the cache before the run, so that they can be
    invalidated during it (`cache_tags`). Without a lease, the step does nothing.
    """
    tags_for = tags_of(endpoint, plan)
    seconds_of = lifetime_of(endpoint, plan)
    stale = 0.0 if plan.stale is None else plan.stale.longest

    def announce_tags(context: RequestContext) -> Awaitable[None] | None:
        lease: CacheLease | None = context.lease
        if lease is None:
            return None
        seconds = seconds_of(context)
        return lease.announce(tags_for(context), None if seconds is None else seconds + stale)

    return announce_tags


def _keep(endpoint: Endpoint, services: Services, plan: CachePlan) -> Step:
    """Return the step that stores the result and completes the lease of the request (cache writer). Without a lease, it
    does nothing.

    If the result cannot be stored, each waiting request computes its own. If the routine has returned no row for a
    single value, an error follows, which waiting requests get too; so the step leaves the lease unchanged.
    """
    seconds_of = lifetime_of(endpoint, plan)
    shareable = _shareable(endpoint, plan)
    largest = services.caches.largest(plan.place)
    stale = 0.0 if plan.stale is None else plan.stale.longest

    def keep(context: RequestContext) -> None:
        lease: CacheLease | None = context.lease
        if lease is None:
            return
        execution = context.execution
        if execution is None or (not execution.streaming and _is_no_answer(endpoint, execution)):
            return  # an error follows, and waiting requests get it too
        context.lease = None
        if execution.streaming or len(execution.body or b"") >= largest or not shareable(execution):
            lease.release_unshared()
        else:
            entry = Entry(execution.body or b"", execution.rows, execution.is_null, tags=lease.tags)
            lease.keep(entry, seconds_of(context), stale)

    return keep


def tags_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[RequestContext], tuple[str, ...]]:
    """Return the function for the tags of the response to a request: those of the comment, with values of the request
    in their placeholders, and the further ones.
    """
    names = placeholder_names(endpoint.parameters)
    templates = tuple(parse_template(tag, names) for tag in plan.tags)
    further = plan.further_tags
    if all("{" not in tag for tag in plan.tags):
        constant = (*plan.tags, *further)
        return lambda _context: constant
    text_of = text_reader(endpoint)
    # A tag is one word, whatever characters a value has.
    return lambda context: (
        *("".join(template.fill(partial(text_of, context)).split()).replace(",", "") for template in templates),
        *further,
    )


class _CacheStatusProtocol(HeadersProtocol):
    """Adds the cache status header."""

    __slots__ = ()


def status_reporter(
    header: str | None, count: Callable[[str], None] | None
) -> Callable[[RequestContext, str], None] | None:
    """Return the function that reports the outcome of a lookup (`hit`, `miss`, `stale` or `bypass`) in a response
    header and to `count`; None if there is neither. header: name of the header; None: there is none. If an outcome is
    reported again, the header has the last one.
    """
    if header is None:
        return None if count is None else lambda _context, word: count(word)

    def report(context: RequestContext, word: str) -> None:
        if count is not None:
            count(word)
        # Replace an outcome that was reported before and has changed: a stale response replaces one that failed.
        protocol = context.protocol
        inner = protocol.inner if type(protocol) is _CacheStatusProtocol else protocol
        context.protocol = _CacheStatusProtocol(inner, [(header, word)])

    return report


def lifetime_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[RequestContext], float | None]:
    """Return the function for the lifetime in seconds (None: unlimited): of the matching rule, the comment or the
    profile (caching-35).
    """
    if not plan.rules:
        return lambda _context: plan.seconds
    text_of = text_reader(endpoint)

    def lifetime(context: RequestContext) -> float | None:
        for index, rule in plan.rules:
            if rule.fits(text_of(context, index)):
                return rule.seconds
        return plan.seconds

    return lifetime


def skips_of(endpoint: Endpoint, plan: CachePlan) -> Callable[[RequestContext], bool]:
    """Return the function that decides whether a request skips the cache. The first rule that matches decides
    (caching-34); without one, the cache is used.
    """
    text_of = text_reader(endpoint)

    def skips(context: RequestContext) -> bool:
        for index, rule in plan.rules:
            if rule.fits(text_of(context, index)):
                if rule.seconds is None:
                    log.debug("%s: the cache is skipped for this value of %s", endpoint.name, rule.parameter)
                return rule.seconds is None
        return False

    return skips


def _is_no_answer(endpoint: Endpoint, execution: Execution) -> bool:
    """Return whether a routine that returns one value has returned no row."""
    return endpoint.shape.path is ResultPath.SCALAR and execution.rows == 0


def _shareable(endpoint: Endpoint, plan: CachePlan) -> Callable[[Execution], bool]:
    """Return the function that decides by the number of rows whether a result may be stored (caching-15)."""
    if _needs_row(endpoint):
        return lambda execution: execution.rows > 0
    most = plan.max_rows
    return (lambda execution: execution.rows <= most) if most else (lambda _request: True)


def _needs_row(endpoint: Endpoint) -> bool:
    """Return whether a result must have a row to be stored: an endpoint with `single` responds 404 without one."""
    return endpoint.shape.path is ResultPath.ROWS and endpoint.options.single


def invalidation_step(
    endpoint: Endpoint,
    services: Services,
    plan: CachePlan | None,
    log_it: Callable[[RequestContext, bool, bytes | None], None] | None,
) -> Step:
    """Return the only step of an endpoint that invalidates one cached response, and responds whether there was one. The
    rules of the cache profile are ignored (caching-40). The step raises `Problem`: 503 if Redis does not confirm the
    invalidation, or if another process has replaced this one and has a cache of its own; and the errors of `read_body`
    if the body is part of the key.

    plan: None: responses of the endpoint are never cached. log_it: called with the request context, whether there was
    an entry, and its key (None: it has none); None: nothing is logged.
    """

    def answer(context: RequestContext, existed: bool, key: bytes | None) -> None:
        if log_it is not None:
            log_it(context, existed, key)
        body = b'{"invalidated":true}' if existed else b'{"invalidated":false}'
        context.protocol.response_bytes(200, [("content-type", "application/json")], body)

    def find_nothing(context: RequestContext) -> None:
        context.follow(())
        answer(context, False, None)

    if plan is None:
        return find_nothing
    store: CacheBackend = services.caches.of(plan.place)
    key_for = key_of(endpoint, plan, services)

    async def answer_later(context: RequestContext, key: bytes | None, waiting: Awaitable[bool]) -> None:
        answer(context, await waiting, key)

    def invalidate(context: RequestContext) -> Awaitable[None] | None:
        services.caches.require_shared_or_serving(plan.place)
        key = key_for(context)
        existed = False if key is None else store.invalidate(key)
        # No step follows; a proxy would continue.
        context.follow(())
        if isinstance(existed, Awaitable):
            return answer_later(context, key, existed)
        answer(context, existed, key)
        return None

    if not reads_body(endpoint, plan):
        return invalidate
    limit = services.options.http.limits.body_size

    async def invalidate_for_body(context: RequestContext) -> None:
        if context.body is None:
            context.body = await read_body(context.scope, context.protocol, limit)
        waiting = invalidate(context)
        if waiting is not None:
            await waiting

    return invalidate_for_body
