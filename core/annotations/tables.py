"""Annotations about operations on tables and views: allow_unfiltered."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, flag

ANNOTATIONS = (
    Annotation(
        name="allow_unfiltered",
        aliases=("allow_unfiltered",),
        syntax="allow_unfiltered",
        description="On a table: a delete that names no column removes every row, and an update that names a part of "
        "the key, or nothing of it, changes all rows that fit. Without this line both are refused.",
        apply=flag("allow_unfiltered"),
    ),
)
