"""SQL of the configuration with positional parameters, all of them optional: which of them does it take?"""

from __future__ import annotations

import re
from collections.abc import Mapping

VALID = 3
"""Number of the parameter of a challenge command that says if the password is the stored one."""

# What may hold a `$1` that is none: strings, identifiers, dollar quotes, comments.
_TOKENS = re.compile(
    r"""
    [eE]'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*"
    | --[^\n]* | /\*.*?\*/ | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$ | (?<!\w)\$(?P<number>\d+)
    """,
    re.VERBOSE | re.DOTALL,
)


def numbered(sql: str, types: Mapping[int, str] | None = None) -> tuple[str, tuple[int, ...]]:
    """The SQL with its `$n` numbered without gaps, and which value each of them now takes, from 1.

    A gap would be a parameter of which PostgreSQL cannot tell the type; how often a value occurs does not matter
    (sign-in-21, uploads-21). types: of the values, by their numbers in `sql`; the others are text. An empty one, and
    None for all of them: PostgreSQL infers it, which it cannot for `concat($1)`.
    """
    used: dict[int, int] = {}

    def renumber(match: re.Match[str]) -> str:
        if not match["number"]:
            return match[0]
        number = int(match["number"])
        kind = "" if types is None else types.get(number, "text")
        return f"${used.setdefault(number, len(used) + 1)}{kind and f'::{kind}'}"

    return _TOKENS.sub(renumber, sql), tuple(used)
