"""Annotations about work that runs later: job."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line
from rowcall.core.endpoint.capabilities import Job
from rowcall.core.text.interval import parse_interval

_WORDS = ("queue", "retries", "backoff", "timeout", "priority")
MOST_RETRIES = 1_000_000


def _job(draft: Draft, line: Line) -> None:
    _assign_job(draft, line.joined)


def _assign_job(draft: Draft, value: str) -> None:
    """Apply `queue reports retries 5 backoff 10s timeout 1h unique by month priority 2`, in any order."""
    before, _, unique = f" {value.replace(',', ' ')} ".partition(" unique ")
    names = unique.split()
    unique_by: tuple[str, ...] | None = None
    tail: list[str] = []
    if " unique " in f" {value.replace(',', ' ')} ":
        if names[:1] == ["by"]:
            names = names[1:]
        end = next((index for index, word in enumerate(names) if word.lower() in _WORDS), len(names))
        unique_by, tail = tuple(names[:end]), names[end:]
    words = [*before.split(), *tail]
    changes: dict[str, object] = {}
    while words:
        word = words.pop(0).lower()
        end = next((index for index, other in enumerate(words) if other.lower() in _WORDS), len(words))
        argument, words = " ".join(words[:end]), words[end:]
        changes |= _change(word, argument)
    timeout = changes.pop("timeout", None)
    if timeout is not None:
        draft.set(timeout=timeout)
    draft.set(job=Job(**changes, unique_by=unique_by))  # type: ignore[arg-type]


def _change(word: str, argument: str) -> dict[str, object]:
    if word == "queue" and argument and " " not in argument and len(argument) <= 63:
        return {"queue": argument}
    if word == "retries" and argument.isascii() and argument.isdigit() and int(argument) <= MOST_RETRIES:
        return {"retries": int(argument)}
    if word == "priority" and argument.removeprefix("-").isdigit() and abs(int(argument)) <= MOST_RETRIES:
        return {"priority": int(argument)}
    seconds = parse_interval(argument) if word in ("backoff", "timeout") else None
    if seconds is not None:
        return {word: seconds}
    raise BadValueError(
        f"'{word} {argument}'".replace(" '", "'")
        + " is none of queue <name>, retries <number>, backoff <interval>, timeout <interval>, priority <number>, "
        "unique by <parameter>, ..."
    )


ANNOTATIONS = (
    Annotation(
        name="job",
        aliases=("job",),
        syntax="job [queue <name>] [retries <number>] [backoff <interval>] [timeout <interval>] [priority <number>] "
        "[unique by <parameter>]",
        description="The endpoint answers 202 at once with the address of a job, and a worker of any host calls the "
        "routine with the validated arguments and the claims of the caller. Failed attempts are repeated after growing "
        "times. With `unique by`, there is one unfinished job for equal values.",
        apply=_job,
        assign=_assign_job,
    ),
)
