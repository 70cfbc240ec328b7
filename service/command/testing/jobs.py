"""Runs the jobs that a test has enqueued, on the connection and in the transaction of the test."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import cast

from psycopg import sql

from rowcall.core.auth.options import AuthOptions
from rowcall.core.endpoint.capabilities import Job as JobSettings
from rowcall.service.jobs.attempt import RunnableJobs, Start, run_attempt
from rowcall.service.jobs.job import Job
from rowcall.service.testing.calls import CallRefusedError
from rowcall.service.testing.session import Session

log = logging.getLogger("rowcall.jobs")

MOST = 1000
"""Most jobs of one block: each may enqueue further ones."""

_Taken = tuple[str, str, int, str, bool, str | None]
_TAKE = sql.SQL(
    "select id::text, endpoint, attempts, arguments::text, bound, nullif(claims, 'null')::text"
    " from rowcall.take_jobs({endpoints}::text[], null, 1)"
)
_FAIL = sql.SQL("select rowcall.fail_job({id}::uuid, {attempt}, {reason}, {delay}::float8, 'failed')")
_REPORT = sql.SQL("select rowcall.report_job({id}::uuid, {attempt}, {message})")


async def run_due_jobs(session: Session, jobs: RunnableJobs, auth: AuthOptions, start: Start) -> None:
    """Run jobs that wait and are due, one after another, and those that they enqueue. A failed attempt is stored as in
    the service. Raises `CallRefusedError` after `MOST` jobs, and `psycopg.Error`.

    session: the connection of the test. start: runs the steps of a request.
    """
    count = 0
    async for job, messages in _due(session, jobs):
        count += 1
        if count > MOST:
            raise CallRefusedError(f"more than {MOST} jobs are due; does a job enqueue itself?")
        async with session.request():
            attempt = await run_attempt(job, jobs, auth, start)
        if messages:
            await session.command(
                _REPORT.format(
                    id=sql.Literal(job.id), attempt=sql.Literal(job.attempt), message=sql.Literal(messages[-1])
                )
            )
        if attempt.settled:
            continue
        log.info("job of %s: attempt %d failed: %s", job.endpoint, job.attempt, attempt.reason)
        endpoint = jobs.find(job, auth.login)
        options = (endpoint and endpoint.options.job) or JobSettings()
        more = attempt.retry and job.attempt <= options.retries
        delay = sql.Literal(options.backoff if more else None)
        await session.command(
            _FAIL.format(
                id=sql.Literal(job.id),
                attempt=sql.Literal(job.attempt),
                reason=sql.Literal(attempt.reason),
                delay=delay,
            )
        )


async def _due(session: Session, jobs: RunnableJobs) -> AsyncIterator[tuple[Job, list[str]]]:
    """Take one job after another until none is due. Yield each with a list that is empty at first; while the job runs,
    the messages that it reports are appended. Raises `psycopg.Error`."""
    take = _TAKE.format(endpoints=sql.Literal(jobs.names))
    while rows := await session.fetch(take):
        number, endpoint, attempt, arguments, bound, claims = cast(_Taken, rows[0])
        messages: list[str] = []
        yield Job(number, endpoint, attempt, arguments, bound, claims, messages.append), messages
