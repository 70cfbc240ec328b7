"""Errors of PostgreSQL as errors of PostgREST's interface: status by SQLSTATE, and what `raise` may compose.

Source: PostgREST's documentation, Errors.
"""

from __future__ import annotations

import orjson
import pytest

from rowcall.core.postgrest.database_errors import from_database


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("08006", 503),
        ("09000", 500),
        ("0L000", 403),
        ("0P000", 403),
        ("23503", 409),
        ("23505", 409),
        ("25006", 405),
        ("21000", 500),
        ("22023", 400),
        ("25001", 500),
        ("28000", 403),
        ("2D000", 500),
        ("38000", 500),
        ("39000", 500),
        ("3B001", 500),
        ("40001", 500),
        ("53400", 500),
        ("53300", 503),
        ("54001", 500),
        ("55000", 500),
        ("57P01", 503),
        ("57014", 500),
        ("58030", 500),
        ("F0001", 500),
        ("HV000", 500),
        ("P0001", 400),
        ("P0004", 500),
        ("XX000", 500),
        ("42883", 404),
        ("42P01", 404),
        ("42P17", 500),
        ("PT418", 418),
        ("22012", 400),
        ("23502", 400),
        ("23514", 400),
        ("42703", 400),
        ("42704", 400),
        ("42601", 400),
    ],
)
def test_status_by_sqlstate(state: str, status: int) -> None:
    error = from_database(state, "message", "detail", "hint", anonymous=True)
    assert (error.status, error.code, error.message, error.details, error.hint) == (
        status,
        state,
        "message",
        "detail",
        "hint",
    )
    assert error.headers == {}


@pytest.mark.parametrize(
    ("state", "message", "status"),
    [
        ("21000", "UPDATE requires a WHERE clause", 400),
        ("21000", "DELETE requires a WHERE clause", 400),
        ("22023", 'role "x" does not exist', 401),
        ("42883", "function xmlagg(pgrst_scalar) does not exist", 406),
        ("42883", "function f() does not exist", 404),
    ],
)
def test_status_by_message(state: str, message: str, status: int) -> None:
    error = from_database(state, message, None, None, anonymous=False)
    assert (error.status, error.message) == (status, message)


@pytest.mark.parametrize(("anonymous", "status", "challenge"), [(True, 401, "Bearer"), (False, 403, None)])
def test_a_missing_privilege_is_401_for_anonymous_callers_and_403_for_others(
    anonymous: bool, status: int, challenge: str | None
) -> None:
    error = from_database("42501", "permission denied", None, None, anonymous=anonymous)
    assert (error.status, error.headers.get("www-authenticate")) == (status, challenge)


_OBLIGATORY = "must be a JSON object with obligatory keys: "
_OF_MESSAGE = f"MESSAGE {_OBLIGATORY}'code', 'message' and optional keys: 'details', 'hint'."
_OF_DETAIL = f"DETAIL {_OBLIGATORY}'status', 'headers' and optional key: 'status_text'."
BODY = '{"code":"1","message":"m"}'


@pytest.mark.parametrize(
    ("message", "detail", "details", "hint"),
    [
        ("x", "{}", "Invalid JSON value for MESSAGE: 'x'", _OF_MESSAGE),
        ('{"code":"1"}', "{}", 'Invalid JSON value for MESSAGE: \'{"code":"1"}\'', _OF_MESSAGE),
        (BODY, None, "DETAIL is missing in the RAISE statement", _OF_DETAIL),
        (BODY, "x", "Invalid JSON value for DETAIL: 'x'", _OF_DETAIL),
        (BODY, '{"headers":{}}', "Invalid JSON value for DETAIL: '{\"headers\":{}}'", _OF_DETAIL),
        (BODY, '{"status":400}', "Invalid JSON value for DETAIL: '{\"status\":400}'", _OF_DETAIL),
    ],
)
def test_invalid_json_in_a_composed_error_is_pgrst121(
    message: str, detail: str | None, details: str, hint: str
) -> None:
    error = from_database("PGRST", message, detail, None, anonymous=True)
    assert (error.status, error.code, error.details, error.hint) == (500, "PGRST121", details, hint)
    assert error.message == "Could not parse JSON in the \"RAISE SQLSTATE 'PGRST'\" error"


@pytest.mark.parametrize(
    ("message", "detail"),
    [
        ('{"code":"1","message":"m","details":{}}', '{"status":400,"headers":{}}'),
        ('{"code":"1","message":"m","hint":1}', '{"status":400,"headers":{}}'),
        (BODY, '{"status":true,"headers":{}}'),
        (BODY, '{"status":404.5,"headers":{}}'),
        (BODY, '{"status":400,"headers":{"a":1}}'),
        (BODY, '{"status":400,"headers":{"a":"b\\nc: d"}}'),
        (BODY, '{"status":400,"headers":{"a b":"c"}}'),
        (BODY, '{"status":400,"headers":{},"status_text":1}'),
    ],
)
def test_wrong_types_in_a_composed_error_are_pgrst121(message: str, detail: str) -> None:
    error = from_database("PGRST", message, detail, None, anonymous=True)
    assert (error.status, error.code) == (500, "PGRST121")


def test_a_status_may_be_a_decimal_number() -> None:
    assert from_database("PGRST", BODY, '{"status":404.0,"headers":{}}', None, anonymous=True).status == 404


def test_a_composed_error() -> None:
    detail = '{"status":423,"headers":{"Retry-After":"9"},"status_text":"Too low"}'
    error = from_database("PGRST", BODY, detail, "ignored", anonymous=True)
    assert (error.status, error.headers, error.reason) == (423, {"retry-after": "9"}, "Too low")
    assert orjson.loads(error.body()) == {"code": "1", "details": None, "hint": None, "message": "m"}
