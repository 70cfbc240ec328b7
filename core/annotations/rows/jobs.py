"""Annotations about work that runs later: job, schedule."""

from __future__ import annotations

import re
from typing import Any

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, keyword_form, rest_of
from rowcall.core.endpoint.capabilities import Job, Schedule
from rowcall.core.jobs.schedule import ScheduleError, check_schedule
from rowcall.core.text.interval import parse_interval

_WORDS = ("queue", "retries", "backoff", "timeout", "priority", "unique", "serial", "concurrency")
MOST_RETRIES = 1_000_000
MOST_AT_ONCE = 1_000_000
_NUMBER = re.compile(r"-?[0-9]{1,7}")


def _assign_job(draft: Draft, value: str) -> None:
    """Apply `queue reports retries 5 backoff 10s timeout 1h unique by month priority 2`, in any order. Raises
    `BadValueError`."""
    words = value.replace(",", " ").split()
    changes: dict[str, Any] = {}
    while words:
        word = words.pop(0).lower()
        end = next((index for index, other in enumerate(words) if other.lower() in _WORDS), len(words))
        argument, words = words[:end], words[end:]
        change = _change(word, argument)
        if "serial_by" in change and "serial_by" in changes:
            raise BadValueError("'serial by' and 'concurrency' limit the same jobs: write one of them, once")
        changes |= change
    timeout = changes.pop("timeout", None)
    if timeout is not None:
        draft.set(timeout=timeout)
    draft.set(job=Job(**changes))


def _change(word: str, words: list[str]) -> dict[str, object]:
    """Return the fields of `Job` that a word of the annotation sets, by name. `timeout` is in the result too, although
    it is an option of the endpoint and no field of `Job`.

    words: those behind the word. Raises `BadValueError` for another word, or an invalid value.
    """
    argument = " ".join(words)
    lower = [other.lower() for other in words]
    number = _number(argument)
    if word == "queue" and len(words) == 1 and len(argument) <= 63:
        return {"queue": argument}
    if word == "retries" and number is not None and 0 <= number <= MOST_RETRIES:
        return {"retries": number}
    if word == "priority" and number is not None and abs(number) <= MOST_RETRIES:
        return {"priority": number}
    if word == "unique":
        return {"unique_by": tuple(words[1:] if lower[:1] == ["by"] else words)}
    if word == "serial" and lower[:1] == ["by"] and words[1:]:
        return {"serial_by": tuple(words[1:])}
    if word == "concurrency" and lower[1:2] == ["per"] and words[2:] and _is_limit(words[0]):
        return {"serial_by": tuple(words[2:]), "serial_limit": int(words[0])}
    seconds = parse_interval(argument) if word in ("backoff", "timeout") else None
    if seconds is not None:
        return {word: seconds}
    raise BadValueError(
        f"'{word} {argument}'".replace(" '", "'")
        + " is none of queue <name>, retries <number>, backoff <interval>, timeout <interval>, priority <number>, "
        "unique by <parameter>, ..., serial by <parameter>, ..., concurrency <number> per <parameter>, ..."
    )


def _number(text: str) -> int | None:
    """Return the whole number that a text is, of at most seven digits; None: it is another text."""
    return int(text) if _NUMBER.fullmatch(text) else None


def _is_limit(word: str) -> bool:
    """Return whether a word is a number from 1 to `MOST_AT_ONCE`."""
    return 0 < (_number(word) or 0) <= MOST_AT_ONCE


_SCHEDULE = re.compile(
    r"""(?:'(?P<single>[^']+)'|"(?P<double>[^"]+)"|(?P<bare>@\w+|(?:\S+\s+){4}\S+))(?P<words>(?:\s+.*)?)"""
)


def _assign_schedule(draft: Draft, value: str) -> None:
    """Apply `'0 3 * * *' timezone Europe/Berlin if missed run overlap skip`. The expression may be without quotes.
    Raises `BadValueError`, also for a schedule that is never due."""
    match = _SCHEDULE.fullmatch(value.strip())
    if match is None:
        raise BadValueError(f"'{value}' is no cron expression, such as '*/5 * * * *'")
    words = match["words"].split()
    changes: dict[str, Any] = {}
    while words:
        first = [word.lower() for word in words[:3]]
        if first[:1] == ["timezone"] and len(words) > 1:
            changes["time_zone"], words = words[1], words[2:]
        elif first[:2] == ["if", "missed"] and first[2:] in (["run"], ["skip"]):
            changes["missed"], words = first[2] == "run", words[3:]
        elif first[:1] == ["overlap"] and first[1:2] in (["run"], ["skip"]):
            changes["overlap"], words = first[1] == "run", words[2:]
        else:
            raise BadValueError(f"'{' '.join(words)}' is none of timezone <zone>, if missed run|skip, overlap run|skip")
    expression = " ".join((match["single"] or match["double"] or match["bare"]).split())
    schedule = Schedule(expression, **changes)
    try:
        check_schedule(schedule)
    except ScheduleError as error:
        raise BadValueError(str(error)) from None
    draft.set(schedule=schedule)


ANNOTATIONS = (
    Annotation(
        name="schedule",
        aliases=("schedule",),
        syntax="schedule <cron> [timezone <zone>] [if missed run|skip] [overlap run|skip]",
        description="A job calls the routine at the times of a cron expression, once for all hosts. Objects with only "
        "this line have no path. `if missed run` makes up for the last time at which no service ran; `overlap run` "
        "begins although the former job has not ended.",
        apply=keyword_form(_assign_schedule, rest_of),
        assign=_assign_schedule,
        minimum_words=2,
    ),
    Annotation(
        name="job",
        aliases=("job",),
        syntax="job [queue <name>] [retries <number>] [backoff <interval>] [timeout <interval>] [priority <number>] "
        "[unique by <parameter>] [serial by <parameter> | concurrency <number> per <parameter>]",
        description="The endpoint answers 202 at once with the address of a job, and a worker of any host calls the "
        "routine with the validated arguments and the claims of the caller. Failed attempts are repeated after growing "
        "times. With `unique by`, a caller has one unfinished job for equal values; with `serial by`, jobs with equal "
        "values run one after another; with `concurrency 3 per`, three at a time.",
        apply=keyword_form(_assign_job),
        assign=_assign_job,
    ),
)
