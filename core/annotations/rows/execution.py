"""Annotations about running the routine: time limits, connection, errors, and secrecy of values in logs."""

from __future__ import annotations

from rowcall.core.annotations.declaration import (
    Annotation,
    Apply,
    Assign,
    BadValueError,
    Draft,
    Line,
    assigned_flag,
    first_word,
    flag,
    keyword_form,
)
from rowcall.core.endpoint.capabilities import Reading
from rowcall.core.text.interval import parse_interval


def _timeout(draft: Draft, line: Line) -> None:
    """Set the timeout. `2 minutes` is two minutes, not two seconds. If only the first word is an interval, it applies,
    and the other words give a warning.

    An invalid value removes an earlier timeout, and raises `BadValueError` (comments-15).
    """
    whole = parse_interval(line.joined)
    seconds = parse_interval(line.arguments[0]) if whole is None else whole
    draft.set(timeout=seconds)
    if seconds is None:
        raise BadValueError(f"'{line.joined}' is not an interval; the global timeout applies")
    if whole is None:
        draft.warn(line, f"only '{line.arguments[0]}' is read; {' '.join(line.arguments[1:])!r} is ignored")


def _assign_timeout(draft: Draft, value: str) -> None:
    seconds = parse_interval(value)
    if seconds is None:
        raise BadValueError(f"'{value}' is not an interval")
    draft.set(timeout=seconds)


def _assign_deadline(draft: Draft, value: str) -> None:
    seconds = parse_interval(value)
    if seconds is None:
        raise BadValueError(f"'{value}' is not an interval; Service:Deadlines:Default holds")
    draft.set(deadline=seconds)


def _assign_read_from(draft: Draft, value: str) -> None:
    """Apply `replica within 5 seconds`. Raises `BadValueError` for another form."""
    place, _, limit = value.partition(" ")
    word, _, interval = limit.strip().partition(" ")
    seconds = parse_interval(interval) if word.lower() == "within" else None
    if place.lower() not in ("primary", "replica") or (limit and (seconds is None or place.lower() == "primary")):
        raise BadValueError(f"'{value}' is none of: primary, replica, replica within 5 seconds")
    draft.set(reading=Reading(place.lower() == "replica", seconds))


def _assign_buffer_rows(draft: Draft, value: str) -> None:
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise BadValueError(f"'{value}' is not a number of rows")
    draft.set(buffer_rows=int(value))


def _name(option: str) -> Apply:
    """Return a function that sets an option to everything after the keyword, as written. option: field of `Options`."""

    def apply(draft: Draft, line: Line) -> None:
        draft.set(**{option: line.rest})

    return apply


def _assigned_name(option: str) -> Assign:
    """Return a function that applies `word = name`, and raises `BadValueError` if the name is empty. option: field of
    `Options`."""

    def assign(draft: Draft, value: str) -> None:
        if not value:
            raise BadValueError("a name is missing after the =")
        draft.set(**{option: value})

    return assign


ANNOTATIONS = (
    Annotation(
        name="exclusive_connection",
        aliases=("exclusive_connection",),
        syntax="exclusive_connection",
        description="Each request of this endpoint uses a database connection of its own while it runs, however fast "
        "the routine is. `ConnectionSettings:Pool:Sharing` and `ShareWrites` are the settings for the whole service.",
        apply=flag("exclusive_connection"),
        assign=assigned_flag("exclusive_connection"),
    ),
    Annotation(
        name="timeout",
        aliases=("command_timeout", "timeout"),
        syntax="timeout <interval>",
        description="How long the routine may run. The interval may contain blanks.",
        apply=_timeout,
        assign=_assign_timeout,
        minimum_words=2,
    ),
    Annotation(
        name="deadline",
        aliases=("deadline",),
        syntax="deadline <interval>",
        description="Longest duration of a whole request: waiting, all its statements, and its requests to other "
        "services. After it, the response is 504, and running statements and requests are cancelled. With 0 there is "
        "no limit, regardless of `Service:Deadlines:Default`.",
        apply=keyword_form(_assign_deadline),
        assign=_assign_deadline,
        minimum_words=2,
    ),
    Annotation(
        name="buffer_rows",
        aliases=("buffer_rows", "buffer"),
        syntax="buffer_rows <number>",
        description="Number of rows that are sent together: 0 sends each row at once, 1 the whole result. Without it, "
        "rows are sent as fast as the client takes them, and a small result in one piece.",
        apply=keyword_form(_assign_buffer_rows, first_word),
        assign=_assign_buffer_rows,
        minimum_words=2,
    ),
    Annotation(
        name="security_sensitive",
        aliases=("sensitive", "security", "security_sensitive"),
        syntax="sensitive",
        description="Keeps the values of requests out of logs and of error messages.",
        apply=flag("sensitive"),
    ),
    Annotation(
        name="connection_name",
        aliases=("connection", "connection_name"),
        syntax="connection <name>",
        description="Name in `ConnectionStrings` of the connection on which the routine runs, if "
        "`Service:UseMultipleConnections` allows endpoints to choose. The case of the name does not matter.",
        apply=_name("connection"),
        assign=_assigned_name("connection"),
        minimum_words=2,
    ),
    Annotation(
        name="read_from",
        aliases=("read_from",),
        syntax="read_from primary | read_from replica [within <interval>]",
        description="With `ConnectionSettings:Replicas`: `primary` runs the endpoint on the primary, `replica` on a "
        "replica regardless of the volatility of the routine, `within` only on a replica with at most this delay. "
        "Procedures and uploads always run on the primary.",
        apply=keyword_form(_assign_read_from),
        assign=_assign_read_from,
        minimum_words=2,
    ),
    Annotation(
        name="error_code_policy",
        aliases=("error_code_policy_name", "error_code_policy", "error_code"),
        syntax="error_code_policy <name>",
        description="Policy of `ErrorHandlingOptions:ErrorCodePolicies` that maps errors of the database to statuses. "
        "The default policy does not apply in addition: an error that this policy does not list is 500.",
        apply=_name("error_policy"),
        assign=_assigned_name("error_policy"),
        minimum_words=2,
    ),
    Annotation(
        name="retry_strategy",
        aliases=("retry_strategy_name", "retry_strategy", "retry"),
        syntax="retry_strategy <name>",
        description="Strategy of `CommandRetryOptions:Strategies` that defines which errors are retried, and when. A "
        "procedure that may commit is never retried.",
        apply=_name("retry_strategy"),
        assign=_assigned_name("retry_strategy"),
        minimum_words=2,
    ),
)
