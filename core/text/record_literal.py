"""PostgreSQL record literals from attribute texts: `("4","cm",)`."""

from __future__ import annotations

from collections.abc import Iterable


def literal(values: Iterable[str | None]) -> str:
    """NULL is nothing between the commas, so that `""` stays an empty text."""
    return f"({','.join('' if value is None else _quote(value) for value in values)})"


def _quote(text: str) -> str:
    doubled = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'
