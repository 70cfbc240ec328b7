"""Cookies of sessions (RFC 6265, sign-in-27, sign-in-28)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.auth.cookies import CHUNK, cookie_value, end_session, session_value, set_session
from rowcall.core.auth.schemes import CookieScheme

SCHEME = CookieScheme(cookie="yard")


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("yard=1", "1"),
        ("a=b; yard=1; c=d", "1"),
        ("a=b;yard=1", "1"),
        ("backyard=2; yard=1", "1"),
        ("backyard=2", None),
        ("a=yard=2", None),
        ('a="b yard=2"; yard=1', "1"),
        ("a=b yard=2", None),
        (";  yard=1", "1"),
        ("", None),
        ("yard=", ""),
        ("yard=1; yard=2", "1"),
        ("yard=a=b", "a=b"),
    ],
)
def test_cookies_are_read(header: str, value: str | None) -> None:
    assert cookie_value(header, "yard") == value


def test_cookies_are_written() -> None:
    assert set_session(SCHEME, "v", secure=False) == ["yard=v; max-age=1209600; path=/; samesite=lax; httponly"]
    assert end_session(SCHEME, "", secure=False) == [
        "yard=; expires=Thu, 01 Jan 1970 00:00:00 GMT; path=/; samesite=lax; httponly"
    ]


def test_writing_with_everything_else() -> None:
    scheme = CookieScheme(
        cookie="yard", path="/a", domain="x.example", persistent=False, http_only=False, same_site="none"
    )
    assert set_session(scheme, "v", secure=True) == ["yard=v; domain=x.example; path=/a; secure; samesite=none"]
    bare = CookieScheme(cookie="yard", same_site=None, http_only=False, persistent=False)
    assert set_session(bare, "v", secure=False) == ["yard=v; path=/"]


@given(st.integers(0, 5 * CHUNK))
def test_a_value_of_any_size_survives_a_round_trip(size: int) -> None:
    value = "".join(chr(97 + number % 26) for number in range(size))
    cookies = [cookie.partition(";")[0] for cookie in set_session(SCHEME, value, secure=False)]
    assert all(len(cookie) < 4096 for cookie in cookies)
    assert session_value("; ".join(cookies), "yard") == value


@pytest.mark.parametrize(
    "header", ["yard=chunks-2; yardC1=a", "yard=chunks-x; yardC1=a", "yard=chunks-", "yard=chunks-99", "yard=chunks-²"]
)
def test_a_cookie_with_missing_parts_has_no_value(header: str) -> None:
    assert session_value(header, "yard") is None


def test_ending_a_session_removes_all_parts_of_the_cookie() -> None:
    names = [
        cookie.partition("=")[0] for cookie in end_session(SCHEME, "yard=chunks-2; yardC1=a; yardC2=b", secure=False)
    ]
    assert names == ["yard", "yardC1", "yardC2"]
