"""PostgreSQL record literals from the texts of attributes: `("4","cm",)`."""

from __future__ import annotations

import re
from collections.abc import Iterable


def literal(values: Iterable[str | None]) -> str:
    """Return the record literal. values: texts of the attributes; None, which is NULL, is written as nothing between
    the commas, an empty text as `""`."""
    return f"({','.join('' if value is None else _quote(value) for value in values)})"


def _quote(text: str) -> str:
    doubled = text.replace("\\", "\\\\").replace('"', '""')
    return f'"{doubled}"'


_ATTRIBUTE = re.compile(r'((?:[^(),"\\]|\\.|"(?:[^"\\]|\\.|"")*")*)([,)])', re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]|\\.|"")*)"|\\(.)|([^"\\]+)', re.DOTALL)


def attributes(text: str) -> list[str | None]:
    """Return the texts of the attributes of a record literal, as `literal` or the server writes it; None for NULL.
    Raises ValueError for other texts.

    `()` is one NULL; the server prints a composite without attributes in the same way.
    """
    if not text.startswith("("):
        raise ValueError("not a record")
    result: list[str | None] = []
    position = 1
    while match := _ATTRIBUTE.match(text, position):
        result.append(_unquote(match[1]) if match[1] else None)
        position = match.end()
        if match[2] == ")":
            break
    if position != len(text) or not match:
        raise ValueError("not a record")
    return result


def _unquote(slot: str) -> str:
    return "".join(
        re.sub(r'\\(.)|"(")', lambda piece: piece[1] or piece[2], match[1], flags=re.DOTALL)
        if match[1] is not None
        else match[2] or match[3]
        for match in _PIECE.finditer(slot)
    )
