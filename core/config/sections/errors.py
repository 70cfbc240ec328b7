"""Keys of error handling: responses to database errors, and retries of commands."""

from __future__ import annotations

from rowcall.core.sections.declaration import flag, integer, numbers, object_map, objects, part, section, text, texts

PAUSES = (0, 1, 2, 5, 10)
"""Seconds before each retry."""
RETRIED = (
    "40001",
    "40P01",
    "08000",
    "08003",
    "08006",
    "08001",
    "08004",
    "08007",
    "08P01",
    "53000",
    "53100",
    "53200",
    "53300",
    "53400",
    "57P01",
    "57P02",
    "57P03",
    "58000",
    "58030",
    "55P03",
    "55006",
    "55000",
)
"""SQLSTATEs of failures that may be over at the next attempt."""


@section("CommandRetryOptions:Strategies:<name>")
class RetryStrategyKeys:
    retry_sequence_seconds = numbers(
        "RetrySequenceSeconds", PAUSES, "Seconds before each retry; their number is the number of retries."
    )
    error_codes = texts(
        "ErrorCodes",
        RETRIED,
        "SQLSTATEs that are retried.",
    )


@section("CommandRetryOptions", "Retries of failed commands, if they are safe.")
class CommandRetryOptions:
    enabled = flag("Enabled", True, "Allow commands to be retried.")
    default_strategy = text("DefaultStrategy", "default", "Strategy of endpoints that name none.")
    strategies = object_map(
        "Strategies",
        {
            "default": {
                "RetrySequenceSeconds": PAUSES,
                "ErrorCodes": RETRIED,
            }
        },
        "Named strategies. One that lacks a list uses the default list.",
        open=True,
        elements=RetryStrategyKeys,
    )


@section("ErrorHandlingOptions:TimeoutErrorMapping", "Response to a command that exceeds its timeout.")
class TimeoutErrorMapping:
    status_code = integer("StatusCode", 504, "Status, from 200 to 599.", minimum=200, maximum=599)
    title = text("Title", "Command execution timed out", "Title.", nullable=True)
    details = text("Details", None, "Detail; null: none.")
    type = text("Type", None, "Type URI; null is the one of the status.")


@section("ErrorHandlingOptions:ErrorCodePolicies:[]:ErrorCodes:<code>")
class ErrorCodeKeys:
    status_code = integer("StatusCode", None, "Status. An entry without one is left out.")
    title = text("Title", None, "Title. null is the database's message.")
    details = text("Details", None, "Detail. null is the SQLSTATE.")
    type = text("Type", None, "Type URI. null is the one of the status.")


@section("ErrorHandlingOptions:ErrorCodePolicies:[]")
class ErrorPolicyKeys:
    name = text("Name", None, "Name of the policy. An entry without one is left out.")
    error_codes = object_map("ErrorCodes", {}, "SQLSTATEs and their responses.", elements=ErrorCodeKeys)


@section("ErrorHandlingOptions", "Error responses (application/problem+json).")
class ErrorHandlingOptions:
    remove_type_url = flag("RemoveTypeUrl", False, "Leave `type` out of problem bodies.")
    remove_trace_id = flag("RemoveTraceId", True, "Leave `traceId` out of problem bodies.")
    explain_unauthorized = flag(
        "ExplainUnauthorized",
        False,
        "For development: the body of a 401 says what is wrong and what the endpoint requires. The log always does.",
    )
    include_raised_details = flag("IncludeRaisedDetails", True, "Send DETAIL and HINT of a RAISE to clients.")
    include_constraint_names = flag(
        "IncludeConstraintNames",
        False,
        "Send names of constraints, tables and columns, and PostgreSQL's messages about them, to clients.",
    )
    default_error_code_policy = text("DefaultErrorCodePolicy", "Default", "Policy of endpoints that name none.")
    timeout = part(TimeoutErrorMapping)
    error_code_policies = objects(
        "ErrorCodePolicies",
        (
            {
                "Name": "Default",
                "ErrorCodes": {
                    "22001": {"StatusCode": 400},
                    "22003": {"StatusCode": 400},
                    "22007": {"StatusCode": 400},
                    "22008": {"StatusCode": 400},
                    "22009": {"StatusCode": 400},
                    "22015": {"StatusCode": 400},
                    "22019": {"StatusCode": 400},
                    "22021": {"StatusCode": 400},
                    "22025": {"StatusCode": 400},
                    "22026": {"StatusCode": 400},
                    "23502": {"StatusCode": 400},
                    "23503": {"StatusCode": 409},
                    "23505": {"StatusCode": 409},
                    "23514": {"StatusCode": 400},
                    "42501": {"StatusCode": 403, "Title": "Insufficient Privilege"},
                    "44000": {"StatusCode": 400},
                    "57014": {"StatusCode": 504, "Title": "Cancelled"},
                    "2200M": {"StatusCode": 400},
                    "2200N": {"StatusCode": 400},
                    "2201B": {"StatusCode": 400},
                    "2201W": {"StatusCode": 400},
                    "2201X": {"StatusCode": 400},
                    "22P02": {"StatusCode": 400},
                    "22P05": {"StatusCode": 400},
                    "23P01": {"StatusCode": 409},
                    "P0001": {"StatusCode": 400},
                    "P0004": {"StatusCode": 400},
                },
            },
        ),
        "Named policies: SQLSTATE to StatusCode, Title (null: the database's message), Details, Type. Any "
        "configured policy replaces the built-in list. PT400 to PT599 always mean that status, unless a policy "
        "lists them.",
        elements=ErrorPolicyKeys,
    )
