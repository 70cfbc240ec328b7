"""Slow-down of failed sign-ins as a pure function."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.accounts.lockout import (
    Limit,
    account_parameter,
    begin,
    give_back,
    is_expired,
    normalize_account,
    state_without_failures,
)
from rowcall.core.building.endpoint_builder import build_endpoint
from rowcall.core.endpoint.endpoint import ValueKind
from tests.core.routines import EVERYTHING, catalog, parameter, routine

LIMIT = Limit(failures=3, delay=1.0, longest=60.0, reset=600.0)


def attempts(limit: Limit, *times: float) -> list[tuple[float, int]]:
    """Return wait and number of failures for an attempt at each time."""
    state, result = None, []
    for now in times:
        attempt, new = begin(limit, state, now)
        state = new or state
        result.append((round(attempt.wait, 6), attempt.failures))
    return result


def test_the_delay_begins_with_the_last_permitted_failure_and_doubles() -> None:
    assert attempts(LIMIT, 0, 0, 0, 0) == [(0, 1), (0, 2), (0, 3), (1, 3)]
    assert attempts(LIMIT, 0, 0, 0, 1, 2.5, 3, 3) == [(0, 1), (0, 2), (0, 3), (0, 4), (0.5, 4), (0, 5), (4, 5)]


def test_a_refused_attempt_does_not_extend_the_delay() -> None:
    assert attempts(LIMIT, 0, 0, 0, 0.5, 0.9, 1) == [(0, 1), (0, 2), (0, 3), (0.5, 3), (0.1, 3), (0, 4)]


def test_failures_expire_after_a_time_without_attempts() -> None:
    assert attempts(LIMIT, 0, 0, 0, 600, 600) == [(0, 1), (0, 2), (0, 3), (0, 1), (0, 2)]


def test_the_delay_is_limited() -> None:
    assert LIMIT.delay_after(2) == 0
    assert LIMIT.delay_after(8) == 32
    assert LIMIT.delay_after(9) == 60
    assert LIMIT.delay_after(1_000_000) == 60


def test_a_returned_attempt_does_not_count() -> None:
    state = None
    for _ in range(3):
        state = begin(LIMIT, state, 0.0)[1]
    assert begin(LIMIT, state, 0.0)[0].wait == 1
    state = give_back(LIMIT, state)
    assert begin(LIMIT, state, 0.0)[0] == (0, 3)
    assert give_back(LIMIT, None) is None


@given(
    st.lists(st.floats(0, 100), max_size=60).map(sorted),
    st.integers(1, 5),
    st.floats(0.1, 10),
)
def test_at_most_the_failures_are_permitted_before_each_delay(times: list[float], failures: int, delay: float) -> None:
    limit = Limit(failures, delay, 30.0, 1000.0)
    state, permitted = None, []
    for now in times:
        attempt, new = begin(limit, state, now)
        state = new or state
        permitted += [now] if attempt.wait == 0 else []
    later = permitted[failures - 1 :]
    for number, (first, second) in enumerate(itertools.pairwise(later)):
        assert second - first >= min(30.0, delay * 2**number) - 1e-6


def test_a_remembered_key_expires() -> None:
    assert not is_expired(state_without_failures(10.0), 9.9)
    assert is_expired(state_without_failures(10.0), 10.0)


@pytest.mark.parametrize("name", ["Ana@Example.com", " ana@example.com ", "ａｎａ@example.com", "ANA@EXAMPLE.COM"])
def test_spellings_of_an_account_are_counted_together(name: str) -> None:
    assert normalize_account(name) == "ana@example.com"


@pytest.mark.parametrize(
    ("text", "kind", "form"),
    [
        ("007", ValueKind.INTEGER, "7"),
        (" +7 ", ValueKind.INTEGER, "7"),
        ("7.00", ValueKind.NUMERIC, "7"),
        ("-0", ValueKind.NUMERIC, "0"),
        ("41.00000000000000000001", ValueKind.FLOAT, "41.0"),
        ("41", ValueKind.FLOAT, "41.0"),
        ("0.41000001e2", ValueKind.FLOAT, "41.0"),
        ("-0", ValueKind.FLOAT, "0.0"),
        ("1000e297", ValueKind.FLOAT, "inf"),
        ("seven", ValueKind.FLOAT, "seven"),
        ("seven", ValueKind.INTEGER, "seven"),
        ("007", ValueKind.TEXT, "007"),
        ("{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", ValueKind.UUID, "a0eebc999c0b4ef8bb6d6bb9bd380a11"),
    ],
)
def test_spellings_of_numbers_and_uuids_are_counted_together(text: str, kind: ValueKind, form: str) -> None:
    assert normalize_account(text, kind) == form


@pytest.mark.parametrize(
    ("text", "cast", "form"),
    [
        ("16777217", "double precision", "16777217.0"),
        ("1.6777217e7", "double precision", "16777217.0"),
        ("16777217", "real", "16777216.0"),
        ("16777217", '"shop"."number"', "16777216.0"),
        ("41.00000000000000000001", "double precision", "41.0"),
        ("-0", "double precision", "0.0"),
    ],
)
def test_a_number_has_the_digits_of_its_type(text: str, cast: str, form: str) -> None:
    assert normalize_account(text, ValueKind.FLOAT, cast) == form


def test_a_number_with_a_large_exponent_is_not_written_out() -> None:
    assert len(normalize_account("1e999999", ValueKind.NUMERIC)) < 20


@pytest.mark.parametrize(
    ("types", "index"),
    [
        ({"_tenant": 25, "_email": 25}, 1),
        ({"_code": 25}, 0),
        ({"_code": 25, "_user_name": 25, "_mail": 25}, 1),
        ({"_login": 3802, "_code": 25}, 1),
        ({"_login": 114}, None),
        ({"_password": 25}, None),
        ({"_password": 25, "_member_id": 23}, 1),
    ],
)
def test_the_parameter_with_the_account(types: dict[str, int], index: int | None) -> None:
    made = routine(*(parameter(name, oid) for name, oid in types.items()), comment="HTTP POST")
    endpoint = build_endpoint(made, catalog(made), EVERYTHING).endpoint
    assert endpoint is not None
    excluded = [number for number, name in enumerate(types) if "pass" in name]
    assert account_parameter(endpoint.parameters, excluded, ("user", "name", "mail", "login")) == index


@pytest.mark.parametrize("text", ["1e9999999", "-1e-9999999999", "sNaN", "9" * 5000])
def test_number_of_any_size_is_an_account(text: str) -> None:
    assert normalize_account(text, ValueKind.NUMERIC)
