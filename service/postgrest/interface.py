"""PostgREST's interface of one worker: requests below its mount → steps → responses.

The steps of a request are: `prepare` (authentication, path, body), `plan` (work, started in the driver) and `respond`.
They run without a task unless the work needs an explicit transaction or the body is large.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from functools import lru_cache, partial
from typing import Any

from rowcall.core.auth.claims import IdentityClaims
from rowcall.core.cache.entry import Entry
from rowcall.core.errors.problems import Problem
from rowcall.core.postgrest.catalogue import PostgRestCatalogue
from rowcall.core.postgrest.errors import ApiError
from rowcall.ext.driver.execution import Execution, Loss
from rowcall.service.database.call import HearAs, NoticeListener
from rowcall.service.database.execution.plain_runs import PlainRuns
from rowcall.service.postgrest.anonymous_cache import AnonymousCache
from rowcall.service.postgrest.authentication import Authentication, TokenError, user_of
from rowcall.service.postgrest.planning.planner import Planner
from rowcall.service.postgrest.planning.work import Response, Work
from rowcall.service.postgrest.request import (
    LONGEST,
    WRITE_METHODS,
    ApiRequest,
    profile_header,
    read_kind,
    segments_of,
    sent_path,
)
from rowcall.service.postgrest.responding import Responder
from rowcall.service.postgrest.result import Result, read_result
from rowcall.service.postgrest.settings import RequestSettings
from rowcall.service.postgrest.statement_cache import StatementCache
from rowcall.service.postgrest.transactions import TransactionLostError, Transactions
from rowcall.service.request.body import BODIES, read_body
from rowcall.service.request_context.header_values import decode_header, decode_header_lines
from rowcall.service.request_context.request_context import (
    ClientDisconnectedError,
    RequestContext,
    Step,
    Waiting,
)
from rowcall.service.shared_state.single_flight import LookupResult

Ahead = Mapping[tuple[str, bool], tuple[Step, ...]]
"""Steps by method and by whether the path is that of a function call."""
MOST_REPEATS = 3
"""Further runs of work that may itself have ended its connection."""
MOST_LOSSES = 20
"""Further runs of work whose connection was lost for another reason: when many sessions end, the next connections may
be dead as well.
"""


class PostgRestInterface:
    """Serves requests with one schema snapshot. Raises `InvalidOptionError` for a key that cannot be used."""

    def __init__(
        self,
        catalogue: PostgRestCatalogue,
        runs: PlainRuns,
        body_limit: int,
        ahead: Ahead,
        limit: Step | None,
        cache: AnonymousCache | None = None,
        authentication: Authentication | None = None,
        identity: IdentityClaims | None = None,
        hear: HearAs | None = None,
    ) -> None:
        """ahead: steps before those of the interface. body_limit: in bytes. limit: the step that requests a permit of
        the rate limiter; None: no limit. cache: of reads by anonymous callers; None: they are not cached.
        authentication: None for that of the options. identity: claim types of the users of requests; None if nothing
        needs their users. hear: makes the notice listener of a request, and requires `runs` that do not pipeline; None:
        notices are only logged."""
        self._options = options = catalogue.options
        self._authentication = authentication or Authentication(options)
        self._identity = identity
        self._ahead = ahead
        self.limit = limit
        self.body_limit = body_limit
        self.cache = cache
        self.hear = hear
        self.responder = Responder(options)
        self.times = options.server_timing
        """Whether responses say how long the parts of a request took."""
        settings = RequestSettings(options, catalogue.roles, catalogue.timeout)
        # New statements for each snapshot: PostgreSQL infers the types of parameters when it prepares them.
        self.transactions = Transactions(
            runs, StatementCache(runs.pace), settings, options, self.responder.database_error
        )
        self._kind = partial(read_kind, options)
        self._known_kind = lru_cache(maxsize=512)(self._kind)
        self.plan = Planner(catalogue.schema, options, self.responder).plan
        """Returns the work of a request, given its body, or its response. Raises `ApiError`."""

    def steps_of(self, scope: Any) -> tuple[Step, ...] | None:
        """Return the steps of a request of the HTTP server; None if its path is not below the mount."""
        return self.steps(scope.method, sent_path(scope))

    def steps(self, method: str, path: str, *, limited: bool = True) -> tuple[Step, ...] | None:
        """Return the steps of one request; None if its raw path is not below the mount. limited: the rate limiter
        counts it."""
        segments = segments_of(path, self._options.path)
        if segments is None:
            return None
        steps = _Steps(self, path, segments).steps(limited=limited)
        return (*self._ahead.get((method, segments[:1] == ("rpc",)), ()), *steps) if self._ahead else steps

    def prepare(
        self, context: RequestContext, path: str, segments: tuple[str, ...], timing: Timing | None
    ) -> ApiRequest | None:
        """Return the request, and set the user of the context if something needs it; None: it was a CORS preflight,
        which has been answered. path: as sent. segments: of the path below the mount, decoded. timing: measures the
        parts of the request; None: nothing is measured. Raises `ApiError`.
        """
        scope = context.scope
        if scope.method == "OPTIONS":
            response = self.responder.preflight(scope)
            if response is not None:
                self.responder.send(context, response)
                return None
        try:
            user = self._authentication.authenticate(decode_header(scope.headers, "authorization"))
        except TokenError as error:
            raise self.responder.token_error(error) from None
        if self._identity is not None and user.claims:
            context.user = user_of(user, self._identity)
        if timing is not None:
            timing.mark("jwt")
        headers, method = scope.headers, scope.method
        accept, prefer = tuple(decode_header_lines(headers, "accept")), tuple(decode_header_lines(headers, "prefer"))
        kind_of = self._known_kind if sum(map(len, (path, *accept, *prefer))) <= LONGEST else self._kind
        kind = kind_of(segments, method, decode_header(headers, profile_header(method)), accept, prefer)
        return ApiRequest(scope, context.protocol.client_disconnect, path, user, *kind)


class _Steps:
    """The state of one request between its steps."""

    __slots__ = ("_attempts", "_interface", "_path", "_request", "_segments", "_timing", "_work")

    def __init__(self, interface: PostgRestInterface, path: str, segments: tuple[str, ...]) -> None:
        self._interface = interface
        self._path = path
        self._segments = segments
        self._request: ApiRequest | None = None
        self._work: Work | None = None
        self._attempts = 0
        self._timing = Timing() if interface.times else None

    def steps(self, *, limited: bool) -> tuple[Step, ...]:
        """Return the steps. They refer to this object, so it must not store them: such a cycle would be left to the
        garbage collector. limited: the rate limiter counts the request."""
        steps: tuple[Step, ...] = (self._prepare, self._plan, self._respond)
        limit = self._interface.limit if limited else None
        return steps if limit is None else (partial(self._limit, limit), *steps)

    def _fail(self, context: RequestContext, error: Exception) -> None:
        """Answer an `ApiError` or `Problem`, and end the lease of this request, so that requests which wait for its
        result compute their own. Any other error is raised again, also that of a disconnected client."""
        if isinstance(error, ClientDisconnectedError):
            raise error
        context.answered = True
        interface = self._interface
        if interface.cache is not None:
            interface.cache.release(context)
        interface.responder.send(context, interface.responder.error(error, context.scope))

    def _limit(self, limit: Step, context: RequestContext) -> Waiting:
        """Request a permit of the rate limiter. limit: its step. A refusal is answered as an error of the interface."""
        try:
            waiting: Any = limit(context)
        except Problem as problem:
            self._fail(context, problem)
            return None
        return None if waiting is None else self._wait_for_permit(context, waiting)

    async def _wait_for_permit(self, context: RequestContext, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except Problem as problem:
            self._fail(context, problem)

    def _prepare(self, context: RequestContext) -> Waiting:
        """Authenticate and read the request; return what has to be awaited until its body is there."""
        if context.answered:
            return None
        try:
            request = self._request = self._interface.prepare(context, self._path, self._segments, self._timing)
            if request is None:
                context.answered = True
                return None
            if request.method not in WRITE_METHODS or request.method == "DELETE":
                context.body = b""
                return None
            limit = self._interface.body_limit
            arriving = BODIES.read_small(context, limit)
            if arriving is not None or context.body is not None:
                return arriving
            return self._read(context, limit)
        except (ApiError, Problem) as error:
            self._fail(context, error)
            return None

    async def _read(self, context: RequestContext, limit: int) -> None:
        """Read the body of the request into the context. An error is answered. limit: in bytes."""
        try:
            context.body = await read_body(context.scope, context.protocol, limit)
        except Problem as error:
            self._fail(context, error)

    def _plan(self, context: RequestContext) -> Waiting:
        """Plan the work and start it, or answer from the cache or without work."""
        request = self._request
        if context.answered or request is None:
            return None
        try:
            if self._timing is not None:
                self._timing.mark("parse")
            work = self._interface.plan(request, context.body or b"")
            if self._timing is not None:
                self._timing.mark("plan")
            if isinstance(work, Response):
                context.answered = True
                self._send_response(context, work)
                return None
            self._work = work
            cache = self._interface.cache
            if cache is not None and self._interface.transactions.is_one_segment(request, work):
                return self._look_up(cache, context, request, work)
            return self._run(context, request, work)
        except (ApiError, Problem) as error:
            self._fail(context, error)
            return None

    def _look_up(self, cache: AnonymousCache, context: RequestContext, request: ApiRequest, work: Work) -> Waiting:
        """Answer from the cache, or run the work if its result is not shared or not cached. Return what has to be
        awaited before the next step.
        """
        key = cache.key(request, work, self._interface.transactions.shared_settings(request, work))
        if key is None:
            return self._run(context, request, work)
        found: Any = cache.begin(key, 0)
        if type(found) is not Entry and isinstance(found, Awaitable):
            return self._wait_for_result(cache, context, found)
        return self._use(cache, found, context)

    async def _wait_for_result(
        self, cache: AnonymousCache, context: RequestContext, waiting: Awaitable[LookupResult]
    ) -> None:
        """Wait for the result that an equal request computes; then answer with it, or run the work if there is none."""
        try:
            found = await waiting
        except Problem as error:
            self._fail(context, error)
        else:
            context.follow((partial(self._use, cache, found), self._respond))

    def _use(self, cache: AnonymousCache, found: LookupResult, context: RequestContext) -> Waiting:
        """Answer with a cached result; without one, run the work. found: outcome of the lookup."""
        request, work = self._request, self._work
        if request is None or work is None:
            return None
        try:
            if isinstance(found, Entry):
                cache.report(context, "hit")
                result = read_result(found.body)
                if work.options.check is not None:
                    work.options.check(result)
                context.answered = True
                return self._send(context, work, result)
            cache.record_miss(context, found)
            return self._run(context, request, work)
        except (ApiError, Problem) as error:
            self._fail(context, error)
            return None

    def _run(self, context: RequestContext, request: ApiRequest, work: Work, *, alone: bool = False) -> Waiting:
        """Start the work. Return its execution, or an awaitable if it needs an explicit transaction, which also
        answers. alone: as for `Transactions.begin`.
        """
        listener = self._new_listener(context, request)
        execution = self._interface.transactions.begin(request, work, listener, alone=alone)
        if execution is None:
            return self._run_transaction(context, request, work, listener)
        context.execution = execution
        return execution

    def _new_listener(self, context: RequestContext, request: ApiRequest) -> NoticeListener | None:
        """Return a new notice listener, for one run of work; None: nothing hears its notices."""
        hear = self._interface.hear
        return None if hear is None else hear(context, request.user.role)

    async def _run_transaction(
        self, context: RequestContext, request: ApiRequest, work: Work, listener: NoticeListener | None
    ) -> None:
        """Run work in an explicit transaction, and answer. listener: gets its notices."""
        try:
            result = await self._result_of_transaction(context, request, work, listener)
            waiting: Any = self._send(context, work, result)
            if waiting is not None:
                await waiting
        except (ApiError, Problem) as error:
            self._fail(context, error)
        context.answered = True

    async def _result_of_transaction(
        self, context: RequestContext, request: ApiRequest, work: Work, listener: NoticeListener | None
    ) -> Result:
        """Return the result of work in an explicit transaction, which runs again if its connection was lost
        (`_repeats`). listener: gets the notices of the first run. Raises as `Transactions.run` does, but not
        `TransactionLostError`."""
        while True:
            try:
                return await self._interface.transactions.run(request, work, listener)
            except TransactionLostError as lost:
                if self._attempts >= _repeats(lost.execution, work):
                    raise lost.error from None
            self._attempts += 1
            listener = self._new_listener(context, request)

    def _respond(self, context: RequestContext) -> Waiting:
        """Answer with the result of the execution. If the work has to run again, because the connection was lost or
        because it has to run alone, start it, and make this step follow.
        """
        request, work, execution = self._request, self._work, context.execution
        if context.answered or request is None or work is None or execution is None:
            return None
        try:
            if not execution.succeeded and self._attempts < _repeats(execution, work):
                self._attempts += 1
                context.follow((self._respond,))
                return self._run(context, request, work)
            result = self._interface.transactions.finish(request, work, execution)
            if result is None:
                context.follow((self._respond,))
                return self._run(context, request, work, alone=True)
            if self._interface.cache is not None:
                self._interface.cache.keep(context, execution, result)
            return self._send(context, work, result)
        except (ApiError, Problem) as error:
            self._fail(context, error)
        return None

    def _send(self, context: RequestContext, work: Work, result: Result) -> Waiting:
        """Make the response from a result and send it; return what has to be awaited until it is sent, or None."""
        if self._timing is not None:
            self._timing.mark("transaction")
        response = work.respond(result)
        if isinstance(response, Response):
            self._send_response(context, response)
            return None
        return self._send_later(context, response)

    async def _send_later(self, context: RequestContext, response: Awaitable[Response]) -> None:
        self._send_response(context, await response)

    def _send_response(self, context: RequestContext, response: Response) -> None:
        if self._timing is not None:
            self._timing.mark("response")
            response = response._replace(headers=[*response.headers, self._timing.header])
        self._interface.responder.send(context, response)


def _repeats(execution: Execution, work: Work) -> int:
    """Return how often the work of a failed execution may be run again: `MOST_LOSSES` times if the connection was lost
    before the work took effect; `MOST_REPEATS` times if it was lost and the work only reads; else never, also if there
    was no free connection in time."""
    if isinstance(execution.failure, Problem):
        return 0
    if execution.loss in (Loss.NOT_STARTED, Loss.ROLLED_BACK):
        return MOST_LOSSES
    return MOST_REPEATS if execution.loss == Loss.IN_DOUBT and work.options.read_only else 0


class Timing:
    """Measures the consecutive parts of a request, from its creation on."""

    __slots__ = ("_last", "_parts")

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._parts: list[str] = []

    def mark(self, name: str) -> None:
        """End the current part under this name, and begin the next one."""
        now = time.perf_counter()
        self._parts.append(f"{name};dur={(now - self._last) * 1000:.1f}")
        self._last = now

    @property
    def header(self) -> tuple[str, str]:
        """Name and value of the header with the parts so far, in milliseconds."""
        return "server-timing", ", ".join(self._parts)
