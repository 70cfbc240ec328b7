"""Patterns for paths of files: one language for all keys that select files by pattern (sql-files-3).

`*` matches any text, including slashes. If the pattern contains `**`, `*` does not match a slash, `**` does, and `**/`
also matches no folder at all. In a pattern that begins with `*.`, this `*` matches at least one character. `?` matches
any one character. Case does not matter. The pattern has to match the whole path.
"""

from __future__ import annotations

import re
from functools import lru_cache

_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")


def matches(path: str, pattern: str) -> bool:
    """Return whether `path` (with forward slashes) matches. An empty path or pattern never matches."""
    return bool(path) and bool(pattern) and _compile_pattern(pattern).fullmatch(path) is not None


def has_wildcard(pattern: str) -> bool:
    return "*" in pattern or "?" in pattern


def base_folder(pattern: str) -> str:
    """Return the folder before the first wildcard, or the folder of the file that a pattern without wildcards names. It
    is spelled as in the pattern and without a slash at its end; `.` if there is no folder."""
    wildcards = [position for sign in "*?" if (position := pattern.find(sign)) >= 0]
    before = pattern[: min(wildcards)] if wildcards else pattern
    folder, slash, _ = before.rpartition("/")
    return folder or ("/" if slash else ".")


def is_recursive(pattern: str) -> bool:
    """Return whether the pattern contains `**`, so that files are found at any depth."""
    return "**" in pattern


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    deep = "**" in pattern
    pieces = []
    for position, piece in enumerate(_PIECE.findall(pattern)):
        if piece == "**/":
            pieces.append("(?:.*/)?")
        elif piece == "**":
            pieces.append(".*")
        elif piece == "*":
            # `*.sql` matches only names with at least one character before the dot.
            some = "+" if position == 0 and pattern.startswith("*.") else "*"
            pieces.append(f"[^/]{some}" if deep else f".{some}")
        elif piece == "?":
            pieces.append(".")
        else:
            pieces.append(re.escape(piece))
    return re.compile("".join(pieces), re.IGNORECASE | re.DOTALL)
