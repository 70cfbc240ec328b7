"""Keys of validation rules for parameter values."""

from __future__ import annotations

from rowcall.core.sections.declaration import choice, flag, integer, object_map, part, section, text


@section("ValidationOptions:Rules:<name>")
class ValidationRule:
    type = choice(
        "Type",
        "NotNull NotEmpty Required Regex MinLength MaxLength Min Max Range MinItems MaxItems",
        None,
        "Kind of the rule. A rule without it is left out, with a warning.",
    )
    pattern = text("Pattern", None, "Regular expression, for Regex.")
    min_length = integer("MinLength", None, "Minimum number of characters, for MinLength.")
    max_length = integer("MaxLength", None, "Maximum number of characters, for MaxLength.")
    min = text("Min", None, "Smallest number, for Min and Range.")
    max = text("Max", None, "Largest number, for Max and Range.")
    min_items = integer("MinItems", None, "Minimum number of elements of an array, for MinItems.")
    max_items = integer("MaxItems", None, "Maximum number of elements of an array, for MaxItems.")
    message = text(
        "Message",
        "Validation failed for parameter '{0}'",
        "Message of refused requests: {0} database name, {1} request name, {2} name of the rule. Without it, "
        "rules with bounds state them instead of this default, and default messages use the request name of the "
        "parameter.",
    )
    status_code = integer("StatusCode", 400, "Status of refused requests.")


@section("ValidationOptions", "Rules for parameter values.")
class ValidationOptions:
    enabled = flag("Enabled", True, "Use the configured rules; false: only the four built-in ones.")
    rules = object_map(
        "Rules",
        {
            "not_null": {
                "Type": "NotNull",
                "Pattern": None,
                "MinLength": None,
                "MaxLength": None,
                "Message": "Parameter '{0}' cannot be null",
                "StatusCode": 400,
            },
            "not_empty": {
                "Type": "NotEmpty",
                "Pattern": None,
                "MinLength": None,
                "MaxLength": None,
                "Message": "Parameter '{0}' cannot be empty",
                "StatusCode": 400,
            },
            "required": {
                "Type": "Required",
                "Pattern": None,
                "MinLength": None,
                "MaxLength": None,
                "Message": "Parameter '{0}' is required",
                "StatusCode": 400,
            },
            "email": {
                "Type": "Regex",
                "Pattern": "^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$",
                "MinLength": None,
                "MaxLength": None,
                "Message": "Parameter '{0}' must be a valid email address",
                "StatusCode": 400,
            },
        },
        "Named rules for the annotation `validate`, in addition to the four built-in ones.",
    )
    replace_built_in_rules = flag("ReplaceBuiltInRules", False, "Configured rules replace all built-in ones.")
    database_names_in_messages = flag(
        "DatabaseNamesInMessages", False, "Default messages use the database name of a parameter, too."
    )
    rule = part(ValidationRule)
