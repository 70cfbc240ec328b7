"""Render a whole result as the body of a response."""

from __future__ import annotations

from dataclasses import dataclass

from .types import Array, Type
from .values import json_string, render_value


@dataclass(frozen=True)
class Column:
    key: str
    kind: Type


def render_rows(columns: list[Column], rows: list[list[str | None]], *, is_set: bool = True, named: bool = True) -> str:
    """The rows path: `[…]` around a set, `{…}` around a row with names."""
    bodies = [_render_row(columns, row) if named else render_value(columns[0].kind, row[0]) for row in rows]
    return "[" + ",".join(bodies) + "]" if is_set else bodies[0]


def _render_row(columns: list[Column], row: list[str | None]) -> str:
    members = [
        f"{json_string(column.key)}:{render_value(column.kind, text)}"
        for column, text in zip(columns, row, strict=True)
    ]
    return "{" + ",".join(members) + "}"


def render_scalar(kind: Type, text: str) -> str:
    """The scalar path for everything but bytea."""
    return render_value(kind, text) if isinstance(kind, Array) else text
