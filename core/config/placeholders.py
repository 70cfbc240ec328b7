"""Resolve `{NAME}`, `{!NAME}` and `{!NAME:fallback}` in configuration values (configuration-6, configuration-7).

Placeholders are resolved when a value is read, not when it is loaded: a required variable that only a disabled feature
uses must not prevent the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_PLACEHOLDER = re.compile(r"\{(!?)([^\s{}:!]+)(?::([^}]*))?\}")


class NoSubstitution(dict[str, str]):
    """The variables if `Config:ParseEnvironmentVariables` is off: placeholders in values of the user stay unchanged."""


class MissingVariable(Exception):
    """A `{!NAME}` without fallback names a variable that is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the environment variable {name} is not set (required by {{!{name}}})")
        self.name = name


def resolve(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with its placeholders replaced in one pass; substituted text is not scanned again.

    Names are case-sensitive. A `{NAME}` that is not set stays unchanged, and `{NAME:text}` is not a placeholder.
    variables: values by name. Raises MissingVariable for a `{!NAME}` that is not set.
    """

    return _replace_placeholders(text, variables, _refuse)


def resolve_what_is_set(text: str, variables: Mapping[str, str]) -> str:
    """Return `text` with its placeholders replaced as far as their variables are set, for output and checks: a `{NAME}`
    or `{!NAME}` that is not set stays unchanged. variables: values by name."""
    return _replace_placeholders(text, variables, lambda name: f"{{!{name}}}")


def escape_placeholders(text: str) -> str:
    """Return the text for which `resolve` returns `text` itself, whatever variables are set. A text without
    placeholders is returned unchanged.
    """
    return text.replace("{", _BRACE) if _PLACEHOLDER.search(text) else text


_BRACE = "{!=:{}"
"""A placeholder for an opening brace: its fallback, as no name of a variable has an equals sign."""


def _replace_placeholders(text: str, variables: Mapping[str, str], missing: Callable[[str], str]) -> str:
    """Return `text` with its placeholders replaced. variables: values by name. missing: returns the replacement of a
    `{!NAME}` whose variable is not set, from its name."""

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
    """Return `(NAME, fallback)` if `text` is exactly one `{NAME}`, `{!NAME}` or `{!NAME:fallback}`, else None."""
    match = _PLACEHOLDER.fullmatch(text)
    return None if match is None or (match[3] is not None and not match[1]) else (match[2], match[3])


def has_placeholder(text: str) -> bool:
    """Return whether `text`, after resolution, still contains a `{NAME}` or `{!NAME}`; a typed read then uses the
    default of the key."""
    return any(match[3] is None for match in _PLACEHOLDER.finditer(text))
