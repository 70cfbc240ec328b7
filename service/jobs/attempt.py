"""One attempt of a job: the steps of its endpoint run as for a request, whose response is the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import orjson

from rowcall.core.auth.options import AuthOptions, LoginOptions
from rowcall.core.auth.parameter_injection import overload_parameters
from rowcall.core.binding.strict_types import StrictTypes
from rowcall.core.endpoint.capabilities import Job as JobSettings
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.binding_error import BindingError
from rowcall.core.http.overloads import Candidate, choose
from rowcall.service.http_client.errors import OutboundError
from rowcall.service.jobs.job import Job, bind_arguments, parameter_signature
from rowcall.service.request.subrequests import CapturedResponse, SubrequestScope
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.request_context.surroundings import headers_of_tenant

CANCEL_WITHIN = 10.0
"""Seconds for which a cancelled attempt is awaited."""
_UNFIT = 400
"""Status of an attempt that cannot begin."""
_QUERY_CANCELED = "57014"

Start = Callable[[RequestContext, tuple[Step, ...]], None]
"""Begins to run the steps of a request; returns at once."""


class RunnableJobs(NamedTuple):
    """The endpoints whose jobs can run. overloads: by method and path, in the order of discovery. schedules: by the
    name of the schedule. steps: returns the compiled steps of an endpoint. timestamps_utc: in arguments of jobs that
    were enqueued in SQL, timestamps without a zone are in UTC. strict: the JSON types that such arguments must have, as
    in `Binder`."""

    overloads: Mapping[str, tuple[Endpoint, ...]]
    schedules: Mapping[str, Endpoint]
    steps: Callable[[Endpoint], tuple[Step, ...]]
    timestamps_utc: bool = True
    strict: StrictTypes | None = None

    @property
    def names(self) -> list[str]:
        """All names that jobs may have as their endpoint."""
        return list({**self.overloads, **self.schedules})

    def find(self, job: Job, login: LoginOptions) -> Endpoint | None:
        """Return the endpoint that runs a job; None: it is not served any more.

        Of overloads, it is the one whose parameters are those of the request that has enqueued the job, or the one that
        the names of the arguments select, as those of a request do (routing-16). login: which parameters are set from
        claims.
        """
        if (endpoint := self.schedules.get(job.endpoint)) is not None:
            return endpoint
        # The last one takes precedence.
        candidates = self.overloads.get(job.endpoint, ())[::-1]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        if job.bound:
            signature = job.request.get("signature")
            fitting = (item for item in candidates if item.options.job and parameter_signature(item) == signature)
            return next(fitting, candidates[0])
        values = [Candidate.of(overload_parameters(endpoint, login)) for endpoint in candidates]
        return candidates[choose(values, job.argument_names, 0)]


class Attempt(NamedTuple):
    """The outcome of an attempt. status: of the response; 499: it was cancelled and has no response. reason: why it has
    failed; without meaning if it has succeeded (`settled`) or was interrupted. retry: whether a further attempt can
    succeed. settled: the call has succeeded, and its transaction has marked the job as finished; the response may be an
    error all the same, such as 404 for a result without a row."""

    status: int
    reason: str = ""
    retry: bool = True
    settled: bool = False


class _Caller:
    """Protocol object of a job: its client disconnects when the job is cancelled."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def client_disconnect(self) -> Awaitable[Any]:
        return self._job.cancelled.wait()


async def run_attempt(job: Job, jobs: RunnableJobs, auth: AuthOptions, start: Start) -> Attempt:
    """Run the routine of a job with the arguments and claims of the caller who enqueued it, and return the outcome.

    The transaction of a successful routine has marked the job as finished; a failure has to be stored by the caller of
    this function. If the endpoint does not exist any more, the job is interrupted.

    start: begins to run the steps.
    """
    endpoint = jobs.find(job, auth.login)
    if endpoint is None:
        job.interrupt("its endpoint is not served any more")
        return Attempt(503)
    if job.number > (endpoint.options.job or JobSettings()).retries + 1:
        return Attempt(_UNFIT, "it was interrupted too often, by lost workers or the service", retry=False)
    capture = CapturedResponse(_Caller(job))
    headers = job.headers if job.trace is None else [*job.headers, ("traceparent", job.trace)]
    if endpoint.options.tenant is not None and job.tenant is not None:
        headers += headers_of_tenant(endpoint.options.tenant, job.tenant)
    context = RequestContext(SubrequestScope(endpoint.method, endpoint.path, "", headers, 1), capture)
    context.scope.job = job
    try:
        context.user = job.user(auth)
        bound = bind_arguments(endpoint, job, auth, timestamps_utc=jobs.timestamps_utc, strict=jobs.strict)
        context.mask, context.arguments, context.has_null = bound
    except BindingError as error:
        return Attempt(_UNFIT, error.detail, retry=False)
    start(context, jobs.steps(endpoint))
    attempt = await _outcome(job, capture)
    if job.finished:
        return attempt._replace(settled=True)
    limit = endpoint.options.timeout
    if limit and _was_cancelled(context):
        return attempt._replace(reason=f"{attempt.reason} (the time limit of an attempt is {limit:g} s)")
    return attempt


def _was_cancelled(context: RequestContext) -> bool:
    """Return whether PostgreSQL has cancelled the routine, as it does when the time limit has passed."""
    execution = context.execution
    return execution is not None and execution.error is not None and execution.error.sqlstate == _QUERY_CANCELED


async def _outcome(job: Job, capture: CapturedResponse) -> Attempt:
    """Wait for the response of an attempt, and return the outcome. A cancelled attempt that ends without a response, or
    not within `CANCEL_WITHIN` seconds, has status 499. capture: receives the response."""
    cancelled = asyncio.get_running_loop().create_task(job.cancelled.wait())
    abandoned = asyncio.get_running_loop().create_task(job.abandoned.wait())
    try:
        waiting: set[asyncio.Future[Any]] = {capture.begun, cancelled}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if not capture.begun.done():
            # The statement is cancelled now. A request whose client has left may end without a response.
            waiting = {capture.begun, abandoned}
            await asyncio.wait(waiting, timeout=CANCEL_WITHIN, return_when=asyncio.FIRST_COMPLETED)
    finally:
        cancelled.cancel()
        abandoned.cancel()
    if not capture.begun.done():
        return Attempt(499, "it was cancelled")
    response = capture.begun.result()
    try:
        body = await response.read(1_000_000)
    except OutboundError as error:
        return Attempt(response.status, str(error))
    try:
        members = orjson.loads(body)
        parts = [str(members[name]) for name in ("title", "detail") if members.get(name)]
        return Attempt(response.status, ": ".join(parts))
    except (orjson.JSONDecodeError, AttributeError, TypeError):
        return Attempt(response.status, f"status {response.status}")
