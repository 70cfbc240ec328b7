"""Takes jobs of the database and runs them, in every worker of every host.

A job begins as soon as it is committed, because a connection waits for notifications. Without a notification, the
runner looks again at the time of the next job. `Background.keep` (`service.background`) calls `run` again after the
database was lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import psycopg

from rowcall.core.auth.options import AuthOptions
from rowcall.core.endpoint.capabilities import Job as JobSettings
from rowcall.core.jobs.options import JobOptions
from rowcall.service.database.connector import Connector
from rowcall.service.database.queues import QueueConnection, Removal
from rowcall.service.jobs.attempt import RunnableJobs, Start, run_attempt
from rowcall.service.jobs.job import Job
from rowcall.service.jobs.schedules import Schedules

CountEnd = Callable[[str, str], None]
"""Counts an attempt, by endpoint and outcome: `completed`, `failed`, `retried` or `cancelled`."""

log = logging.getLogger("rowcall.jobs")

CHANNEL = "rowcall_jobs"
LATER = "later"
"""Payload of the notification of a job that is not due yet."""
LONGEST_WAIT = 10.0
"""Seconds after which a worker looks for jobs without a notification."""
GRACE = 10.0
"""Seconds without a report after which the worker of a job counts as lost, unless it has locked the row of the job."""
REPORT = 3.0
"""Seconds between two reports about the jobs that run."""
GATHER = 0.002
"""Seconds for which the ends of jobs are gathered before new ones are taken."""
TIDY = 5.0
"""Seconds between two searches for jobs of lost workers."""
UNSERVED = 60.0
"""Seconds between two searches for jobs that no service runs. The first one follows after `LONGEST_WAIT`, as other
services may be starting, too."""
MOST_MESSAGE = 4000
"""Maximum number of characters of a message that is stored with a job."""

_TAKE = (
    "select id::text, endpoint, attempts, arguments::text, bound, nullif(claims, 'null')::text, trace, interruptions,"
    " serial_key is not null"
    " from rowcall.take_jobs(%s::text[], %s::text[], %s)"
)
_TAKE_OF_ALL = _TAKE.replace("take_jobs(%s::text[], ", "take_of_all_queues(")
_TAKE_WITHIN = _TAKE.replace("take_jobs(", "take_jobs_within(").removesuffix(")") + ", %s::text[], %s::int[])"
_KEEP = "select rowcall.keep_jobs(%s::uuid[], %s::int[])"
_CANCELLED = "select job::text from rowcall.cancelled_jobs(%s::uuid[]) job"
_RELEASE_ALL = "select rowcall.release_job(id, attempt, %s) from unnest(%s::uuid[], %s::int[]) as taken (id, attempt)"
_STOPPED = "its worker has stopped"
STOP_WITHIN = 3.0
"""Seconds for the ends of cancelled jobs when the worker stops."""
LONGEST_INTERRUPTION = 5.0
"""Longest delay in seconds after an attempt that the service has broken off."""
FULL_QUEUE = 0.25
"""Least seconds between two looks while there are queues with limits, whose jobs may wait although they are due."""


class JobRunner:
    """The jobs that one worker takes and runs."""

    def __init__(
        self,
        options: JobOptions,
        connector: Connector,
        auth: AuthOptions,
        start: Start,
        count: CountEnd | None,
    ) -> None:
        """start: runs the steps of a request. count: called for each attempt that has ended; None: metrics are off, and
        `gauges` stay empty.
        """
        self._counts = count is not None
        self._count = count or (lambda _endpoint, _outcome: None)
        self.gauges: list[tuple[str, Mapping[str, str], float]] = []
        """Jobs of all services in the database, by queue and state."""
        self._options = options
        self._queue = QueueConnection(connector)
        self._removal = Removal(self._remove)
        self._auth = auth
        self._start_steps = start
        self._wake = asyncio.Event()
        self._jobs = RunnableJobs({}, {}, lambda _endpoint: ())
        self._names: list[str] = []
        """The names of the endpoints whose jobs run here."""
        self._schedules = Schedules({})
        self._running: dict[str, Job] = {}
        self._more = False
        """Further jobs may be due: there was no room for them when this worker looked last."""
        self._due = 0.0
        """Time of the event loop at which a job may be due; in the past: it has to be asked for."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._not_taking = asyncio.Event()
        """The database is not being asked for jobs."""
        self._not_taking.set()

    def serve(self, jobs: RunnableJobs) -> None:
        """Set the endpoints of the schema snapshot in use, whose jobs and schedules run from now on."""
        self._jobs = jobs
        self._schedules = Schedules(jobs.schedules)
        self._names = jobs.names
        self._due = 0.0
        self._wake.set()

    async def run(self) -> None:
        """Take and run jobs until the connection is lost. Raises `psycopg.Error`."""
        self._due = 0.0
        async with self._queue.open(CHANNEL, self._on_notification):
            reports = asyncio.get_running_loop().create_task(self._report_running())
            try:
                await self._work()
            finally:
                reports.cancel()

    def drain(self) -> None:
        """Take no further jobs."""
        self._stopping = True

    async def finish(self, seconds: float) -> None:
        """Take no further jobs, and wait for those that run: at most `seconds`, and at most `Jobs:ShutdownTimeout`."""
        self._stopping = True
        await self._wait_for_takes()
        loop = asyncio.get_running_loop()
        end = loop.time() + min(seconds, self._options.shutdown)
        while self._tasks and (left := end - loop.time()) > 0:
            await asyncio.wait(self._tasks, timeout=left)

    async def stop(self) -> None:
        """Take no further jobs, cancel those that run, and give them back, so that other workers run them at once. A
        job that has not ended after `STOP_WITHIN` seconds is recovered later, like that of a lost worker."""
        self._stopping = True
        await self._wait_for_takes()
        for job in list(self._running.values()):
            job.interrupt(_STOPPED)
            job.cancelled.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_WITHIN)
        for task in list(self._tasks):
            task.cancel()

    async def _wait_for_takes(self) -> None:
        """Wait, for at most `STOP_WITHIN` seconds, until the database is not being asked for jobs. Jobs that it returns
        meanwhile are given back."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_WITHIN):
                await self._not_taking.wait()

    def _on_notification(self, payload: str) -> None:
        """Handle a notification: cancel a job that runs here, or look for jobs. payload: `cancel` and the id of a job;
        `LATER` for a new job that is not due yet; anything else for a job that is due."""
        word, _, number = payload.partition(" ")
        if word == "cancel":
            self._cancel(number)
            return
        if word == LATER:
            self._due = 0.0
        self._wake.set()

    def _cancel(self, number: str) -> None:
        """Cancel a job if it runs here. number: its id."""
        if number in self._running:
            self._running[number].cancelled.set()

    async def _work(self) -> None:
        """Take and run jobs, enqueue those of schedules, and tidy, forever. Raises `psycopg.Error`."""
        loop = asyncio.get_running_loop()
        tidied, searched = 0.0, loop.time() + LONGEST_WAIT - UNSERVED
        while True:
            self._wake.clear()
            self._queue.check()
            if self._stopping or not self._names:
                # While the worker stops, its jobs need the connection. The schema rowcall may be missing.
                await self._wait(TIDY)
                continue
            if loop.time() - tidied > TIDY:
                tidied = loop.time()
                await self._tidy()
            if loop.time() - searched > UNSERVED:
                searched = loop.time()
                await self._warn_of_unserved_jobs()
            await self._removal.run_if_due()
            await self._schedules.enqueue_due(self._queue.query)
            if self._more and self._running:
                # Short jobs end in quick succession, and are replaced by one query.
                await asyncio.sleep(GATHER)
            free = self._options.concurrency - len(self._running)
            self._more = free <= 0 or await self._take(free) >= free
            if not self._more and (self._options.limits or self._due <= loop.time()):
                self._due = math.inf  # until a notification, which may come while the database is asked
                self._due = min(self._due, loop.time() + min(TIDY, await self._next()))
            pause = TIDY if self._more else max(0.0, self._due - loop.time())
            await self._wait(min(pause, self._schedules.pause(), self._removal.pause))

    async def _report_running(self) -> None:
        """Report the jobs that run here every `REPORT` seconds, until this task is cancelled. A job whose attempt has
        not locked its row yet, for example because it waits for another service, would otherwise be taken by another
        worker after `GRACE`. Cancel jobs whose notification was missed."""
        task = asyncio.current_task()
        # If the connection is closed meanwhile, a query raises its error in place of the cancellation.
        while task is not None and not task.cancelling():
            await asyncio.sleep(REPORT)
            jobs = list(self._running.values())
            if jobs:
                # `_work` uses the same connection, and raises the error if it is lost.
                with contextlib.suppress(psycopg.Error):
                    await self._queue.query(_KEEP, [job.id for job in jobs], [job.attempt for job in jobs])
                    for (number,) in await self._queue.query(_CANCELLED, [job.id for job in jobs]):
                        self._cancel(number)

    async def _wait(self, seconds: float) -> None:
        """Wait, for at most `seconds`, for a notification, another schema snapshot, or the end of a job that lets
        another one begin."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _take(self, most: int) -> int:
        """Take at most `most` jobs, begin to run them, and return their number. If the worker has begun to stop
        meanwhile, give them back and return 0. Raises `psycopg.Error`.
        """
        self._not_taking.clear()
        try:
            rows = await self._take_jobs(most)
            if self._stopping and rows:
                await self._queue.query(_RELEASE_ALL, _STOPPED, [row[0] for row in rows], [row[2] for row in rows])
                return 0
        finally:
            self._not_taking.set()
        for number, endpoint, attempt, arguments, bound, claims, *others in rows:
            job = Job(number, endpoint, attempt, arguments, bound, claims, lambda _message: None, *others)
            job.report = self._reporter(job)
            self._running[job.id] = job
            self._spawn(self._run_job(job))
        return len(rows)

    async def _take_jobs(self, most: int) -> list[tuple[Any, ...]]:
        """Take at most `most` jobs of the configured queues in the database, and return their rows (of `_TAKE`). Empty
        if the worker stops. Raises `psycopg.Error`.
        """
        if self._stopping:
            return []
        queues = list(self._options.queues) or None
        if limits := self._options.limits:
            names, numbers = zip(*limits.items(), strict=True)
            return await self._queue.query(_TAKE_WITHIN, self._names, queues, most, list(names), list(numbers))
        if queues is not None:
            return await self._queue.query(_TAKE, self._names, queues, most)
        return await self._queue.query(_TAKE_OF_ALL, self._names, most)

    def _spawn(self, work: Any) -> None:
        """Run a coroutine in a task, which `finish` and `stop` wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _reporter(self, job: Job) -> Callable[[str], None]:
        """Return the function that stores a message about the progress of a job, in the background. Of the messages
        within 0.05 s, only the last one is stored. Errors of the database are ignored."""
        pending: list[str] = []

        async def store() -> None:
            await asyncio.sleep(0.05)
            message = pending[-1]
            pending.clear()
            with contextlib.suppress(psycopg.Error):
                await self._queue.query("select rowcall.report_job(%s::uuid, %s, %s)", job.id, job.attempt, message)

        def report(message: str) -> None:
            pending.append(message[:MOST_MESSAGE])
            if len(pending) == 1:
                self._spawn(store())

        return report

    async def _next(self) -> float:
        """Return the seconds until the next job may run; `LONGEST_WAIT` if there is none. Raises `psycopg.Error`."""
        queues = list(self._options.queues) or None
        ((seconds,),) = await self._queue.query("select rowcall.next_job(%s::text[], %s::text[])", self._names, queues)
        return LONGEST_WAIT if seconds is None else max(FULL_QUEUE if self._options.limits else 0.01, float(seconds))

    async def _tidy(self) -> None:
        """Let jobs of lost workers run again, and update the gauges if metrics are on. Raises `psycopg.Error`."""
        ((recovered,),) = await self._queue.query("select rowcall.recover_jobs(%s::float8)", GRACE)
        if recovered:
            log.warning("%d jobs wait again, as their workers were lost", recovered)
        if self._counts:
            rows = await self._queue.query("select queue, state, jobs from rowcall.count_jobs()")
            self.gauges = [("rowcall_jobs", {"queue": queue, "state": state}, jobs) for queue, state, jobs in rows]

    async def _warn_of_unserved_jobs(self) -> None:
        """Log the endpoints and queues whose jobs wait because no service runs them. Of all workers, one logs each of
        them, once an hour. Raises `psycopg.Error`."""
        queues = list(self._options.queues) or None
        sql = "select endpoint, queue, jobs from rowcall.report_unserved_jobs(%s::text[], %s::text[])"
        for endpoint, queue, jobs in await self._queue.query(sql, self._names, queues):
            log.warning(
                "%d jobs of %.200r in the queue %.200r wait for more than a minute, and no service runs them: no "
                "endpoint with `job` or `schedule` has this name, or no service takes jobs of this queue (Jobs:Queues)",
                *(jobs, endpoint, queue),
            )

    async def _remove(self, most: int) -> int:
        """Remove up to `most` old jobs, and return how many were removed. Raises `psycopg.Error`."""
        sql = "select rowcall.remove_finished_jobs(%s::float8, %s)"
        return await self._queue.remove(sql, self._options.retention, most)

    # --- one job -----------------------------------------------------------------------------------------------------

    async def _run_job(self, job: Job) -> None:
        """Run a job and store its outcome. Errors are logged."""
        try:
            await self._attempt(job)
        except asyncio.CancelledError:
            raise
        except psycopg.Error as error:
            log.error("job %s of %s: its outcome cannot be stored: %s", job.id, job.endpoint, str(error).strip())
        except Exception:
            log.exception("job %s of %s", job.id, job.endpoint)
        finally:
            if self._running.get(job.id) is job:
                del self._running[job.id]
            if self._more or job.has_key or self._options.limits:
                self._wake.set()

    async def _attempt(self, job: Job) -> None:
        """Run one attempt. If it has failed, store the failure, or return the job to the queue if the service has
        interrupted it. Raises `psycopg.Error`.
        """
        jobs = self._jobs
        attempt = await run_attempt(job, jobs, self._auth, self._start_steps)
        if attempt.settled:
            self._count(job.endpoint, "completed")
            return
        if job.interruption is not None:
            await self._give_back(job, job.interruption)
            return
        if job.cancelled.is_set():
            await self._fail(job, "it was cancelled", None, state="cancelled")
            return
        endpoint = jobs.find(job, self._auth.login)
        options = (endpoint and endpoint.options.job) or JobSettings()
        more = attempt.retry and job.number <= options.retries
        delay = self._pause(job.number, options.backoff) if more else None
        log.warning(
            "job %s of %s: attempt %d failed: %s%s", job.id, job.endpoint, job.attempt, attempt.reason,
            "" if delay is None else f"; the next one follows in {delay:.1f} s",
        )  # fmt: skip
        await self._fail(job, attempt.reason, delay)

    async def _give_back(self, job: Job, reason: str) -> None:
        """Return a job to the queue, after a delay, because the service has interrupted its attempt. If its caller
        cancels it during the delay, end it instead. reason: of the interruption. Raises `psycopg.Error`.

        During the delay, the job counts as running and is not in the queue: there, the next job with the same key would
        run before it.
        """
        delay = min(LONGEST_INTERRUPTION, 0.25 * 2.0 ** min(job.interruptions, 10))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await job.cancelled.wait()
        if job.cancelled.is_set() and not self._stopping:
            await self._fail(job, "it was cancelled", None, state="cancelled")
            return
        released = await self._queue.query(
            "select rowcall.release_job(%s::uuid, %s, %s)", job.id, job.attempt, reason[:MOST_MESSAGE]
        )
        if released[0][0]:
            log.warning("job %s of %s was interrupted and runs again: %s", job.id, job.endpoint, reason)

    def _pause(self, attempt: int, backoff: float) -> float:
        """Return the seconds until the next attempt: they double with each one up to the longest pause of the options,
        and vary at random by a quarter. attempt: number of the failed one, from 1. backoff: seconds after the first
        one.
        """
        longest = min(self._options.longest_pause, backoff * 2.0 ** min(attempt - 1, 30))
        return longest * random.uniform(0.75, 1.25)  # noqa: S311 (spreads load, guards nothing)

    async def _fail(self, job: Job, reason: str, delay: float | None, *, state: str = "failed") -> None:
        """Store a failed attempt of a job, and count it. delay: seconds until the next attempt; None: the job ends with
        `state` (`failed` or `cancelled`). Raises `psycopg.Error`.
        """
        await self._queue.query(
            "select rowcall.fail_job(%s::uuid, %s, %s, %s::float8, %s)",
            job.id, job.attempt, reason[:MOST_MESSAGE], delay, state,
        )  # fmt: skip
        self._count(job.endpoint, state if delay is None else "retried")
        # Nothing notifies workers of the next attempt, so this one has to look when it is due.
        self._due = 0.0
        self._wake.set()
