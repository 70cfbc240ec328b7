"""Keys of validation rules for parameter values."""

from __future__ import annotations

from rowcall.core.endpoint.validation import BUILT_IN, Rule, RuleType
from rowcall.core.sections.declaration import choice, flag, if_set, integer, lenient, object_map, part, section, text
from rowcall.core.sections.keys import JsonValue


@section("ValidationOptions:Rules:<name>")
class ValidationRule:
    type: str | None = lenient(
        choice("Type", RuleType, None, "Kind of the rule. A rule without it is left out, with a warning.")
    )
    pattern: str | None = text("Pattern", None, "Regular expression, for Regex.")
    min_length: int | None = integer("MinLength", None, "Minimum number of characters, for MinLength.")
    max_length: int | None = integer("MaxLength", None, "Maximum number of characters, for MaxLength.")
    min: str | None = text("Min", None, "Smallest number, for Min and Range.")
    max: str | None = text("Max", None, "Largest number, for Max and Range.")
    min_items: int | None = integer("MinItems", None, "Minimum number of elements of an array, for MinItems.")
    max_items: int | None = integer("MaxItems", None, "Maximum number of elements of an array, for MaxItems.")
    message: str | None = if_set(
        text(
            "Message",
            "Validation failed for parameter '{0}'",
            "Message of refused requests: {0} database name, {1} request name, {2} name of the rule. Without it, "
            "rules with bounds state them instead of this default, and default messages use the request name of the "
            "parameter.",
        )
    )
    status: int = integer("StatusCode", 400, "Status of refused requests.")


_DOCUMENTED_EMAIL = "^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$"
"""Accepts the same texts as the pattern of the built-in rule, which never backtracks."""


def _configuration_of(rule: Rule) -> dict[str, JsonValue]:
    """Return a built-in rule as the configuration would have it."""
    return {
        "Type": rule.type.value,
        "Pattern": _DOCUMENTED_EMAIL if rule.pattern else None,
        "MinLength": None,
        "MaxLength": None,
        "Message": rule.message,
        "StatusCode": rule.status,
    }


@section("ValidationOptions", "Rules for parameter values.")
class ValidationOptions:
    enabled: bool = flag("Enabled", True, "Use the configured rules; false: only the four built-in ones.")
    rules = object_map(
        "Rules",
        {name: _configuration_of(rule) for name, rule in BUILT_IN.items()},
        "Named rules for the annotation `validate`, in addition to the four built-in ones.",
    )
    replace_built_in_rules: bool = flag("ReplaceBuiltInRules", False, "Configured rules replace all built-in ones.")
    database_names_in_messages: bool = flag(
        "DatabaseNamesInMessages", False, "Default messages use the database name of a parameter, too."
    )
    rule = part(ValidationRule)
