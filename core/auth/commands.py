"""SQL of the configuration with positional parameters, all of them optional: how many does it take?"""

from __future__ import annotations

import re

# What may hold a `$1` that is none: strings, identifiers, dollar quotes, comments.
_TOKENS = re.compile(
    r"""
    [eE]'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*"
    | --[^\n]* | /\*.*?\*/ | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$ | (?<!\w)\$(?P<number>\d+)
    """,
    re.VERBOSE | re.DOTALL,
)


def placeholder_count(sql: str) -> int:
    """The highest `$n`, however often it occurs (reference 04, pitfall 18)."""
    numbers = (int(match["number"]) for match in _TOKENS.finditer(sql) if match["number"])
    return max(numbers, default=0)
