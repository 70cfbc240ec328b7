"""How the routine of a job runs: in the transaction that finishes the job, so that its work is never done twice."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.errors.problems import UnavailableError
from rowcall.service.database.call import Call, Hear, NoticeListener
from rowcall.service.database.database import Database
from rowcall.service.jobs.job import Job
from rowcall.service.pipeline.services import Services
from rowcall.service.pipeline.sql_call import sql_call
from rowcall.service.pipeline.stored_results import SealResult, result_sealer
from rowcall.service.request_context.request_context import ClientDisconnectedError, RequestContext, Step, Waiting

_LOCK = "select rowcall.lock_job($1::uuid, $2::int)"
_NOT_LOCKED = "its row cannot be locked: another worker has it, or it has ended"
_REFUSALS = {"55000": _NOT_LOCKED, "55P03": _NOT_LOCKED}
_FINISH = "select rowcall.finish_job($1::uuid, $2::int, $3, $4)"


def run_in_job(endpoint: Endpoint, call: Call, services: Services) -> Step:
    """Return the step that runs the call of a job and marks the job as finished, both in one transaction. Notices of
    the call at level INFO become the progress of the job.
    """
    lock = sql_call(f"{endpoint.name} job", _LOCK, 2, services, reads=False)
    finish = sql_call(f"{endpoint.name} job", _FINISH, 4, services, binary=(3,), reads=False)
    content_type = (endpoint.options.content_type or endpoint.shape.content_type).encode()
    call.hear = partial(_progress, call.hear)
    return _JobCall(services.database, call, lock, finish, content_type, result_sealer(endpoint, services)).run


def skip_if_bound(step: Step) -> Step:
    """Return a step that runs `step` only in attempts of jobs that were enqueued in SQL, whose arguments were not bound
    then. Other attempts skip it."""

    def run_unless_bound(context: RequestContext) -> Waiting:
        return None if context.scope.job.bound else step(context)

    return run_unless_bound


@dataclass(frozen=True, slots=True)
class _JobCall:
    """The call of a routine in jobs.

    lock: call that locks the row of the job before the routine runs, and fails if the job no longer belongs to this
    worker. finish: call that marks the job as finished and stores the result. content_type: of the result. seal:
    encrypts the result; None: it is stored as it is.
    """

    database: Database
    call: Call
    lock: Call
    finish: Call
    content_type: bytes
    seal: SealResult | None

    async def run(self, context: RequestContext) -> None:
        """Run the call and finish the job, as `_run_once` does; its errors are raised. If the service is unavailable,
        record the reason as an interruption of the job. If the job was cancelled, set `job.abandoned`, so that no
        response is waited for."""
        job: Job = context.scope.job
        try:
            await self._run_once(job, context)
        except UnavailableError as error:
            job.interrupt(error.detail or error.title)
            raise
        except ClientDisconnectedError:
            job.abandoned.set()
            raise

    async def _run_once(self, job: Job, context: RequestContext) -> None:
        """Run the call and mark the job as finished in one transaction. Raises `Problem` and
        `ClientDisconnectedError`."""
        names = [job.id.encode(), str(job.attempt).encode()]
        async with self.database.transaction(self.call, context) as transaction:
            await transaction.begin_with_call(self.lock, list(names), _REFUSALS)
            execution = context.execution
            is_null = execution is None or execution.is_null
            body = None if execution is None or is_null else execution.body
            if body is not None and self.seal is not None:
                body = self.seal(body, job.id.encode())
            await transaction.commit((self.finish, [*names, self.content_type, body]))
            job.finished = True


def _progress(hear: Hear | None, context: RequestContext) -> _Progress:
    """Return the notice listener of an attempt. hear: makes the notice listener of the endpoint, which publishes
    events; None: the endpoint has none."""
    return _Progress(context.scope.job, None if hear is None else hear(context))


class _Progress(NoticeListener):
    """Notice listener that reports what a routine raises at level INFO as the progress of its job, and forwards
    everything to the listener of the endpoint.
    """

    def __init__(self, job: Job, listener: NoticeListener | None) -> None:
        self._job = job
        self._listener = listener

    def hear(self, severity: str, sqlstate: str, message: str, hint: str | None) -> None:
        if severity == "INFO":
            self._job.report(message)
        if self._listener is not None:
            self._listener.hear(severity, sqlstate, message, hint)

    def send(self, message: str) -> None:
        """Forward a message of the service: only what the routine raises is progress."""
        if self._listener is not None:
            self._listener.send(message)

    def end(self, committed: bool) -> None:
        if self._listener is not None:
            self._listener.end(committed)
