"""The application of one worker: finds the route of a request and runs its steps (`ext.driver.request_context`)."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from rowcall.core.http.router import MalformedPathError, Route
from rowcall.core.operations.exposition import FORMER_GAUGES
from rowcall.core.uploads.options import ObjectStore
from rowcall.service.auth.access import anonymous_refusal
from rowcall.service.auth.session_introspection import connect_sessions
from rowcall.service.background import Background
from rowcall.service.database.database import Database
from rowcall.service.database.databases import Databases
from rowcall.service.database.replicas.replicas import Replicas
from rowcall.service.events.broadcaster import Broadcaster
from rowcall.service.events.publishing import hear_notices
from rowcall.service.events.unpublished_notices import UnpublishedNotices
from rowcall.service.identity.identity import Identity
from rowcall.service.identity.introspected_sessions import IntrospectedSessions
from rowcall.service.identity.refresh_token_use import RefreshTokenUse
from rowcall.service.identity.sessions import Sessions
from rowcall.service.limits.rate_limiting import limit_named
from rowcall.service.log.notices import NoticeLog
from rowcall.service.metrics.meters import (
    event_counter,
    refusal_counter,
    sign_in_counter,
    upstream_meters,
    with_event_count,
)
from rowcall.service.operations.audit_trail import delivery_recorder, trail_of
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.pipeline.services import Services
from rowcall.service.protection.protector import Keys
from rowcall.service.request.body import BODIES, arriving
from rowcall.service.request_context.drain_state import DrainState
from rowcall.service.request_context.request_context import RequestContext
from rowcall.service.request_context.step_tasks import StepTasks
from rowcall.service.shared_state.bounded_cache import BoundedCache
from rowcall.service.shared_state.cache_backends import CacheBackends
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.sockets.unused_connections import Clients
from rowcall.service.static.serving import StaticFiles
from rowcall.service.tracing.request_tracing import recent_spans
from rowcall.service.worker.background_work import BackgroundWork
from rowcall.service.worker.codecs import codecs_for
from rowcall.service.worker.failure_responses import FailureResponses, status_of
from rowcall.service.worker.fixed_routes import service_routes
from rowcall.service.worker.route_table import RouteTable, empty_table
from rowcall.service.worker.table_building import TableBuilder

if TYPE_CHECKING:
    from rowcall.core.auth.claims import User
    from rowcall.service.events.stream import Stream
    from rowcall.service.http_client.client import Client
    from rowcall.service.tracing.span_entry import SpanEntry

log = logging.getLogger("rowcall")


class Application:
    """Serves the requests of one worker: `await application.start()`, then `prepare` and `activate_snapshot` for each
    schema snapshot; the HTTP server calls `handle`.
    """

    def __init__(self, options: WorkerOptions) -> None:
        """Must be created in the running event loop."""
        self._options = options
        BODIES.configure(options.http.limits.bodies)
        self._replicas = None if options.replicas is None else Replicas(options.replicas, options.target)
        replicas = () if self._replicas is None else self._replicas.databases
        self._databases = Databases(Database(options.target, options.database), options.others, replicas)
        self._table = empty_table()
        self._prepared: RouteTable | None = None
        self._loop = asyncio.get_running_loop()
        self._watching: asyncio.Task[None] | None = None
        self._background = Background()
        self._fail = FailureResponses(options, lambda scope: self._table.path_for_log(scope)).respond
        self._step_tasks = StepTasks(self._fail)
        self._runner = self._step_tasks.runner
        self.drain_state = DrainState()
        self.keys = Keys(options.encryption_name)
        self._identity = Identity(
            options.auth, self.keys, options.forwarding, options.outbound.client, options.antiforgery
        )
        self._static = None if options.static is None else StaticFiles(options.static, options, self._identity)
        self.single_use = RefreshTokenUse()
        self._host = HostState(Path(options.store))
        if options.lockout is not None:
            # Imported on use, because most services count no sign-ins.
            from rowcall.service.identity.sign_in_guard import guard_of

            count = sign_in_counter(options, self._host)
            self._identity.guard = guard_of(options.lockout, self._identity, self._host, count)
        self._caches = CacheBackends(options.cache, self._host)
        self.events = Broadcaster(options.events)
        publish = with_event_count(self.events.publish, options, self._host)
        self.events.count_delivered = event_counter("delivered", options, self._host)
        self.events.count_dropped = event_counter("dropped", options, self._host)
        self._refused = refusal_counter(options, self._host)
        log_notices = None if options.notices is None else NoticeLog(options.notices)
        self.unpublished_notices = UnpublishedNotices(options.events.level.value, log_notices)
        self._client = client_of(options, self._host)
        types = options.outbound.types
        self._type_answers = (
            BoundedCache(self._host, "http-types", types.max_entries, types.prune)
            if types.enabled and types.caches
            else None
        )
        services = Services(
            options,
            self._databases.main,
            codecs_for({}, options),
            self._identity,
            self._caches,
            self._host,
            drain_state=self.drain_state,
        )
        self._for_all = replace(services, limiting=partial(limit_named, services))
        connect_sessions(self._for_all)
        self._work = BackgroundWork(options, self._host, self._runner.start, delivery_recorder(self._for_all))
        self._tables = TableBuilder(
            replace(
                services,
                client=self._client,
                type_answers=self._type_answers,
                replicas=self._replicas,
                hear=partial(hear_notices, options=options.events, publish=publish),
            ),
            self._for_all,
            self._databases,
            dict(service_routes(self._for_all, self.keys, self._databases, self.single_use)),
            self.events,
            publish,
            self._runner.start,
            self._fail,
            runs_jobs=self._work.runs_jobs,
        )

    @property
    def snapshot(self) -> SchemaSnapshot:
        """The schema snapshot that is being served."""
        return self._table.snapshot

    def clients(self) -> Clients:
        """Return the clients with requests in progress: those with a request that is being processed or an event
        stream, and those all of whose requests wait for the rest of a body."""
        active = [context.scope for context in self._runner.active]
        # An event stream stays open long after its request has been processed.
        busy = frozenset(scope.client for scope in active if scope not in arriving) | self.events.clients()
        return Clients(busy, frozenset(scope.client for scope in active if scope in arriving) - busy)

    @property
    def running(self) -> int:
        """Requests that have begun and not ended."""
        return self._runner.running

    def gauges(self) -> list[tuple[str, Mapping[str, str], float]]:
        """Return the current gauges of this worker (`core.operations.exposition.GAUGES`): name, labels, value."""
        result: list[tuple[str, Mapping[str, str], float]] = [("rowcall_requests_in_progress", {}, self.running)]
        for connection, database in self._databases.named_all():
            for pool in database.load():
                labels = {"connection": connection, "lane": pool.name}
                result.append(("rowcall_database_connections", labels, pool.connections))
                result.append(("rowcall_database_requests_in_flight", labels, pool.in_flight))
                result.append(("rowcall_database_requests_waiting", labels, pool.waiting))
        streams = self.events.streams_by_path()
        result += [("rowcall_event_streams", {"path": path}, streams.get(path, 0)) for path in self._table.streams]
        if self._client is not None:
            result.append(("rowcall_http_client_connections", {}, self._client.open_connections))
        result += self._work.gauges()
        former = [(FORMER_GAUGES[name], labels, value) for name, labels, value in result if name in FORMER_GAUGES]
        return result + former

    def spans(self, trace: str | None) -> tuple[SpanEntry, ...]:
        """Return the stored spans of a trace; with None, the root spans of the latest requests. Empty if no spans are
        stored. trace: its id."""
        return recent_spans(trace, self._options.tracing, self._host)

    def set_stale_handler(self, callback: Callable[[], None]) -> None:
        """Set the function that requests another reading of the catalogue (`Database.on_stale`)."""
        self._databases.set_stale_handler(callback)

    async def start(self) -> None:
        """Connect to the main database, begin to connect to Redis, and start the background work. If one of the two
        cannot be reached, nothing is raised."""
        self._caches.open()
        if self._options.notices is not None or self._options.events.warn_unbound:
            carried = self._options.tracing is not None or self._options.correlation_header is not None
            self._databases.set_notice_handler(
                self.unpublished_notices, identify_requests=carried and self._options.notices is not None
            )
        await self._databases.main.start()
        self._work.start(self._background)
        if self._replicas is not None:
            self._replicas.start()
        sessions = self._identity.sessions
        if isinstance(sessions, IntrospectedSessions):
            self._watching = self._loop.create_task(self._watch_readers(sessions))

    def prepare(self, snapshot: SchemaSnapshot) -> None:
        """Build the route table of a schema snapshot beside the one in use. `activate_snapshot` makes it the one in
        use.
        """
        self._prepared = self._tables.build(snapshot, self._table)

    def prepared_routes(self) -> tuple[Route, ...]:
        """Return all routes of the prepared schema snapshot; empty: none is prepared, as after `activate_snapshot`."""
        return () if self._prepared is None else self._prepared.routes

    def activate_snapshot(self, number: int) -> None:
        """Serve the prepared schema snapshot from the next request on, if it has this number; requests in progress
        finish with the former one. Event streams that it does not offer end. If another snapshot is prepared, nothing
        happens.
        """
        if self._prepared is not None and self._prepared.snapshot.number == number:
            if self._table.snapshot.number:
                gc.collect()
            elif self._databases.main.unreached is not None:
                log.warning("this worker had no connection to the database yet: %s", self._databases.main.unreached)
            self._table = self._prepared
            self._prepared = None
            self._work.serve(self._table.jobs)
            if any(item.upload is not None for item in self.snapshot.options):
                from rowcall.service.uploads.orphaned_files import tidy

                self._background.start(tidy(self.snapshot.endpoints, self._options.uploads))
            if self._options.events.warn_unbound:
                self.unpublished_notices.watch(self._table.snapshot.endpoints)
            self._end_streams_of_before()
            for database in self._databases:
                database.forget_names()
            # These objects live as long as the snapshot, so the garbage collector need not scan them again.
            gc.freeze()

    def _end_streams_of_before(self) -> None:
        """End the event streams that the active schema snapshot does not have, or has with other access rules."""
        self.events.offers = self._table.still_offers
        self.events.end_streams(lambda stream: not self._table.still_offers(stream))

    @property
    def user_sessions(self) -> Sessions:
        """The user sessions, which authenticate requests."""
        return self._identity.sessions

    async def invalidate_tags(self, tags: Sequence[str]) -> int:
        """Invalidate the cached responses with one of these tags, for all workers and, with Redis, all hosts. Return
        their number. Raises `Problem` if that is not confirmed.
        """
        return await self._caches.invalidate_tags(tags)

    async def invalidate_entry(self, name: str, arguments: bytes) -> int:
        """Invalidate the cached response of an endpoint to a request with these arguments, and return 1, or 0 if there
        was none. name: method and path of the endpoint. arguments: a JSON object. Raises `Problem` as
        `service.cache.entry_invalidation.invalidate_entry` does.
        """
        # Imported here, as it is rarely used.
        from rowcall.service.cache.entry_invalidation import invalidate_entry

        endpoints = [endpoint for endpoint in self.snapshot.endpoints if endpoint.name == name]
        return await invalidate_entry(endpoints, arguments, self._for_all)

    def retire_cache(self) -> None:
        """Stop using cached responses in memory: a successor serves, and its invalidations do not arrive here."""
        self._caches.retire()

    def end_streams(self) -> None:
        """End all event streams, as they have no end of their own, and begin no more jobs: the service stops."""
        self.drain_state.stopping = True
        self._work.drain()
        self.events.offers = lambda stream: False
        self.events.end_streams(lambda stream: True)

    async def finish_jobs(self, seconds: float) -> None:
        """Begin no more jobs, and wait for running ones, at most `seconds` and at most `Jobs:ShutdownTimeout`."""
        await self._work.finish_jobs(seconds)

    async def _watch_readers(self, sessions: IntrospectedSessions) -> None:
        """Check the sessions of event stream subscribers periodically, and end the streams whose session or API key was
        revoked. Never returns."""
        while True:
            await asyncio.sleep(sessions.watched)
            for user in self.events.users():
                try:
                    held = await sessions.is_still_valid(user)
                except (psycopg.Error, OSError) as error:
                    log.error("the sessions of event stream subscribers cannot be checked: %s", str(error).strip())
                    break
                if not held:
                    self.events.end_streams(_is_of(user))

    async def close(self) -> None:
        """End background work and clients, write the remaining records of the audit trail, and close the connections to
        the databases and the shared state of the host.
        """
        if self._watching is not None:
            self._watching.cancel()
        await self._work.stop()
        self._background.cancel()
        if self._client is not None:
            self._client.close()
        if self._type_answers is not None:
            self._type_answers.close()
        self._identity.close()
        await self._caches.close()
        if self._options.audit_trail is not None:
            await trail_of(self._options.audit_trail, self._for_all).finish()
        if self._replicas is not None:
            self._replicas.close()
        await self._databases.close()
        # Requests that are cut off with their connections release their leases and permits in the shared state.
        self._host.close()

    def handle_files(self, scope: Any, protocol: Any) -> None:
        """Handle a request with the static file at its path; if there is none, as `handle` does. Used instead of
        `handle` if static files are served."""
        result = None if self._static is None else self._static.find(scope)
        if self._static is None or result is None:
            self.handle(scope, protocol)
        elif not self._static.answer_at_once(scope, protocol, result):
            self._runner.start(RequestContext(scope, protocol), (partial(self._static.answer, match=result),))

    def handle(self, scope: Any, protocol: Any) -> None:
        """Handle one request of the HTTP server (RSGI scope and protocol)."""
        context = RequestContext(scope, protocol)
        try:
            match = self._table.find(scope.method, scope.path)
            if match is None and self._table.postgrest is not None:
                steps = self._table.postgrest.steps_of(scope)
                if steps is not None:
                    self._runner.start(context, steps)
                    return
            if match is None and self._options.hides_paths:
                self._runner.start(context, (self._identity.sessions.authenticate, self._find_for_user))
                return
            match = match or self._table.find_fallback(context)
            if match is None:
                return
            context.values = match.values
            steps = self._table.steps[id(match.route)]
        except Exception as error:
            if self._refused is not None:
                self._refused(status_of(error))
            self._fail(context, error)
            return
        self._runner.start(context, steps)

    def has_cors_off(self, method: str, path: str) -> bool:
        """Whether the endpoint at this method and path has `cors off`. False for a path that is not valid text, which
        `handle` refuses."""
        table = self._table
        if not table.closed:
            return False
        try:
            match = table.router.find("GET" if method == "HEAD" else method, path)
        except MalformedPathError:
            return False
        return match is not None and id(match.route) in table.closed

    def _find_for_user(self, context: RequestContext) -> None:
        """Do what `RouteTable.find_fallback` does, for signed-in callers; raise `Problem` 401 for others, from whom
        existing paths are hidden.

        HEAD of a path with GET continues for all callers with the steps of GET, which check access themselves.
        """
        head = context.scope.method == "HEAD" and self._table.find("GET", context.scope.path) is not None
        if context.user is None and not head:
            raise anonymous_refusal(self._options.auth, context, "paths are hidden from who is not signed in")
        match = self._table.find_fallback(context)
        if match is None:
            context.answered = True
            return
        context.values = match.values
        context.follow(self._table.steps[id(match.route)])


def _is_of(user: User) -> Callable[[Stream], bool]:
    """Return the function that says whether a stream is one of the user."""
    return lambda stream: stream.viewer.user is user


def client_of(options: WorkerOptions, host: HostState) -> Client | None:
    """Return the HTTP client for HTTP types, proxying and uploads to object stores, or None if none of these is
    enabled. Webhooks and sign-in have clients of their own. The modules of the client are imported here, as most
    services need none."""
    outbound = options.outbound
    stores = any(isinstance(item, ObjectStore) for item in options.uploads.handlers.values())
    if not outbound.types.enabled and not outbound.proxy.enabled and not stores:
        return None
    from rowcall.service.http_client.circuit_breakers import SIZE, CircuitBreakers
    from rowcall.service.http_client.client import Client

    client = outbound.client
    meters = upstream_meters(options, host)
    if not client.breaker_failures:
        return Client(client, meters=meters)
    circuit_breakers = CircuitBreakers(
        host.environment("circuits", SIZE), client.breaker_failures, client.breaker_seconds
    )
    return Client(client, circuit_breakers, meters)
