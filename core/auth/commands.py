"""SQL of the configuration with positional parameters, all of them optional."""

from __future__ import annotations

import re
from collections.abc import Mapping

VALID = 3
"""Number of the parameter of a challenge command that is true if the password matches the stored one."""

# Tokens in which `$1` is not a parameter: strings, identifiers, dollar quotes, comments.
_TOKENS = re.compile(
    r"""
    [eE]'(?:\\.|''|[^'\\])*' | '(?:''|[^'])*' | "(?:""|[^"])*"
    | --[^\n]* | /\*.*?\*/ | \$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$ | (?<!\w)\$(?P<number>\d+)
    """,
    re.VERBOSE | re.DOTALL,
)


def number_placeholders(sql: str, types: Mapping[int, str] | None = None) -> tuple[str, tuple[int, ...]]:
    """Return the SQL with its `$n` numbered without gaps, and for each parameter the number of its value, from 1.

    For a gap, PostgreSQL could not infer the type. A value may occur any number of times (sign-in-21, uploads-21).

    types: of the values, by their numbers in `sql`; other values are text. With an empty type, or None for all of them,
    PostgreSQL infers the type, which it cannot for `concat($1)`.
    """
    new_numbers: dict[int, int] = {}

    def renumber(match: re.Match[str]) -> str:
        if not match["number"]:
            return match[0]
        number = int(match["number"])
        kind = "" if types is None else types.get(number, "text")
        return f"${new_numbers.setdefault(number, len(new_numbers) + 1)}{kind and f'::{kind}'}"

    return _TOKENS.sub(renumber, sql), tuple(new_numbers)
