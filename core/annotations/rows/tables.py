"""Annotations about operations on tables and views: version_column, allow_unfiltered."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, BadValueError, Draft, Line, assigned_flag, flag


def _version_column(draft: Draft, line: Line) -> None:
    """Set the version column to the last word, also of `version column <column>`."""
    _assign_version_column(draft, line.words[-1])


def _assign_version_column(draft: Draft, value: str) -> None:
    if not value or " " in value:
        raise BadValueError(f"'{value}' is no name of a column")
    draft.set(version_column=value)


ANNOTATIONS = (
    Annotation(
        name="version_column",
        aliases=("version_column",),
        syntax="version_column <column>",
        description="Optimistic locking: reading one row sends this column as `ETag`, and writing needs `If-Match` "
        "with it; of a routine, the parameter of this name gets the version. Also written `version column <column>`.",
        apply=_version_column,
        assign=_assign_version_column,
        minimum_words=2,
        maximum_words=3,
        phrase="version column",
    ),
    Annotation(
        name="allow_unfiltered",
        aliases=("allow_unfiltered",),
        syntax="allow_unfiltered",
        description="On a table: a delete without columns removes all rows. Without this line it is refused.",
        apply=flag("allow_unfiltered"),
        assign=assigned_flag("allow_unfiltered"),
    ),
)
