"""`{NAME}`, `{!NAME}` and `{!NAME:fallback}` in configuration values (configuration-6, configuration-7).

Resolution happens when a value is read, not when it is loaded: a required variable that only a disabled feature
mentions must not stop the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_PLACEHOLDER = re.compile(r"\{(!?)([^\s{}:!]+)(?::([^}]*))?\}")


class NoSubstitution(dict[str, str]):
    """The environment where `Config:ParseEnvironmentVariables` is off: what the user has written stays as it is."""


class MissingVariable(Exception):
    """A `{!NAME}` without fallback names a variable that is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the environment variable {name} is not set (asked for as {{!{name}}})")
        self.name = name


def resolve(text: str, variables: Mapping[str, str]) -> str:
    """Replace the placeholders of `text` in one pass; substituted text is not looked at again.

    Names are case-sensitive. An unknown `{NAME}` stays as it is, and `{NAME:text}` was never one.
    Raises MissingVariable.
    """

    return _replaced(text, variables, _refuse)


def resolve_what_is_set(text: str, variables: Mapping[str, str]) -> str:
    """Like `resolve`, for showing and checking, which never fail: an unset `{!NAME}` stays as it is."""
    return _replaced(text, variables, lambda name: f"{{!{name}}}")


def _replaced(text: str, variables: Mapping[str, str], missing: Callable[[str], str]) -> str:
    """missing: what stands for a `{!NAME}` whose variable is not set."""

    def replacement(match: re.Match[str]) -> str:
        required, name, fallback = match.groups()
        if fallback is not None and not required:
            return match[0]
        value = variables.get(name)
        if value is not None:
            return value
        if not required:
            return match[0]
        return missing(name) if fallback is None else str(fallback)

    return text if "{" not in text or isinstance(variables, NoSubstitution) else _PLACEHOLDER.sub(replacement, text)


def _refuse(name: str) -> str:
    raise MissingVariable(name)


def sole_placeholder(text: str) -> tuple[str, str | None] | None:
    """`(NAME, fallback)` when `text` is one `{NAME}` or `{!NAME:fallback}` and nothing else."""
    match = _PLACEHOLDER.fullmatch(text)
    return None if match is None or (match[3] is not None and not match[1]) else (match[2], match[3])


def has_placeholder(text: str) -> bool:
    """True when a `{NAME}` is left in `text`: a typed read then uses the key's default."""
    return any(match[3] is None for match in _PLACEHOLDER.finditer(text))
