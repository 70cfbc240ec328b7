"""Route table of one schema snapshot: routes, and the steps behind them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import Problem
from rowcall.core.events.stream_path import with_parameters
from rowcall.core.http.router import REPLACED, Match, Route, Router
from rowcall.core.http.routing import Routing
from rowcall.core.jobs.names import overloads_by_name, schedules_by_name
from rowcall.core.uploads.resumable import resumes
from rowcall.service.events.stream import Stream
from rowcall.service.handler.overloads import compile_route
from rowcall.service.handler.step_order import compile_job
from rowcall.service.handler.streams import EventStreamRoute
from rowcall.service.handler.upload_chunks import chunk_routes
from rowcall.service.log.request_log import logging_protocol_of
from rowcall.service.pipeline.services import Services
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.response.headers import Headers
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.uploads.upload_steps import options_headers

if TYPE_CHECKING:
    from rowcall.service.jobs.attempt import RunnableJobs
    from rowcall.service.postgrest.interface import PostgRestInterface


def runnable(endpoints: Iterable[Endpoint], services: Services) -> RunnableJobs:
    """Return the endpoints whose calls are jobs. Their steps are compiled when the first job runs: without the cache,
    as each attempt has to run its routine, and on the primary."""
    from rowcall.service.jobs.attempt import RunnableJobs

    overloads = overloads_by_name(endpoints)
    uncached = replace(services.options, cache=replace(services.options.cache, enabled=False))
    services = replace(services, job_runs=True, limited=False, replicas=None, options=uncached)
    steps: dict[int, tuple[Step, ...]] = {}

    def steps_of(endpoint: Endpoint) -> tuple[Step, ...]:
        compiled = steps.get(id(endpoint))
        if compiled is None:
            compiled = steps[id(endpoint)] = compile_job(endpoint, services)
        return compiled

    schedules, options = schedules_by_name(overloads), services.options
    return RunnableJobs(overloads, schedules, steps_of, options.timestamps_utc, options.strict_types)


class CompiledRoutes(dict[int, tuple[Step, ...]]):
    """The steps of each route, by `id(route)`. They are compiled when they are first looked up, because most endpoints
    of a large schema are never called."""

    def __init__(self, routes: Iterable[Route], services: Services) -> None:
        super().__init__()
        self._routes = {id(route): route for route in routes}
        self._services = services

    def __missing__(self, key: int) -> tuple[Step, ...]:
        steps = self[key] = compile_route(self._routes[key], self._services)
        return steps


class RouteTable:
    """Everything that is replaced when a schema snapshot is activated: routes and their handlers."""

    def __init__(
        self,
        snapshot: SchemaSnapshot,
        services: Services,
        routing: Routing,
        fixed: Mapping[Route, tuple[Step, ...]],
        streams: Iterable[EventStreamRoute],
    ) -> None:
        """routing: of the schema snapshot. fixed: routes without a routine; they take precedence over endpoints on the
        same method and path. streams: event streams by path, which take precedence over everything, with any method
        (events-7).
        """
        self.snapshot = snapshot
        self.routing: Routing | None = routing
        self.internal_routing: Routing | None = None
        """Routing with internal endpoints, if there are internal subrequests."""
        self.jobs: RunnableJobs | None = None
        """The endpoints whose jobs run here."""
        self.postgrest: PostgRestInterface | None = None
        """PostgREST's interface, for paths without a route."""
        routes = routing.router.routes
        has_headers = any(
            not item.cors or (item.upload is not None and item.upload.resumable) for item in snapshot.options
        )
        # The routes whose response to OPTIONS differs from the default one.
        advertised = routes if has_headers else ()
        pieces = dict(chunk_routes(advertised, services))
        self.router = routing.router.with_changes((), (*pieces, *fixed))
        self.closed = frozenset(id(route) for route in (*advertised, *pieces) if not route.primary.options.cors)
        """Routes that send no CORS headers to pages of other origins."""
        self.steps: dict[int, tuple[Step, ...]] = CompiledRoutes(routes, services)
        self.steps.update((id(route), steps) for route, steps in (*pieces.items(), *fixed.items()))
        whole = (route for route in advertised if all(map(resumes, route.candidates)))
        self.options_headers = {id(route): options_headers(services) for route in (*whole, *pieces)}
        """Headers of the response to OPTIONS, by id of the route."""
        self.find = self.router.find
        offered = {item.path: item for item in streams}
        self.streams = {path: Match(Route("*", path, (), (), False, item.access), {}) for path, item in offered.items()}
        self._terms = {path: item.terms for path, item in offered.items()}
        patterns = with_parameters(offered)
        if offered:
            # Not a method of this object: with a reference to itself, the table of a former snapshot would not be freed
            # with its last user.
            if patterns is None:
                self.find = partial(_stream_first, self.streams, self.router)
            else:
                self.find = partial(_any_stream_first, self.streams, self.router, patterns)
            self.steps.update((id(match.route), offered[path].steps) for path, match in self.streams.items())

    @property
    def routes(self) -> tuple[Route, ...]:
        """All routes: of endpoints, upload chunks, the service itself, and event streams."""
        return (*self.router.routes, *(match.route for match in self.streams.values()))

    def still_offers(self, stream: Stream) -> bool:
        """Whether a stream is offered with the same access rules and filters. If not, its subscriber reconnects and is
        authorized again.
        """
        return stream.path in self._terms and self._terms[stream.path] == stream.terms

    def find_fallback(self, context: RequestContext) -> Match | None:
        """Find a route for a request whose method has no route at its path.

        HEAD of a path with GET: return the route of GET, and let the protocol of the context send no body. OPTIONS of
        an existing path, or of `*`: respond, and return None.

        Raises `Problem`: 405 for other methods, 404 for paths that do not exist, 400 for a path with a NUL or with
        bytes that are not UTF-8.
        """
        scope = context.scope
        router = self.router
        path = scope.path
        if "\0" in path or "\ufffd" in path:
            raise Problem(400, "the path is not valid UTF-8 text")
        everything = path == "*" and scope.method == "OPTIONS"  # asks about the server (RFC 9110, 9.3.7)
        allowed = _every_method(router) if everything else allowed_methods(router, path)
        if not allowed:
            raise Problem(404, f"there is no endpoint at {path[:200]}")
        if (result := logging_protocol_of(context.protocol)) is not None:
            result.path = self.path_for_log(scope)
        if scope.method == "OPTIONS":
            context.protocol.response_empty(204, [("allow", ", ".join(allowed)), *self._options_headers_of(path)])
            return None
        match = router.find("GET", path) if scope.method == "HEAD" else None
        if match is None:
            raise Problem(405, f"{path[:200]} answers {', '.join(allowed)}", headers=(("allow", ", ".join(allowed)),))
        context.protocol = HeadProtocol(context.protocol)
        return match

    def path_for_log(self, scope: Any) -> str:
        """Return the path of a request for the log. If an endpoint at this path is redacted, whatever its method,
        return the template of the path, which has no values."""
        path: str = scope.path
        # Text that is not valid leads to no route, and the rest of it is not shown either.
        readable = path.replace(REPLACED, "_").replace("\0", "_")
        for method in (scope.method, *self.router.allowed_methods(readable)):
            match = self.router.find(method, readable)
            if match is not None and any(item.redacted for item in match.route.candidates):
                return match.route.path
        return path

    def _options_headers_of(self, path: str) -> Headers:
        """Return the headers of the response to OPTIONS of a path, besides `Allow`; most paths have none."""
        result = (self.router.find(method, path) for method in ("POST", "PATCH"))
        return next(
            (
                self.options_headers[id(item.route)]
                for item in result
                if item and id(item.route) in self.options_headers
            ),
            [],
        )


def allowed_methods(router: Router, path: str) -> tuple[str, ...]:
    """Return the methods for `Allow`, sorted: those of the routes at the path, HEAD if there is GET, and OPTIONS; empty
    if the path has no route."""
    methods = set(router.allowed_methods(path))
    return _with_implied(methods) if methods else ()


def _stream_first(streams: Mapping[str, Match], router: Router, method: str, path: str) -> Match | None:
    """Return the event stream at this path, else the route of this method; None: there is neither. streams: by path."""
    return streams.get(path) or router.find(method, path)


def _any_stream_first(
    streams: Mapping[str, Match],
    router: Router,
    patterns: tuple[re.Pattern[str], Sequence[str]],
    method: str,
    path: str,
) -> Match | None:
    """Do what `_stream_first` does, if paths of streams have parameters. patterns: a regular expression with one group
    for each of these paths, and the path that belongs to each group, as it is a key of `streams`."""
    if path not in streams:
        pattern, paths = patterns
        if (result := pattern.fullmatch(path)) is not None:
            return streams[paths[(result.lastindex or 1) - 1]]
    return _stream_first(streams, router, method, path)


def _every_method(router: Router) -> tuple[str, ...]:
    """Return the methods for `Allow` of the whole server, as `allowed_methods` does for a path."""
    return _with_implied({route.method for route in router.routes})


def _with_implied(methods: set[str]) -> tuple[str, ...]:
    """Return the methods with those that the service itself answers: HEAD if there is GET, and OPTIONS; sorted."""
    implied = {"HEAD", "OPTIONS"} if "GET" in methods else {"OPTIONS"}
    return tuple(sorted(methods | implied))


def empty_table() -> RouteTable:
    """Return the table that is used before the first schema snapshot."""
    table = RouteTable.__new__(RouteTable)
    table.snapshot = SchemaSnapshot(0, (), {})
    table.routing = table.internal_routing = None
    table.jobs = table.postgrest = None
    table.router = Router()
    table.find = table.router.find
    table.streams = {}
    table._terms = {}
    table.closed = frozenset()
    table.options_headers = {}
    table.steps = {}
    return table
