"""Annotations about operations on tables and views: allow_unfiltered."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, assigned_flag, flag

ANNOTATIONS = (
    Annotation(
        name="allow_unfiltered",
        aliases=("allow_unfiltered",),
        syntax="allow_unfiltered",
        description="On a table: a delete without columns removes all rows. Without this line it is refused.",
        apply=flag("allow_unfiltered"),
        assign=assigned_flag("allow_unfiltered"),
    ),
)
