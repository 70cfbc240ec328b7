"""Enqueues the jobs of schedules when they are due. Every worker tries; the database lets one of them succeed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from rowcall.core.endpoint.capabilities import Job, Schedule
from rowcall.core.endpoint.endpoint import Endpoint
from rowcall.core.jobs.schedule import due_after, due_before

log = logging.getLogger("rowcall.jobs")

TOLERANCE = timedelta(seconds=60)
"""Delay up to which a time is not missed, as during a restart."""
LONGEST_PAUSE = 30.0
"""Seconds after which the clock is read again, which may have been set."""

Query = Callable[..., Awaitable[list[tuple[Any, ...]]]]
"""Runs a statement, with its parameters as further arguments, and returns its rows."""


class Schedules:
    """The schedules of one schema snapshot. endpoints: those with a schedule, by its name. clock: returns the time, in
    UTC."""

    def __init__(
        self, endpoints: Mapping[str, Endpoint], clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._endpoints = endpoints
        self._clock = clock
        self._next: dict[str, datetime] = {}
        """The next time of each schedule; empty before the first look at the database."""

    def pause(self) -> float:
        """Return the seconds until a schedule is due, at most `LONGEST_PAUSE`."""
        if not self._next:
            return LONGEST_PAUSE
        seconds = (min(self._next.values()) - self._clock()).total_seconds()
        return min(LONGEST_PAUSE, max(0.001, seconds))

    async def enqueue_due(self, query: Query) -> None:
        """Enqueue the jobs that are due. If several times of a schedule have passed, only the last one counts. If it is
        more than `TOLERANCE` ago, its job is enqueued only if the schedule has the option `missed`.

        query: runs a statement and returns its rows; its errors are passed on.
        """
        if not self._endpoints:
            return
        now = self._clock()
        if not self._next:
            await self._begin(query, now)
        for name, endpoint in self._endpoints.items():
            due = self._next[name]
            if due > now:
                continue
            schedule = _schedule(endpoint)
            # After a long pause of this process, only the last time counts.
            due = due_before(schedule, now) or due
            if schedule.missed or now - due <= TOLERANCE:
                await _enqueue(query, name, endpoint, due)
            self._next[name] = next(due_after(schedule, now))

    async def _begin(self, query: Query, now: datetime) -> None:
        """Determine when each schedule is due next, and enqueue jobs that were due while no service ran: those of
        schedules with the option `missed`, and those that were due at most `TOLERANCE` ago. query: as for
        `enqueue_due`."""
        former = {name: due_before(_schedule(endpoint), now) for name, endpoint in self._endpoints.items()}
        rows = await query(
            "select endpoint, due from rowcall.last_due(%s::text[], %s::timestamptz[])",
            list(former), list(former.values()),
        )  # fmt: skip
        last: dict[str, datetime] = dict(rows)
        for name, endpoint in self._endpoints.items():
            schedule, due = _schedule(endpoint), former[name]
            if due is not None and last[name] < due and (schedule.missed or now - due <= TOLERANCE):
                log.info("%s: the job that was due at %s is enqueued now", name, due)
                await _enqueue(query, name, endpoint, due)
        self._next = {name: next(due_after(_schedule(item), now)) for name, item in self._endpoints.items()}


async def _enqueue(query: Query, name: str, endpoint: Endpoint, due: datetime) -> None:
    """Enqueue the job of a schedule for the time `due`, unless another worker has done so. query: as for
    `Schedules.enqueue_due`. name: of the schedule.
    """
    schedule, job = _schedule(endpoint), endpoint.options.job or Job()
    await query(
        "select rowcall.enqueue_due(%s, %s, %s, %s, %s)",
        name, due, job.queue, job.priority, schedule.overlap,
    )  # fmt: skip


def _schedule(endpoint: Endpoint) -> Schedule:
    """Return the schedule of an endpoint, which must have one."""
    schedule = endpoint.options.schedule
    assert schedule is not None  # noqa: S101 (only such endpoints are given)
    return schedule
