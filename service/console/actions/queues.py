"""Retry and cancel jobs, run schedules at once, and deliver webhooks again: in the database, so for all hosts."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from functools import partial

from rowcall.core.endpoint.capabilities import Job
from rowcall.core.errors.problems import Problem
from rowcall.service.console.actions.action import Action, Result, Values, uuid_of
from rowcall.service.console.database import Database
from rowcall.service.console.sources import Sources

_MISSING_JOB = "there is no such job (any more)"
_ENDED = ("done", "failed", "cancelled")


def queue_actions(sources: Sources, database: Database) -> Iterator[Action]:
    """Yield the actions of jobs and schedules, and those of webhooks, if these are on."""
    if sources.options.jobs is not None:
        retry, cancel = partial(_retry_job, database), partial(_cancel_job, database)
        yield Action("retry-job", "Runs a job again that has failed or was cancelled.", retry, ("id",))
        yield Action("cancel-job", "Cancels a job that waits or runs.", cancel, ("id",))
        run = partial(_run_schedule, sources, database)
        yield Action("run-schedule", "Enqueues the job of a schedule at once.", run, ("endpoint",))
    if sources.options.deliveries is not None:
        replay, retry = partial(_replay, database), partial(_retry_delivery, database)
        meaning = "Delivers messages of a topic again, also those that were delivered, from a time on."
        yield Action("replay-webhooks", meaning, replay, ("topic", "since"), ("until", "subscriber"))
        meaning = "Delivers a message again to a subscriber for whom it was given up."
        yield Action("retry-delivery", meaning, retry, ("message", "subscriber"))


def _retry_job(database: Database, values: Values) -> Result:
    job = uuid_of(values, "id")
    state = database.change("select rowcall.retry_job(%s::uuid)", job)
    if state is None:
        raise Problem(404, _MISSING_JOB)
    if state == "duplicate":
        raise Problem(409, "another job with the same unique key waits or runs")
    if state != "waiting":
        raise Problem(409, f"the job is {state}; only failed and cancelled jobs can be retried")
    return {"id": job, "state": state}


def _cancel_job(database: Database, values: Values) -> Result:
    job = uuid_of(values, "id")
    if database.change("select exists (select from rowcall.show_job(%s::uuid))", job) is not True:
        raise Problem(404, _MISSING_JOB)
    state = database.change("select rowcall.cancel_job(%s::uuid)", job)
    if state in _ENDED and state != "cancelled":
        raise Problem(409, f"the job is {state} already")
    return {"id": job, "state": state}


def _run_schedule(sources: Sources, database: Database, values: Values) -> Result:
    name = values["endpoint"]
    endpoint = next((item for item in sources.snapshot().endpoints if item.name == name), None)
    schedule = None if endpoint is None else endpoint.options.schedule
    if endpoint is None or schedule is None:
        raise Problem(404, f"there is no schedule {name[:200]!r}")
    job = endpoint.options.job or Job()
    number = database.change(
        "select rowcall.run_schedule(%s, %s, %s, %s)::text", name, job.queue, job.priority, schedule.overlap
    )
    return {"endpoint": name, "job": number}


def _replay(database: Database, values: Values) -> Result:
    since, until = _time(values, "since"), _time(values, "until")
    count = database.change(
        "select rowcall.replay_webhooks(%s, %s::timestamptz, coalesce(%s::timestamptz, 'infinity'), %s)",
        values["topic"],
        since,
        until,
        values.get("subscriber") or None,
    )
    return {"replayed": count}


def _retry_delivery(database: Database, values: Values) -> Result:
    message, subscriber = uuid_of(values, "message"), values["subscriber"]
    state = database.change("select rowcall.retry_delivery(%s::uuid, %s)", message, subscriber)
    if state is None:
        raise Problem(404, "there is no such delivery (any more)")
    if state != "waiting":
        raise Problem(409, f"the delivery is {state}; only dead deliveries can be retried")
    return {"message": message, "subscriber": subscriber, "state": state}


def _time(values: Values, name: str) -> datetime.datetime | None:
    """Return the time in the parameter `name`; without an offset, the text is in UTC. None: the parameter is missing or
    empty. Raises `Problem` 400 if it is no time."""
    text = values.get(name)
    if not text:
        return None
    try:
        time = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise Problem(400, f"{name}: {text[:50]!r} is no time such as 2026-01-31T12:00:00Z") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=datetime.UTC)
