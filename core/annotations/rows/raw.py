"""Annotations about raw results: raw, separator, new_line, columns (rendering-36 to rendering-38)."""

from __future__ import annotations

from rowcall.core.annotations.declaration import (
    Annotation,
    Apply,
    Assign,
    BadValueError,
    Draft,
    Line,
    assigned_flag,
    flag,
)
from rowcall.core.annotations.rows.parameters import unescape_or_warn


def _text(option: str) -> Apply:
    """Return a function that sets a text option: `separator ,`. The text is the rest of the line with its blanks and
    commas, in which escapes are decoded; with an invalid escape, it is used as written, with a warning. Without a text,
    the function raises `BadValueError`. option: field of `Options`."""

    def apply(draft: Draft, line: Line) -> None:
        value = line.text.partition(" ")[2]
        if not value:
            raise BadValueError(f"a text is missing; `{line.keyword} =` sets an empty one")
        draft.set(**{option: unescape_or_warn(draft, line, value)})

    return apply


def _assigned_text(option: str) -> Assign:
    """Return a function that applies `separator = ,`. The value is already decoded. option: field of `Options`."""

    def assign(draft: Draft, value: str) -> None:
        draft.set(**{option: value})

    return assign


ANNOTATIONS = (
    Annotation(
        name="raw",
        aliases=("raw", "raw_mode", "raw_results"),
        syntax="raw",
        description="The result as PostgreSQL prints it instead of JSON: the values in sequence, NULL as an empty "
        "text.",
        apply=flag("raw"),
        assign=assigned_flag("raw"),
    ),
    Annotation(
        name="separator",
        aliases=("separator", "raw_separator"),
        syntax="separator <text>",
        description=r"Text between the values of a raw row; texts, dates and JSON are then quoted. Escapes: `\t`, "
        r"`\n`, `\x20`, `\u0020`.",
        apply=_text("separator"),
        assign=_assigned_text("separator"),
    ),
    Annotation(
        name="new_line",
        aliases=("new_line", "raw_new_line"),
        syntax="new_line <text>",
        description=r"Text between raw rows, usually `\n`.",
        apply=_text("new_line"),
        assign=_assigned_text("new_line"),
    ),
    Annotation(
        name="columns",
        aliases=("columns", "names", "column_names"),
        syntax="columns",
        description="A raw result begins with a row of its column names, as in the database.",
        apply=flag("column_names"),
        assign=assigned_flag("column_names"),
    ),
)
