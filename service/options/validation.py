"""Read `ValidationOptions`: the rules that `validate` may name (execution-7, execution-8).

An unusable rule is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation

import regex

from rowcall.core.config import Settings
from rowcall.core.config.sections.validation import ValidationOptions, ValidationRule
from rowcall.core.endpoint.validation import BUILT_IN, Rule, RuleType, compile_pattern, default_message

log = logging.getLogger("rowcall.client")

_RULES = "ValidationOptions:Rules"
_STOCK_MESSAGES = {default_message(RuleType.REGEX), *(rule.message for rule in BUILT_IN.values())}
"""Default messages. They name a parameter by its name in requests; other messages were written by the user and name it
as in the database."""


class _UnusableError(Exception):
    """A rule cannot be used; the message is the reason."""


def validation_rules(settings: Settings) -> Mapping[str, Rule]:
    """Return the built-in rules and the usable configured ones; a configured rule replaces the built-in one of its
    name, in any case. With `ReplaceBuiltInRules`, only the configured ones, if any is usable. If
    `ValidationOptions:Enabled` is off, only the built-in ones. Unusable rules are logged."""
    options = settings.read(ValidationOptions)
    rules = dict(_usable(settings)) if options.enabled else {}
    if not rules or not options.replace_built_in_rules:
        configured = {name.casefold(): rule for name, rule in rules.items()}
        rules = {**{name: configured.get(name, rule) for name, rule in BUILT_IN.items()}, **rules}
    if options.database_names_in_messages:
        rules = {name: replace(rule, by_database_name=True) for name, rule in rules.items()}
    return rules


def disabled_rules(settings: Settings) -> frozenset[str]:
    """Return the names of configured rules that `ValidationOptions:Enabled` switches off, without those of built-in
    rules, which apply then."""
    if settings.is_enabled(ValidationOptions):
        return frozenset()
    return frozenset(settings.names_of(ValidationRule)) - frozenset(BUILT_IN)


def _usable(settings: Settings) -> Iterator[tuple[str, Rule]]:
    for name in settings.names_of(ValidationRule):
        try:
            yield name, _rule(name, settings.read(ValidationRule, name))
        except _UnusableError as error:
            log.warning("%s:%s is skipped: %s", _RULES, name, error)


def _rule(name: str, keys: ValidationRule) -> Rule:
    kind = next((kind for kind in RuleType if kind.value == keys.type), None)
    if kind is None:
        raise _UnusableError(f"its Type is none of {', '.join(type.value for type in RuleType)}")
    lengths = {
        RuleType.MIN_LENGTH: keys.min_length,
        RuleType.MAX_LENGTH: keys.max_length,
        RuleType.MIN_ITEMS: keys.min_items,
        RuleType.MAX_ITEMS: keys.max_items,
    }
    length = lengths.get(kind, 0)
    if length is None:
        raise _UnusableError(f"it needs {kind.value}")
    if not 400 <= keys.status <= 599:
        raise _UnusableError(f"its StatusCode is not a status from 400 to 599: {keys.status}")
    least = _parse_bound("Min", keys.min) if kind in (RuleType.MIN, RuleType.RANGE) else None
    most = _parse_bound("Max", keys.max) if kind in (RuleType.MAX, RuleType.RANGE) else None
    return Rule(
        name,
        kind,
        keys.message or default_message(kind, length, least, most),
        keys.status,
        _pattern(keys.pattern) if kind is RuleType.REGEX else "",
        length,
        least,
        most,
        by_database_name=(keys.message or "") not in ("", *_STOCK_MESSAGES),
    )


def _parse_bound(name: str, text: str | None) -> Decimal:
    if text is None:
        raise _UnusableError(f"it needs {name}")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise _UnusableError(f"its {name} is not a number: {text!r}") from None


def _pattern(pattern: str | None) -> str:
    if pattern is None:
        raise _UnusableError("a Regex needs a Pattern")
    try:
        compile_pattern(pattern)
    except regex.error as error:
        raise _UnusableError(f"its Pattern is no regular expression: {error}") from None
    return pattern
