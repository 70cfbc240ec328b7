"""Health paths `/health`, `/health/ready` and `/health/live` (operations-3 to operations-5)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import parse_qsl

from rowcall.core.cache.options import Place
from rowcall.core.cache.redis_address import BadAddressError, RedisAddress, parse_redis
from rowcall.core.events.options import Way
from rowcall.core.operations.health import Finding, Status, as_json, as_text, status_code, worst_status
from rowcall.core.operations.options import HealthOptions
from rowcall.service.database.connector import Connector
from rowcall.service.operations.checks import Check, database_check, redis_check
from rowcall.service.operations.guard import Answer, CachedPage, Make, guarded_steps, make_answer
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.pipeline.fixed_route import FixedRoute
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.drain_state import DrainState
from rowcall.service.request_context.protocols import Headers
from rowcall.service.request_context.request_context import RequestContext, Step

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "TRACE")
"""Methods of health paths; load balancers use various ones."""

_NO_STORE: Headers = [
    ("cache-control", "no-store, no-cache"),
    ("pragma", "no-cache"),
    ("expires", "Thu, 01 Jan 1970 00:00:00 GMT"),
]
_AS_TEXT: Headers = [("content-type", "text/plain"), *_NO_STORE]
_AS_JSON: Headers = [("content-type", "application/json"), *_NO_STORE]
_STOPPING = (Finding("stopping", Status.UNHEALTHY),)


def health_routes(options: HealthOptions, services: Services) -> Iterator[FixedRoute]:
    """Yield a route for each health path (health, readiness, liveness) and each method of `METHODS`."""
    database = tuple(_database(options, services))
    redis = tuple(_redis(options, services))
    # Requests are served without Redis too, so its failure does not make the host unready unless configured.
    needed = (*database, *redis) if options.needs_redis else database
    for path, checks in ((options.path, (*database, *redis)), (options.ready, needed)):
        answer = _unless_draining(services.drain_state, _report_step(options, checks))
        steps = guarded_steps(path, options.guarded, services, answer)
        yield from (FixedRoute(method, path, options.guarded.access, steps) for method in METHODS)
    # A worker that responds is alive; the servers behind it do not matter here.
    alive = guarded_steps(options.live, options.guarded, services, _report_step(options, ()))
    yield from (FixedRoute(method, options.live, options.guarded.access, alive) for method in METHODS)


def _report_step(options: HealthOptions, checks: Sequence[Check]) -> Step:
    """Return the step that runs the checks and responds with their status. If a caching time is configured, the
    response is cached for that time.
    """
    keep, make = options.guarded.keep, _report_maker(checks)
    return make_answer(make) if keep is None else CachedPage(keep, make, _response_format)


def _database(options: HealthOptions, services: Services) -> Iterator[Check]:
    if options.check is not None:
        probe = database_check(options.check, Connector(services.options.target), options.within)
        yield Check(probe, options.within)


def _redis(options: HealthOptions, services: Services) -> Iterator[Check]:
    """Yield a check for each Redis server that a capability uses, if Redis is to be checked."""
    if options.redis_check is None:
        return
    failing = Status.UNHEALTHY if options.needs_redis else Status.DEGRADED
    places = _redis_addresses(services.options)
    cache = services.options.cache.redis
    for number, address in enumerate(places, 1):
        name = options.redis_check if len(places) == 1 else f"{options.redis_check}-{number}"
        is_cache = bool(cache) and address in _parse_addresses((cache,))
        fallen_back = services.caches.fallen_back if is_cache else _never
        yield Check(redis_check(name, address, failing, fallen_back), options.within)


def _never() -> str | None:
    return None


def _redis_addresses(worker: WorkerOptions) -> list[RedisAddress]:
    cache, limits, events = worker.cache, worker.limits, worker.events
    cached = Place.REDIS in cache.places or (Place.HYBRID in cache.places and cache.hybrid.uses_redis)
    texts = (
        cache.redis if cached else None,
        limits.redis if limits.enabled else None,
        events.redis if events.way is Way.REDIS else None,
        worker.passkeys.redis if worker.passkeys is not None else None,
    )
    return _parse_addresses(texts)


def _parse_addresses(texts: Iterable[str | None]) -> list[RedisAddress]:
    """Return each valid address once; None and invalid ones are left out."""
    addresses: dict[RedisAddress, None] = {}
    for text in filter(None, texts):
        try:
            addresses[parse_redis(text)] = None
        except BadAddressError:
            continue  # the capability reports it, and works without Redis
    return list(addresses)


def _report_maker(checks: Sequence[Check]) -> Make:
    async def make(context: RequestContext) -> Answer:
        return _answer(await asyncio.gather(*(check.look() for check in checks)), context)

    return make


def _unless_draining(drain_state: DrainState, step: Step) -> Step:
    """Return the step that responds as unhealthy while the worker drains, and otherwise runs `step`."""

    async def answer_stopping(context: RequestContext) -> Answer:
        return _answer(_STOPPING, context)

    refuse = make_answer(answer_stopping)
    return lambda context: refuse(context) if drain_state.unready else step(context)


def _answer(findings: Sequence[Finding], context: RequestContext) -> Answer:
    status = worst_status(findings)
    if _response_format(context):
        return Answer(status_code(status), _AS_JSON, as_json(findings))
    return Answer(status_code(status), _AS_TEXT, as_text(status))


def _response_format(context: RequestContext) -> str:
    """Return the format of the response: `json` if the query string contains `format=json`, else an empty text."""
    pairs = parse_qsl(context.scope.query_string)
    return "json" if any(name == "format" and value.casefold() == "json" for name, value in pairs) else ""
