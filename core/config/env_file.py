"""The `.env` file: `NAME=value` lines that fill gaps in the process environment (configuration-9)."""

from __future__ import annotations


def parse_env_file(text: str) -> dict[str, str]:
    """Read the lines: no escapes, no interpolation. `#` starts a comment line; the last of equal names wins."""
    variables = {}
    for line in text.removeprefix("\ufeff").splitlines():
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
