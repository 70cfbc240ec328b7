"""Parse the `.env` file: lines `NAME=value` for variables that the environment does not set (configuration-9)."""

from __future__ import annotations

from rowcall.core.text.lines import lines_of


def parse_env_file(text: str) -> dict[str, str]:
    """Return the variables of `text`, without escapes or interpolation.

    `#` starts a comment line; lines without a name or without `=` are ignored. If a name is repeated, its last value
    counts. Quotes around a value are removed.
    """
    variables = {}
    for line in lines_of(text.removeprefix("\ufeff")):
        name, equals, value = line.strip().partition("=")
        name = name.strip()
        if not equals or not name or name.startswith("#"):
            continue
        variables[name] = _unquote(value.strip())
    return variables


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
