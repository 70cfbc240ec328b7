"""Render a whole result as raw text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUOTED = frozenset(
    (
        *("text", "varchar", "bpchar", "char", "name", "xml", "jsonpath"),
        *("json", "jsonb", "refcursor", "date", "timestamp", "timestamptz"),
    )
)


@dataclass(frozen=True)
class RawColumn:
    name: bytes
    type_name: str
    """`typname` of the type, or of the innermost element of an array."""


def render_raw(
    columns: Sequence[RawColumn],
    rows: Sequence[Sequence[bytes | None]],
    separator: bytes | None,
    new_line: bytes,
    header: bool,
) -> bytes:
    lines = [
        (separator or b"").join(
            _value(value or b"", separator is not None and column.type_name in QUOTED)
            for column, value in zip(columns, row, strict=True)
        )
        for row in rows
    ]
    names = (separator or b"").join(_value(column.name, True) for column in columns) + new_line if header else b""
    return names + new_line.join(lines)


def _value(text: bytes, quoted: bool) -> bytes:
    return b'"' + text.replace(b'"', b'""') + b'"' if quoted else text
