"""What other capabilities do for requests of PostgREST's interface: traces and counts before it, and its cache."""

from __future__ import annotations

from rowcall.core.cache.options import Place
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.service.cache.response_cache import status_reporter
from rowcall.service.metrics.meters import count_path
from rowcall.service.pipeline.services import Services
from rowcall.service.postgrest.anonymous_cache import AnonymousCache
from rowcall.service.postgrest.interface import Ahead
from rowcall.service.tracing.request_tracing import trace_path

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def steps_ahead(path: str, services: Services) -> Ahead:
    """Return the steps of requests below a path. Spans and meters have templates of paths, so that there are few."""
    base = path.rstrip("/")
    templates = {False: f"{base}/{{relation}}", True: f"{base}/rpc/{{function}}"}
    steps = {
        (method, calls): (trace_path(method, template, services), count_path(method, template, services))
        for calls, template in templates.items()
        for method in METHODS
    }
    present = {key: tuple(step for step in both if step is not None) for key, both in steps.items()}
    return present if any(present.values()) else {}


def anonymous_cache(snapshot: int, options: PostgRestOptions, services: Services) -> AnonymousCache | None:
    """Return the cache of reads by anonymous callers; None if they are not cached. snapshot: its number."""
    if not options.anonymous_cache or options.anonymous_role is None:
        return None
    backends = services.caches
    report = status_reporter(services.options.cache.status_header, None)
    return AnonymousCache(backends.of(Place.MEMORY), options, snapshot, backends.largest(Place.MEMORY), report)
