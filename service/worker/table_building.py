"""Builds the route table of each schema snapshot: databases, services, routing, and the routes without a routine.

Modules of capabilities that most services do not use are imported on use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rowcall.core.cache.options import Place
from rowcall.core.http.router import Route
from rowcall.core.http.routing import Routing
from rowcall.core.postgrest.options import PostgRestOptions
from rowcall.service.cache.response_cache import status_reporter
from rowcall.service.database.call import HearAs
from rowcall.service.database.databases import Databases
from rowcall.service.events.broadcaster import Broadcaster
from rowcall.service.events.publishing import Publish, hear_notices_of_roles
from rowcall.service.handler.streams import event_stream_routes
from rowcall.service.limits.rate_limiting import limit_named
from rowcall.service.metrics.meters import count_path, with_request_count
from rowcall.service.operations.audit_trail import record_path
from rowcall.service.operations.slow_requests import record_slow_path
from rowcall.service.pipeline.services import Services
from rowcall.service.request.subrequests import Start, Subrequests, call_further
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot, moved_endpoints
from rowcall.service.tracing.request_tracing import trace_path
from rowcall.service.worker.codecs import codecs_for, safe_codecs_for
from rowcall.service.worker.fixed_routes import CompiledRoute, compile_routes, snapshot_routes
from rowcall.service.worker.route_table import CompiledRoutes, RouteTable, runnable

if TYPE_CHECKING:
    from rowcall.service.postgrest.anonymous_cache import AnonymousCache
    from rowcall.service.postgrest.interface import Ahead, PostgRestInterface

POSTGREST = "PostgREST's interface"
"""Name of the connection pools of PostgREST's interface."""
UNPREPARED = f"{POSTGREST} without prepared statements"
"""Name of its pools if `PostgRest:PreparedStatements` is off. Both exist after a reload that has changed it."""

_POSTGREST_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class TableBuilder:
    """Builds route tables.

    services: for the steps of endpoints; `build` replaces those that depend on the snapshot, such as databases and
    codecs. for_all: for the steps of other paths, such as those of PostgREST's interface. fixed: the routes that are
    the same for every snapshot. events: the event streams of the worker. publish: receives the events of PostgREST's
    interface. start, fail: begin to run the steps of a request, and respond to a failed one. runs_jobs: this worker
    runs jobs.
    """

    def __init__(
        self,
        services: Services,
        for_all: Services,
        databases: Databases,
        fixed: Mapping[Route, tuple[Step, ...]],
        events: Broadcaster,
        publish: Publish,
        start: Start,
        fail: Callable[[RequestContext, Exception], None],
        *,
        runs_jobs: bool,
    ) -> None:
        self._options = services.options
        self._services = services
        self._for_all = for_all
        self._databases = databases
        self._fixed = fixed
        self._events = events
        self._publish = publish
        self._start = start
        self._fail = fail
        self._runs_jobs = runs_jobs

    def build(self, snapshot: SchemaSnapshot, former: RouteTable) -> RouteTable:
        """Return the route table of a schema snapshot. former: the one in use, whose routing is reused."""
        called = self._services.client is not None or self._options.mcp is not None
        subrequests = self._subrequests() if called else None
        services = self._services_for(snapshot, subrequests)
        streaming = snapshot.endpoints if any(item.events is not None for item in snapshot.options) else ()
        streams = event_stream_routes(streaming, services, self._events)
        removed, added = moved_endpoints(former.snapshot, snapshot)
        routing = None if former.routing is None else former.routing.with_changes(removed, added)
        routing = routing or Routing(snapshot.endpoints)
        own = {
            **self._fixed,
            **dict(snapshot_routes(snapshot, services, subrequests)),
            **dict(self._batch_routes(services, routing)),
            **dict(self._job_routes(services, snapshot)),
        }
        fixed = {
            route: with_request_count(route.method, route.path, steps, self._options, services.host)
            for route, steps in own.items()
        }
        table = RouteTable(snapshot, services, routing, fixed, streams)
        table.postgrest = self._postgrest_interface(snapshot)
        if self._runs_jobs:
            table.jobs = runnable(snapshot.endpoints, services)
        if subrequests is not None:
            internal = None if former.internal_routing is None else former.internal_routing.with_changes(removed, added)
            table.internal_routing = internal or Routing(snapshot.endpoints, internal=True)
            router = table.internal_routing.router
            inner = replace(services, send_subrequest=call_further, limited=False)
            interface = None if table.postgrest is None else partial(table.postgrest.steps, limited=False)
            subrequests.serve(router, CompiledRoutes(router.routes, inner), interface)
        return table

    def _subrequests(self) -> Subrequests:
        """Return a new sender of subrequests. Its `serve` has to follow, with the routes that it can call."""
        return Subrequests(self._start, self._fail, self._services.auth.sessions.is_secure)

    def _services_for(self, snapshot: SchemaSnapshot, subrequests: Subrequests | None) -> Services:
        """Return the services with the databases and codecs of a snapshot. subrequests: None: endpoints cannot call
        each other.
        """
        names = snapshot.connections(access.name for access in self._options.others.values())
        others = {
            key: (
                database,
                codecs_for(snapshot.other_types.get(key, {}), self._options),
                safe_codecs_for(snapshot.other_types.get(key, {}), self._options),
            )
            for key, database in self._databases.open(names - self._options.main_names).items()
        }
        return replace(
            self._services,
            codecs=codecs_for(snapshot.types, self._options),
            safe_codecs=safe_codecs_for(snapshot.types, self._options),
            others=others,
            send_subrequest=None if subrequests is None else subrequests.call,
        )

    def _batch_routes(self, services: Services, routing: Routing) -> Iterator[CompiledRoute]:
        """Iterate over the route of batches, if they are configured. Endpoints are compiled for batches in one
        transaction: there, nothing is cached, and nothing is read from replicas.

        services, routing: of the schema snapshot.
        """
        options = self._options.batch
        if options is None:
            return
        from rowcall.service.batch.routes import batch_routes

        router = routing.router
        uncached = replace(self._options, cache=replace(self._options.cache, enabled=False))
        jointly = replace(services, joint=True, replicas=None, options=uncached)
        joint, independent = self._subrequests(), self._subrequests()
        joint.serve(router, CompiledRoutes(router.routes, jointly))
        independent.serve(router, CompiledRoutes(router.routes, services))
        endpoints = (endpoint for route in router.routes for endpoint in route.candidates)
        yield from compile_routes(batch_routes(options, services, joint, independent, endpoints))

    def _job_routes(self, services: Services, snapshot: SchemaSnapshot) -> Iterator[CompiledRoute]:
        """Return the routes of jobs; none if they are off. services: of the snapshot."""
        options = self._options.jobs
        if options is None:
            return iter(())
        from rowcall.service.jobs.routes import job_routes

        tenants = {item.tenant for item in snapshot.options if item.job is not None and item.tenant is not None}
        return compile_routes(job_routes(options, services, tenants))

    def _postgrest_interface(self, snapshot: SchemaSnapshot) -> PostgRestInterface | None:
        """Return PostgREST's interface; None if it is not served."""
        if snapshot.postgrest is None:
            return None
        from rowcall.service.postgrest.interface import PostgRestInterface

        # Its functions may leave settings in their sessions, which endpoints must not see.
        options = snapshot.postgrest.options
        name, target, how = POSTGREST, self._options.target, self._options.database
        if not options.prepared_statements:
            name, target = UNPREPARED, replace(target, prepares=False)
        hear = self._listeners(options)
        if hear is not None:
            # A notice of a pipelined statement could be attributed to another request (driver-17).
            how = replace(how, pools=replace(how.pools, sharing=False))
        database = self._databases.with_own_pools(name, target, how)
        ahead = _observing_steps(options.path, self._for_all)
        limit = limit_named(self._for_all, options.rate_limiter)
        body_limit = self._options.http.limits.body_size
        cache = _anonymous_cache(snapshot.number, options, self._for_all)
        # Records of the audit trail, and tenants in claims, are those of users.
        needs_users = self._options.audit_trail is not None or hear is not None
        return PostgRestInterface(
            snapshot.postgrest,
            database.plain_runs(),
            body_limit,
            ahead,
            limit,
            cache,
            identity=self._options.auth.identity if needs_users else None,
            hear=hear,
        )

    def _listeners(self, options: PostgRestOptions) -> HearAs | None:
        """Return the function that makes the notice listeners of PostgREST's interface; None: it publishes nothing."""
        level = options.publish_notices
        if level is None:
            return None
        return hear_notices_of_roles(level, self._options.tenant, self._options.events, self._publish)


def _observing_steps(path: str, services: Services) -> Ahead:
    """Return the steps that run in front of requests of PostgREST's interface, by method and whether a function is
    called; empty if no option needs any. path: below which the interface is. Traces and metrics name a template such as
    `/{relation}` instead of the path, so that the number of their names stays small."""
    base = path.rstrip("/")
    templates = {False: f"{base}/{{relation}}", True: f"{base}/rpc/{{function}}"}
    steps = {
        (method, calls): (
            trace_path(method, template, services),
            record_slow_path(method, services),
            count_path(method, template, services),
            record_path(method, services),
        )
        for calls, template in templates.items()
        for method in _POSTGREST_METHODS
    }
    present = {key: tuple(step for step in items if step is not None) for key, items in steps.items()}
    return present if any(present.values()) else {}


def _anonymous_cache(snapshot: int, options: PostgRestOptions, services: Services) -> AnonymousCache | None:
    """Return the cache of reads by anonymous callers; None if they are not cached. snapshot: number of the schema
    snapshot."""
    if not options.anonymous_cache or options.anonymous_role is None:
        return None
    from rowcall.service.postgrest.anonymous_cache import AnonymousCache

    backends = services.caches
    report = status_reporter(services.options.cache.status_header, None)
    return AnonymousCache(backends.of(Place.MEMORY), options, snapshot, backends.largest(Place.MEMORY), report)
