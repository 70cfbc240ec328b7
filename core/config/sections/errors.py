"""Keys of error handling: responses to database errors, and retries of commands."""

from __future__ import annotations

from collections.abc import Mapping

from rowcall.core.errors.error_policy import BUILT_IN_CODES, TIMED_OUT
from rowcall.core.errors.retry import DELAYS, RETRYABLE
from rowcall.core.sections.declaration import (
    flag,
    if_set,
    integer,
    numbers,
    object_map,
    objects,
    part,
    section,
    text,
    texts,
)
from rowcall.core.sections.keys import JsonValue


@section("CommandRetryOptions:Strategies:<name>")
class RetryStrategyKeys:
    delays: tuple[float, ...] | None = if_set(
        numbers("RetrySequenceSeconds", DELAYS, "Seconds before each retry; their number is the number of retries.")
    )
    codes: tuple[str, ...] | None = if_set(texts("ErrorCodes", RETRYABLE, "SQLSTATEs that are retried."))


@section("CommandRetryOptions", "Retries of failed commands, if they are safe.")
class CommandRetryOptions:
    enabled: bool = flag("Enabled", True, "Allow commands to be retried.")
    default_strategy: str | None = text(
        "DefaultStrategy", "default", "Strategy of endpoints that name none.", empty=True
    )
    strategies = object_map(
        "Strategies",
        {"default": {"RetrySequenceSeconds": DELAYS, "ErrorCodes": RETRYABLE}},
        "Named strategies. One that lacks a list uses the default list.",
        open=True,
        elements=RetryStrategyKeys,
    )


@section("ErrorHandlingOptions:TimeoutErrorMapping", "Response to a command that exceeds its timeout.")
class TimeoutErrorMapping:
    status: int = integer("StatusCode", TIMED_OUT.status, "Status, from 200 to 599.", minimum=200, maximum=599)
    title: str | None = text("Title", TIMED_OUT.title, "Title.", nullable=True, empty=True)
    details: str | None = text("Details", None, "Detail; null: none.", empty=True)
    type: str | None = text("Type", None, "Type URI; null is the one of the status.", empty=True)


@section("ErrorHandlingOptions:ErrorCodePolicies:[]:ErrorCodes:<code>")
class ErrorCodeKeys:
    status: int | None = integer("StatusCode", None, "Status. An entry without one is left out.")
    title: str | None = text("Title", None, "Title. null is the database's message.")
    details: str | None = text("Details", None, "Detail. null is the SQLSTATE.")
    type: str | None = text("Type", None, "Type URI. null is the one of the status.")


@section("ErrorHandlingOptions:ErrorCodePolicies:[]")
class ErrorPolicyKeys:
    name: str | None = text("Name", None, "Name of the policy. An entry without one is left out.")
    error_codes = object_map("ErrorCodes", {}, "SQLSTATEs and their responses.", elements=ErrorCodeKeys)


_BUILT_IN_CODES: Mapping[str, JsonValue] = {
    code: {"StatusCode": mapping.status, **({} if mapping.title is None else {"Title": mapping.title})}
    for code, mapping in sorted(BUILT_IN_CODES.items(), key=lambda item: (not item[0].isdigit(), item[0]))
}


@section("ErrorHandlingOptions", "Error responses (application/problem+json).")
class ErrorHandlingOptions:
    remove_type_url: bool = flag("RemoveTypeUrl", False, "Leave `type` out of problem bodies.")
    remove_trace_id: bool = flag("RemoveTraceId", True, "Leave `traceId` out of problem bodies.")
    explain_unauthorized: bool = flag(
        "ExplainUnauthorized",
        False,
        "For development: the body of a 401 says what is wrong and what the endpoint requires. The log always does.",
    )
    include_raised_details: bool = flag("IncludeRaisedDetails", True, "Send DETAIL and HINT of a RAISE to clients.")
    include_constraint_names: bool = flag(
        "IncludeConstraintNames",
        False,
        "Send names of constraints, tables and columns, and PostgreSQL's messages about them, to clients.",
    )
    default_policy: str = text("DefaultErrorCodePolicy", "Default", "Policy of endpoints that name none.")
    timeout: TimeoutErrorMapping = part(TimeoutErrorMapping)
    error_code_policies = objects(
        "ErrorCodePolicies",
        ({"Name": "Default", "ErrorCodes": _BUILT_IN_CODES},),
        "Named policies: SQLSTATE to StatusCode, Title (null: the database's message), Details, Type. Any "
        "configured policy replaces the built-in list. PT400 to PT599 always mean that status, unless a policy "
        "lists them.",
        elements=ErrorPolicyKeys,
    )
