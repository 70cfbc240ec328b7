"""The endpoints of one schema snapshot for tests: compiled as for a worker, on the connection of the test.

Each file that runs at the same time needs its own application, because an endpoint is compiled for one database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from rowcall.core.auth.claims import User
from rowcall.core.cache.options import NO_CACHE
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.http.router import MalformedPathError, Match, Route, Router, decode_path
from rowcall.core.http.routing import build_router
from rowcall.core.testing.coverage import Calls, refusal, sends_away
from rowcall.core.testing.request import HttpBlock, Stub
from rowcall.core.testing.spelling import with_usual_spelling
from rowcall.core.text import query_text
from rowcall.service.database.first_connection import OpeningRetries
from rowcall.service.events.publishing import hear_notices
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.identity.sessions import Sessions
from rowcall.service.options.worker import WorkerOptions
from rowcall.service.pipeline.services import Services
from rowcall.service.request.subrequests import CapturedResponse, Subrequests, SubrequestScope
from rowcall.service.request_context.head_protocol import HeadProtocol
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.snapshot.schema_snapshot import SchemaSnapshot
from rowcall.service.testing.calls import CallRefusedError, Reply
from rowcall.service.testing.database import TestDatabase
from rowcall.service.testing.session import Session, SessionPool
from rowcall.service.worker.application import Application
from rowcall.service.worker.codecs import codecs_for
from rowcall.service.worker.route_table import CompiledRoutes, runnable

if TYPE_CHECKING:
    from rowcall.core.postgrest.catalogue import PostgRestCatalogue
    from rowcall.service.command.testing.interface import TestInterface
    from rowcall.service.http_client.client import Client
    from rowcall.service.http_client.messages import HttpResponse
    from rowcall.service.jobs.attempt import RunnableJobs
    from rowcall.service.testing.stubs import StubbedClient

SCHEME = "test"


def for_tests(options: WorkerOptions, store: str) -> WorkerOptions:
    """Return the options for tests: without cached responses, which could come from other tests, and without features
    that tests cannot use, such as antiforgery tokens, static files, health and metrics. Requests of tests are no calls
    for the audit trail, whose command would commit them. store: folder of the shared state."""
    return replace(
        options,
        store=store,
        cache=NO_CACHE,
        antiforgery=None,
        notices=None,
        request_log=False,
        wrap_in_transaction=False,
        static=None,
        statistics=None,
        health=None,
        # No address serves the metrics of a test run.
        metrics=None,
        audit_trail=None,
    )


class _ClaimedSessions(Sessions):
    """Sessions without authentication: the test states the claims of the caller."""

    caller_is_preset = True

    def authenticate(self, context: RequestContext) -> None:
        """Do nothing; the user of the context is set by the test."""


class _Client:
    """The client of a test, which never disconnects."""

    async def client_disconnect(self) -> None:
        await asyncio.Event().wait()


class TestApplication(Application):
    """The application of a worker, called by tests without a socket."""

    __test__ = False

    def __init__(self, options: WorkerOptions, calls: dict[str, Calls], opening: OpeningRetries) -> None:
        """Create the application within the running event loop.

        calls: receives the calls by name of the endpoint. opening: retries of the connections of tests.
        """
        super().__init__(options)
        self.database = TestDatabase(options.target, options.database)
        self.sessions = SessionPool(opening)
        self._calls = calls
        self._identity.sessions = _ClaimedSessions(options.auth, self.keys, options.forwarding, options.outbound.client)
        self._stubbed = None if self._client is None else _stubbed_client(self._client)
        self._router = Router()
        self._compiled: CompiledRoutes = CompiledRoutes((), self._services({}, {}))
        self._due: RunnableJobs | None = None
        self._host_of_proxies = options.outbound.proxy.host
        self._interface: TestInterface | None = None

    @property
    def routes(self) -> tuple[Route, ...]:
        return self._router.routes

    async def close(self) -> None:
        await self.sessions.close()
        await super().close()

    def prepare(self, snapshot: SchemaSnapshot) -> None:
        """Compile the endpoints of a snapshot; it replaces the previous one. Raises `RouteError`."""
        names = snapshot.connections(access.name for access in self._options.others.values())
        others = {
            key: (self.database, codecs_for(snapshot.other_types.get(key, {}), self._options), None)
            for key in names & {key for key, access in self._options.others.items() if access.routable}
        }
        services = self._services(snapshot.types, others)
        send_subrequest = Subrequests(self._runner.start, self._fail, self._identity.sessions.is_secure)
        services = replace(services, send_subrequest=send_subrequest.call)
        self._router = build_router(snapshot.endpoints, internal=True)[0]
        self._compiled = CompiledRoutes(self._router.routes, services)
        send_subrequest.serve(self._router, self._compiled)
        self._due = None if self._options.jobs is None else runnable(snapshot.endpoints, services)
        self._interface = self._interface_of(snapshot.postgrest)

    def _interface_of(self, catalogue: PostgRestCatalogue | None) -> TestInterface | None:
        """Return PostgREST's interface, if it is served; imported here because most services do not serve it."""
        if catalogue is None:
            return None
        from rowcall.service.command.testing.interface import TestInterface

        return TestInterface(catalogue, self.database, self._options.http.limits.body_size)

    def _services(self, types: Any, others: Any) -> Services:
        """Return the services for step factories. types: as `SchemaSnapshot.types`. others: as `Services.others`."""
        return Services(
            self._options,
            self.database,
            codecs_for(types, self._options),
            self._identity,
            self._caches,
            self._host,
            others,
            client=self._stubbed,
            hear=partial(hear_notices, options=self._options.events, publish=self.events.publish),
            limited=False,
        )

    async def call(self, block: HttpBlock, stubs: Sequence[Stub]) -> Reply:
        """Call an endpoint or PostgREST's interface with the request of a test, and return the response; 404 with
        `found` False if nothing serves the path.

        Raises CallRefusedError if tests cannot call the endpoint, or if its response is cut off. stubs: responses of
        other services.
        """
        raw_path, _, query = block.target.partition("#")[0].partition("?")
        try:
            path = decode_path(raw_path)
            match = self._match(block.method, path)
        except MalformedPathError:
            match = None
        if match is None:
            return await self._call_interface(block, raw_path, query, stubs)
        endpoint = match.route.primary
        if why := refusal(endpoint):
            raise CallRefusedError(f"{endpoint.name} cannot be called from a test: {why}")
        if not stubs and sends_away(endpoint, self._host_of_proxies):
            raise CallRefusedError(
                f"{endpoint.name} cannot be called from a test without a stub: it is a proxy for another service"
            )
        user = self._identity.sessions.user(block.claims, SCHEME) if block.claims else None
        context, capture = _request(block, path, query)
        context.user = user
        context.values = match.values
        if block.method == "HEAD" and endpoint.method != "HEAD":
            context.protocol = HeadProtocol(capture)
        route = match.route
        named = [name for name, _ in route.primary.options.headers]
        reply = await self._answer(context, capture, lambda: self._compiled[id(route)], named, stubs)
        self._record_call(endpoint, block, user, reply)
        return reply

    def _match(self, method: str, path: str) -> Match | None:
        """Return the route of a decoded path, for HEAD also that of GET; None without one."""
        result = self._router.find(method, path)
        return self._router.find("GET", path) if result is None and method == "HEAD" else result

    async def _call_interface(self, block: HttpBlock, path: str, query: str, stubs: Sequence[Stub]) -> Reply:
        """Call PostgREST's interface; return 404 with `found` False if it is not served, or if the path is not below
        that of the interface. path: as in the request, not decoded. query, stubs: as for `_request` and `call`. Raises
        CallRefusedError if the response is cut off."""
        interface = self._interface
        steps = None if interface is None else interface.steps(block.method, path)
        if interface is None or steps is None:
            return Reply(404, found=False)
        interface.callers.stated = block.claims
        context, capture = _request(block, path, query)
        return await self._answer(context, capture, lambda: steps, (), stubs)

    async def run_jobs(self, session: Session, stubs: Sequence[Stub]) -> Sequence[str]:
        """Run the jobs that are due, and return the requests to other services for which there was no stub.

        Raises CallRefusedError if jobs are off, or too many run, and `psycopg.Error`.
        """
        if self._due is None:
            raise CallRefusedError("jobs are off; set Jobs:Enabled")
        from rowcall.service.command.testing.jobs import run_due_jobs

        self._set_stubs(stubs)
        await run_due_jobs(session, self._due, self._options.auth, self._runner.start)
        return () if self._stubbed is None else tuple(self._stubbed.unexpected)

    def _set_stubs(self, stubs: Sequence[Stub]) -> None:
        """Set the responses of other services for the next call, and drop the record of requests without one."""
        if self._stubbed is not None:
            self._stubbed.stubs = stubs
            self._stubbed.unexpected.clear()

    async def _answer(
        self,
        context: RequestContext,
        capture: CapturedResponse,
        steps_of: Callable[[], tuple[Step, ...]],
        headers: Sequence[str],
        stubs: Sequence[Stub],
    ) -> Reply:
        """Run the steps of a request and return its response. If `steps_of` raises an error, the response is that to an
        error of a step. Raises CallRefusedError if the response is cut off.

        capture: receives the response. steps_of: returns the steps. headers: names of response headers as the comment
        spells them; the response has these spellings, and the usual ones of other names. stubs: responses of other
        services.
        """
        stubbed = self._stubbed
        self._set_stubs(stubs)
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end(_context: RequestContext, _error: Exception | None) -> None:
            if not ended.done():
                ended.set_result(None)

        context.at_end(end)
        try:
            steps = steps_of()
        except Exception as error:
            self._fail(context, error)
            ended.set_result(None)
        else:
            self._runner.start(context, steps)
        try:
            answer = await capture.begun
            content = await _body(answer, ended)
        except asyncio.CancelledError:
            # Tasks of this call must not continue during the next test.
            self._step_tasks.cancel()
            raise
        spelled_headers = with_usual_spelling(answer.headers, headers)
        unexpected = () if stubbed is None else tuple(stubbed.unexpected)
        return Reply(answer.status, spelled_headers, content.decode("utf-8", "replace"), True, unexpected)

    def _record_call(self, endpoint: Endpoint, block: HttpBlock, user: User | None, reply: Reply) -> None:
        """Record a call for the coverage. user: None for an anonymous caller."""
        calls = self._calls.setdefault(endpoint.name, Calls())
        calls.statuses.add(reply.status)
        if user is None:
            calls.anonymous = True
        elif reply.status not in (401, 403):
            calls.roles |= user.roles
        calls.supplied.append(_names_of_values(block))


async def _body(answer: HttpResponse, ended: asyncio.Future[None]) -> bytes:
    """Read the body of a response, wait for the end of its request, and return the body. A request with a streamed body
    ends only when the body has been read. Raises CallRefusedError for a body that is cut off. ended: completed at the
    end of the request."""
    try:
        content = await answer.read(None)
    except OutboundError as error:
        await ended
        raise CallRefusedError(f"the response has begun with status {answer.status}, but {error}") from error
    await ended
    return content


def _stubbed_client(client: Client) -> StubbedClient:
    """Return a client that answers from stubs; imported here because most services send no outgoing requests."""
    from rowcall.service.testing.stubs import StubbedClient

    return StubbedClient(client.options)


def _request(block: HttpBlock, path: str, query: str) -> tuple[RequestContext, CapturedResponse]:
    """Return the context of a request, and what receives its response. path: decoded. query: what follows the `?`, not
    decoded.
    """
    body = block.body.encode()
    capture = CapturedResponse(_Client(), body)
    scope = SubrequestScope(block.method, path, query, _headers(block, body), 0, "127.0.0.1:0")
    return RequestContext(scope, capture), capture


def _headers(block: HttpBlock, body: bytes) -> list[tuple[str, str]]:
    """Return the headers of the request without a Content-Length of the test. If there is a body, its length is added
    and, if the test states none, the content type of JSON."""
    headers = [(name, value) for name, value in block.headers if name.lower() != "content-length"]
    names = {name.lower() for name, _ in headers}
    if body:
        headers.append(("content-length", str(len(body))))
        if "content-type" not in names:
            headers.append(("content-type", "application/json"))
    return headers


def _names_of_values(block: HttpBlock) -> frozenset[str]:
    """Return the names of the values in query string and body; of a body that is no JSON object, none."""
    try:
        names = {name for name, _ in query_text.pairs(block.target.partition("?")[2])}
    except query_text.QueryTextError:
        names = set()
    try:
        body = orjson.loads(block.body) if block.body else None
    except orjson.JSONDecodeError:
        body = None
    return frozenset(names | set(body if isinstance(body, dict) else ()))
