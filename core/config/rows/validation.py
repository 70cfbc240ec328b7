"""Keys of validation rules for parameter values."""

from rowcall.core.sections.keys import Key, choice, flag, integer, object_map, section, text

_RULE = "ValidationOptions:Rules:<name>:"


def _built_in(kind: str, message: str, pattern: str | None = None) -> dict[str, str | int | None]:
    return {
        "Type": kind,
        "Pattern": pattern,
        "MinLength": None,
        "MaxLength": None,
        "Message": message,
        "StatusCode": 400,
    }


ROWS: tuple[Key, ...] = (
    section("ValidationOptions", "Rules for parameter values."),
    flag("ValidationOptions:Enabled", True, "Use the configured rules; false: only the four built-in ones."),
    object_map(
        "ValidationOptions:Rules",
        {
            "not_null": _built_in("NotNull", "Parameter '{0}' cannot be null"),
            "not_empty": _built_in("NotEmpty", "Parameter '{0}' cannot be empty"),
            "required": _built_in("Required", "Parameter '{0}' is required"),
            "email": _built_in("Regex", "Parameter '{0}' must be a valid email address", r"^[^@\s]+@[^@\s]+\.[^@\s]+$"),
        },
        "Named rules for the annotation `validate`, in addition to the four built-in ones.",
    ),
    flag("ValidationOptions:ReplaceBuiltInRules", False, "Configured rules replace all built-in ones."),
    flag(
        "ValidationOptions:DatabaseNamesInMessages",
        False,
        "Default messages use the database name of a parameter, too.",
    ),
    choice(
        _RULE + "Type",
        "NotNull NotEmpty Required Regex MinLength MaxLength Min Max Range MinItems MaxItems",
        None,
        "Kind of the rule. A rule without it is left out, with a warning.",
    ),
    text(_RULE + "Pattern", None, "Regular expression, for Regex."),
    integer(_RULE + "MinLength", None, "Minimum number of characters, for MinLength."),
    integer(_RULE + "MaxLength", None, "Maximum number of characters, for MaxLength."),
    text(_RULE + "Min", None, "Smallest number, for Min and Range."),
    text(_RULE + "Max", None, "Largest number, for Max and Range."),
    integer(_RULE + "MinItems", None, "Minimum number of elements of an array, for MinItems."),
    integer(_RULE + "MaxItems", None, "Maximum number of elements of an array, for MaxItems."),
    text(
        _RULE + "Message",
        "Validation failed for parameter '{0}'",
        "Message of refused requests: {0} database name, {1} request name, {2} name of the rule. Without it, rules "
        "with bounds state them instead of this default, and default messages use the request name of the parameter.",
    ),
    integer(_RULE + "StatusCode", 400, "Status of refused requests."),
)
