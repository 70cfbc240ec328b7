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
    """Return the SQL with its placeholders renumbered from `$1` without gaps, in the order of their first use, and for
    each new number the old one: `$5, $2, $5` gives `$1, $2, $1` and (5, 2) (sign-in-21, uploads-21).

    With a gap, PostgreSQL could not infer the type of the unused parameter. types: old number → type to which the
    placeholder is cast; missing: text; empty: no cast. None: no placeholder is cast. Without a cast, PostgreSQL infers
    the type, which it cannot do for `concat($1)`.
    """
    new_numbers: dict[int, int] = {}

    def renumber(match: re.Match[str]) -> str:
        if not match["number"]:
            return match[0]
        number = int(match["number"])
        kind = "" if types is None else types.get(number, "text")
        return f"${new_numbers.setdefault(number, len(new_numbers) + 1)}{kind and f'::{kind}'}"

    return _TOKENS.sub(renumber, sql), tuple(new_numbers)
