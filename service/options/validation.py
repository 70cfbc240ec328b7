"""Settings → the rules that `validate` may name (reference 01, 10). An unusable rule is skipped, and named."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import regex

from rowcall.core.config import Settings
from rowcall.core.endpoint.validation import BUILT_IN, Rule, RuleType, compiled

log = logging.getLogger("rowcall.client")

_RULES = "ValidationOptions:Rules"
_TYPES = {type.value.casefold(): type for type in RuleType}
_NUMBERS = {RuleType.MIN_LENGTH: "MinLength", RuleType.MAX_LENGTH: "MaxLength"}


class _UnusableError(Exception):
    """Why a rule is skipped."""


def validation_rules(settings: Settings) -> Mapping[str, Rule]:
    """Configured rules take the place of the built-in ones; where none can be used, those stay."""
    configured = settings.value(_RULES) if settings.flag("ValidationOptions:Enabled") else None
    rules = dict(_usable(configured)) if isinstance(configured, Mapping) else {}
    return rules or BUILT_IN


def _usable(configured: Mapping[str, Any]) -> Iterator[tuple[str, Rule]]:
    for name, entry in configured.items():
        try:
            yield name, _rule(name, entry)
        except _UnusableError as error:
            log.warning("%s:%s is skipped: %s", _RULES, name, error)


def _rule(name: str, entry: Any) -> Rule:
    values = {key.casefold(): value for key, value in entry.items()} if isinstance(entry, Mapping) else {}
    kind = _TYPES.get(str(values.get("type") or "").casefold())
    if kind is None:
        raise _UnusableError(f"its Type is none of {', '.join(one.value for one in RuleType)}")
    status = _number(values, "StatusCode")
    return Rule(
        name,
        kind,
        str(values.get("message") or "Validation failed for parameter '{0}'"),
        400 if status is None else _status(status),
        _pattern(values) if kind is RuleType.REGEX else "",
        _length(values, _NUMBERS[kind]) if kind in _NUMBERS else 0,
    )


def _pattern(values: Mapping[str, Any]) -> str:
    pattern = values.get("pattern")
    if not pattern:
        raise _UnusableError("a Regex needs a Pattern")
    try:
        compiled(str(pattern))
    except regex.error as error:
        raise _UnusableError(f"its Pattern is no regular expression: {error}") from None
    return str(pattern)


def _length(values: Mapping[str, Any], name: str) -> int:
    length = _number(values, name)
    if length is None:
        raise _UnusableError(f"it needs {name}")
    return length


def _status(number: int) -> int:
    if not 400 <= number <= 599:
        raise _UnusableError(f"its StatusCode is not a status from 400 to 599: {number}")
    return number


def _number(values: Mapping[str, Any], name: str) -> int | None:
    text = values.get(name.casefold())
    if text is None or text == "":
        return None
    try:
        return int(str(text))
    except ValueError:
        raise _UnusableError(f"its {name} is not a whole number: {text!r}") from None
