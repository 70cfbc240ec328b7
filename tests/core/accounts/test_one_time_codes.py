"""Codes of authenticator apps against the vectors of RFC 6238, and recovery codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.accounts.one_time_codes import (
    enrolment_address,
    matching_step,
    new_recovery_codes,
    new_secret,
    plain_code,
    recovery_hash,
)
from tests.harness.authenticator_app import AuthenticatorApp, code_at

SECRET = b"12345678901234567890"
VECTORS = {
    59: "287082",
    1111111109: "081804",
    1111111111: "050471",
    1234567890: "005924",
    2000000000: "279037",
    20000000000: "353130",
}
"""RFC 6238, appendix B, SHA-1: the last six digits."""


@pytest.mark.parametrize("moment", VECTORS)
def test_vectors_of_the_specification(moment: int) -> None:
    assert matching_step(SECRET, VECTORS[moment], moment, 0) == moment // 30
    assert code_at(SECRET, moment // 30) == VECTORS[moment]


@given(st.binary(min_size=16, max_size=40), st.integers(0, 10**10), st.integers(0, 10), st.integers(-12, 12))
def test_a_code_is_accepted_within_the_drift(secret: bytes, moment: int, drift: int, off: int) -> None:
    step = moment // 30 + off
    if step < 0:
        return
    found = matching_step(secret, code_at(secret, step), moment, drift)
    if abs(off) <= drift:
        assert found is not None
        assert found >= step
        assert code_at(secret, found) == code_at(secret, step)
    elif found is not None:
        assert code_at(secret, found) == code_at(secret, step), "two steps may have the same code"


@given(st.text(max_size=80))
def test_any_text_is_a_six_digit_code_or_none(text: str) -> None:
    code = plain_code(text)
    assert code is None or (len(code) == 6 and set(code) <= set("0123456789"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("123456", "123456"),
        (" 123 456\n", "123456"),
        ("12345", None),
        ("1234567", None),
        ("12345a", None),
        ("١٢٣٤٥٦", None),
        ("", None),
        (None, None),
        (123456, None),
        (["1"], None),
    ],
)
def test_codes_are_accepted_with_separators(text: object, code: str | None) -> None:
    assert plain_code(text) == code


def test_recovery_codes_are_unique_and_compared_without_case_and_separators() -> None:
    codes = new_recovery_codes(100)
    assert len(set(codes)) == 100
    assert all(len(code.replace("-", "")) == 16 for code in codes)
    code = codes[0]
    assert {recovery_hash(text) for text in (code, code.upper(), code.replace("-", " "), f" {code}\n")} == {
        recovery_hash(code)
    }


def test_the_enrolment_address_has_secret_issuer_and_label() -> None:
    secret = new_secret()
    app = AuthenticatorApp(enrolment_address(secret, "Shop & Söhne", "ana@example.com"))
    assert app.secret == secret
    assert app.query["issuer"] == "Shop & Söhne"
    assert app.label == "/Shop%20%26%20S%C3%B6hne:ana@example.com"
    assert (app.query["digits"], app.query["period"], app.query["algorithm"]) == ("6", "30", "SHA1")
