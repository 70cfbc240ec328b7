"""Annotations about operations on tables and views: require_filter."""

from __future__ import annotations

from rowcall.core.annotations.declaration import Annotation, assigned_flag, flag

ANNOTATIONS = (
    Annotation(
        name="require_filter",
        aliases=("require_filter",),
        syntax="require_filter",
        description="On a table: refuses a delete that names no column and an update that does not name the whole key. "
        "Without this line the one removes every row, and the other changes all rows that fit the part of the key.",
        apply=flag("require_filter"),
        assign=assigned_flag("require_filter"),
    ),
)
