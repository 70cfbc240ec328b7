"""Parameters of the console's JSON endpoints."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.errors.problems import Problem


def whole(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    """Return the parameter `name` as a whole number; `default` without it. Raises `Problem` 400 unless it is from 0 to
    `most`.
    """
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdecimal()) or len(text) > 12 or int(text) > most:
        raise Problem(400, f"{name}: {text[:50]!r} is no number from 0 to {most}")
    return int(text)
