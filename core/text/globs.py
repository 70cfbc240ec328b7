"""Patterns for files: one small language for everything that names files by pattern (sql-files-3).

`*` is any text, slashes too, unless the pattern has a `**` somewhere: then `*` stays within a folder and `**` does not,
and `**/` is also no folder at all. `?` is any one character. Case does not matter, and the whole path has to fit.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")


def matches(path: str, pattern: str) -> bool:
    """`path` with forward slashes. An empty path or pattern never fits."""
    return bool(path) and bool(pattern) and _compiled(pattern).fullmatch(path) is not None


def has_wildcard(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def base_folder(pattern: str) -> str:
    """The folder in front of the first wildcard, spelled as in the pattern; `.` where there is none."""
    wildcards = [position for sign in "*?" if (position := pattern.find(sign)) >= 0]
    before = pattern[: min(wildcards)] if wildcards else pattern
    folder, slash, _ = before.rpartition("/")
    return folder or ("/" if slash else ".")


def is_recursive(pattern: str) -> bool:
    return "**" in pattern


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    deep = "**" in pattern
    pieces = []
    for position, piece in enumerate(_PIECE.findall(pattern)):
        if piece == "**/":
            pieces.append("(?:.*/)?")
        elif piece == "**":
            pieces.append(".*")
        elif piece == "*":
            # `*.sql` means a name with something in front of the dot.
            some = "+" if position == 0 and pattern.startswith("*.") else "*"
            pieces.append(f"[^/]{some}" if deep else f".{some}")
        elif piece == "?":
            pieces.append(".")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)
