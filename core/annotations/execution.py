"""Annotations about running the routine: command_timeout, buffer_rows."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line
from rowcall.core.interval import parse_interval


def _timeout(draft: Draft, line: Line) -> None:
    """Reads one word only. A bad one also drops an earlier timeout (reference 01, 5.4)."""
    seconds = parse_interval(line.arguments[0])
    draft.set(timeout=seconds)
    if seconds is None:
        raise BadValueError(f"'{line.arguments[0]}' is not an interval; the global timeout applies")


def _assign_timeout(draft: Draft, value: str) -> None:
    seconds = parse_interval(value)
    if seconds is None:
        raise BadValueError(f"'{value}' is not an interval")
    draft.set(timeout=seconds)


def _buffer_rows(draft: Draft, line: Line) -> None:
    _assign_buffer_rows(draft, line.arguments[0])


def _assign_buffer_rows(draft: Draft, value: str) -> None:
    if not (value.isascii() and value.isdecimal() and len(value) < 10):
        raise BadValueError(f"'{value}' is not a number of rows")
    draft.set(buffer_rows=int(value))


ANNOTATIONS = (
    Annotation(
        name="timeout",
        aliases=("command_timeout", "timeout"),
        syntax="timeout <interval>",
        description="How long the routine may run. In the form `timeout = <interval>` the interval may contain blanks.",
        apply=_timeout,
        assign=_assign_timeout,
        minimum_words=2,
    ),
    Annotation(
        name="buffer_rows",
        aliases=("buffer_rows", "buffer"),
        syntax="buffer_rows <number>",
        description="Rows gathered before they are sent: 0 sends each row, 1 the whole result at once.",
        apply=_buffer_rows,
        assign=_assign_buffer_rows,
        minimum_words=2,
    ),
)
