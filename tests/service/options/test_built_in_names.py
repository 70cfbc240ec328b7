"""A configured entry replaces the built-in one of its name, in any case."""

from __future__ import annotations

import pytest

from rowcall.core.config import Settings, assemble, load_files
from rowcall.core.errors.retry import RetryStrategy
from rowcall.service.options.errors import retry_strategies
from rowcall.service.options.validation import validation_rules


def settings_of(**values: str) -> Settings:
    return assemble(load_files([]), tuple(values.items()), {}).settings


@pytest.mark.parametrize("name", ["default", "Default", "DEFAULT"])
def test_a_configured_default_strategy_replaces_the_built_in_one(name: str) -> None:
    prefix = f"CommandRetryOptions:Strategies:{name}:RetrySequenceSeconds"
    strategies = retry_strategies(settings_of(**{f"{prefix}:0": "3"}))
    assert strategies.default == strategies.of(name) == RetryStrategy((3.0,))


@pytest.mark.parametrize("name", ["email", "Email", "EMAIL"])
def test_a_configured_rule_replaces_the_built_in_one(name: str) -> None:
    prefix = f"ValidationOptions:Rules:{name}"
    rules = validation_rules(settings_of(**{f"{prefix}:Type": "Regex", f"{prefix}:Pattern": "^x$"}))
    assert (rules["email"].pattern, rules[name].pattern) == ("^x$", "^x$")
    assert rules["required"].message == "Parameter '{0}' is required"
