"""Keys of error handling: responses to database errors, and retries of commands."""

from rowcall.core.sections.keys import Key, KeyType, flag, integer, numbers, object_map, section, text, texts

_RETRYABLE = (
    "40001 40P01 08000 08003 08006 08001 08004 08007 08P01 53000 53100 53200 53300 53400 "
    "57P01 57P02 57P03 58000 58030 55P03 55006 55000"
)
_STRATEGY = "CommandRetryOptions:Strategies:<name>"
_POLICY = "ErrorHandlingOptions:ErrorCodePolicies:[]"
_CODE = f"{_POLICY}:ErrorCodes:<code>"
_DELAYS = (0, 1, 2, 5, 10)

ROWS: tuple[Key, ...] = (
    section("CommandRetryOptions", "Retries of failed commands, if they are safe."),
    flag("CommandRetryOptions:Enabled", True, "Allow commands to be retried."),
    text("CommandRetryOptions:DefaultStrategy", "default", "Strategy of endpoints that name none."),
    Key(
        "CommandRetryOptions:Strategies",
        KeyType.OBJECT_MAP,
        {"default": {"RetrySequenceSeconds": _DELAYS, "ErrorCodes": tuple(_RETRYABLE.split())}},
        "Named strategies. One that lacks a list uses the default list.",
        open=True,
    ),
    numbers(
        f"{_STRATEGY}:RetrySequenceSeconds",
        _DELAYS,
        "Seconds before each retry; their number is the number of retries.",
    ),
    texts(f"{_STRATEGY}:ErrorCodes", tuple(_RETRYABLE.split()), "SQLSTATEs that are retried."),
    section("ErrorHandlingOptions", "Error responses (application/problem+json)."),
    flag("ErrorHandlingOptions:RemoveTypeUrl", False, "Leave `type` out of problem bodies."),
    flag("ErrorHandlingOptions:RemoveTraceId", True, "Leave `traceId` out of problem bodies."),
    flag(
        "ErrorHandlingOptions:ExplainUnauthorized",
        False,
        "For development: the body of a 401 says what is wrong and what the endpoint requires. The log always does.",
    ),
    flag("ErrorHandlingOptions:IncludeRaisedDetails", True, "Send DETAIL and HINT of a RAISE to clients."),
    flag(
        "ErrorHandlingOptions:IncludeConstraintNames",
        False,
        "Send names of constraints, tables and columns, and PostgreSQL's messages about them, to clients.",
    ),
    text("ErrorHandlingOptions:DefaultErrorCodePolicy", "Default", "Policy of endpoints that name none."),
    section("ErrorHandlingOptions:TimeoutErrorMapping", "Response to a command that exceeds its timeout."),
    integer(
        "ErrorHandlingOptions:TimeoutErrorMapping:StatusCode", 504, "Status, from 200 to 599.", maximum=599, minimum=200
    ),
    text("ErrorHandlingOptions:TimeoutErrorMapping:Title", "Command execution timed out", "Title.", nullable=True),
    text("ErrorHandlingOptions:TimeoutErrorMapping:Details", None, "Detail; null: none."),
    text("ErrorHandlingOptions:TimeoutErrorMapping:Type", None, "Type URI; null is the one of the status."),
    Key(
        "ErrorHandlingOptions:ErrorCodePolicies",
        KeyType.OBJECTS,
        (
            {
                "Name": "Default",
                "ErrorCodes": {
                    # Sorted as in the output of --config (names of digits first), so that reading it keeps the order.
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
        "Named policies: SQLSTATE to StatusCode, Title (null: the database's message), Details, Type. "
        "Any configured policy replaces the built-in list. PT400 to PT599 always mean that status, unless a policy "
        "lists them.",
    ),
    text(f"{_POLICY}:Name", None, "Name of the policy. An entry without one is left out."),
    object_map(f"{_POLICY}:ErrorCodes", {}, "SQLSTATEs and their responses."),
    integer(f"{_CODE}:StatusCode", None, "Status. An entry without one is left out."),
    text(f"{_CODE}:Title", None, "Title. null is the database's message."),
    text(f"{_CODE}:Details", None, "Detail. null is the SQLSTATE."),
    text(f"{_CODE}:Type", None, "Type URI. null is the one of the status."),
)
