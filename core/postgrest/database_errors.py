"""Errors of PostgreSQL → errors of PostgREST's interface.

Source: PostgREST's documentation, Errors.
"""

from __future__ import annotations

from typing import Any

import orjson

from rowcall.core.postgrest.errors import ApiError
from rowcall.core.postgrest.response_headers import is_sendable_header

_BY_STATE = {
    "23503": 409,
    "23505": 409,
    "25006": 405,
    "21000": 500,
    "53400": 500,
    "57P01": 503,
    "P0001": 400,
    "42883": 404,
    "42P01": 404,
    "42P17": 500,
}
_BY_CLASS = {
    "08": 503,
    "09": 500,
    "0L": 403,
    "0P": 403,
    "25": 500,
    "28": 403,
    "2D": 500,
    "38": 500,
    "39": 500,
    "3B": 500,
    "40": 500,
    "53": 503,
    "54": 500,
    "55": 500,
    "57": 500,
    "58": 500,
    "F0": 500,
    "HV": 500,
    "P0": 500,
    "XX": 500,
}
PRIVILEGE = "42501"
RAISED = "PGRST"
_MESSAGE_HINT = (
    "MESSAGE must be a JSON object with obligatory keys: 'code', 'message' and optional keys: 'details', 'hint'."
)
_DETAIL_HINT = "DETAIL must be a JSON object with obligatory keys: 'status', 'headers' and optional key: 'status_text'."


def from_database(sqlstate: str, message: str, detail: str | None, hint: str | None, *, anonymous: bool) -> ApiError:
    """Return the error of the interface for an error of PostgreSQL. anonymous: the request runs as the role without a
    token."""
    if sqlstate == RAISED:
        return _error_raised_by_sql(message, detail)
    status, reason = _status(sqlstate, message, anonymous)
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    return ApiError(status, sqlstate, message, detail, hint, headers, reason)


def _status(sqlstate: str, message: str, anonymous: bool) -> tuple[int, str | None]:
    """Return the status for an error, and its reason phrase; None: the standard one.

    An SQLSTATE such as `PT402` has the status 402 and the message as reason phrase; 500 if its end is no number from
    100 on. anonymous: as in `from_database`; a missing privilege then gives 401 instead of 403.
    """
    if sqlstate.startswith("PT"):
        digits = sqlstate[2:]
        return (int(digits), message) if digits.isascii() and digits.isdigit() and int(digits) >= 100 else (500, None)
    if sqlstate == PRIVILEGE:
        return (401 if anonymous else 403), None
    if sqlstate == "21000" and message.endswith("requires a WHERE clause"):
        return 400, None
    if sqlstate == "22023" and message.startswith("role ") and message.endswith(" does not exist"):
        return 401, None
    if sqlstate == "42883" and message.startswith("function xmlagg("):
        return 406, None
    return _BY_STATE.get(sqlstate) or _BY_CLASS.get(sqlstate[:2], 400), None


def _error_raised_by_sql(message: str, detail: str | None) -> ApiError:
    """Return the error that SQL composes by `raise sqlstate 'PGRST'`; if its parts cannot be read, an error that
    says so."""
    body = _object(message)
    if (
        body is None
        or not _has_texts(body, "code", "message")
        or not _may_have_texts(body, "details", "hint")
        or not is_sendable_header("proxy-status", body["code"])  # It is also in the header `Proxy-Status`.
    ):
        return _unreadable(f"Invalid JSON value for MESSAGE: '{message}'", _MESSAGE_HINT)
    if detail is None:
        return _unreadable("DETAIL is missing in the RAISE statement", _DETAIL_HINT)
    transport = _object(detail)
    status = None if transport is None else _whole_number(transport.get("status"))
    headers = None if transport is None else transport.get("headers")
    if (
        transport is None
        or status is None
        or not isinstance(headers, dict)
        or not _has_texts(headers, *headers)
        or not all(is_sendable_header(name, value) for name, value in headers.items())
        or not _may_have_texts(transport, "status_text")
    ):
        return _unreadable(f"Invalid JSON value for DETAIL: '{detail}'", _DETAIL_HINT)
    return ApiError(
        status,
        body["code"],
        body["message"],
        body.get("details"),
        body.get("hint"),
        headers,
        transport.get("status_text"),
    )


def _whole_number(value: object) -> int | None:
    """Return a JSON number without fraction, such as `404` and `404.0`; None for other values."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _has_texts(value: dict[str, Any], *names: str) -> bool:
    """Return whether the members of these names are texts."""
    return all(isinstance(value.get(name), str) for name in names)


def _may_have_texts(value: dict[str, Any], *names: str) -> bool:
    """Return whether the members of these names are texts, null or absent."""
    return all(isinstance(value.get(name), str | None) for name in names)


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a text; None: it is no JSON object."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _unreadable(details: str, hint: str) -> ApiError:
    """Return the error for a `raise sqlstate 'PGRST'` whose parts cannot be read."""
    message = "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error"
    return ApiError(500, "PGRST121", message, details, hint)
