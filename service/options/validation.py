"""Read `ValidationOptions`: the rules that `validate` may name (execution-7, execution-8).

An unusable rule is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import regex

from rowcall.core.config import Settings
from rowcall.core.endpoint.validation import BUILT_IN, Rule, RuleType, compiled, default_message

log = logging.getLogger("rowcall.client")

_RULES = "ValidationOptions:Rules"
_TYPES = {type.value.casefold(): type for type in RuleType}
_NUMBERS = {
    RuleType.MIN_LENGTH: "MinLength",
    RuleType.MAX_LENGTH: "MaxLength",
    RuleType.MIN_ITEMS: "MinItems",
    RuleType.MAX_ITEMS: "MaxItems",
}


_STOCK_MESSAGES = {default_message(RuleType.REGEX), *(rule.message for rule in BUILT_IN.values())}
"""Default messages. They name a parameter by its name in requests; other messages were written by the user and name it
as in the database."""


class _UnusableError(Exception):
    """A rule cannot be used; the message is the reason."""


def validation_rules(settings: Settings) -> Mapping[str, Rule]:
    """Return the built-in rules and the usable configured ones; a configured rule replaces the built-in one of its
    name. With `ReplaceBuiltInRules`, only the configured ones, if there are any.
    """
    configured = settings.value(_RULES) if settings.flag("ValidationOptions:Enabled") else None
    rules = dict(_usable(configured)) if isinstance(configured, Mapping) else {}
    if not rules or not settings.flag("ValidationOptions:ReplaceBuiltInRules"):
        rules = {**BUILT_IN, **rules}
    if settings.flag("ValidationOptions:DatabaseNamesInMessages"):
        rules = {name: replace(rule, by_database_name=True) for name, rule in rules.items()}
    return rules


def disabled_rules(settings: Settings) -> frozenset[str]:
    """Return the names of configured rules that `ValidationOptions:Enabled` switches off."""
    configured = settings.value(_RULES)
    if settings.flag("ValidationOptions:Enabled") or not isinstance(configured, Mapping):
        return frozenset()
    return frozenset(configured) - frozenset(BUILT_IN)


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
        raise _UnusableError(f"its Type is none of {', '.join(type.value for type in RuleType)}")
    status = _number(values, "StatusCode")
    message = str(values.get("message") or "")
    length = _length(values, _NUMBERS[kind]) if kind in _NUMBERS else 0
    least = _bound(values, "Min") if kind in (RuleType.MIN, RuleType.RANGE) else None
    most = _bound(values, "Max") if kind in (RuleType.MAX, RuleType.RANGE) else None
    return Rule(
        name,
        kind,
        message or default_message(kind, length, least, most),
        400 if status is None else _status(status),
        _pattern(values) if kind is RuleType.REGEX else "",
        length,
        least,
        most,
        by_database_name=message not in ("", *_STOCK_MESSAGES),
    )


def _bound(values: Mapping[str, Any], name: str) -> Decimal:
    text = values.get(name.casefold())
    if text is None or text == "":
        raise _UnusableError(f"it needs {name}")
    try:
        return Decimal(str(text))
    except InvalidOperation:
        raise _UnusableError(f"its {name} is not a number: {text!r}") from None


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
