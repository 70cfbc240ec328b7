"""The coding of a response (server-11 to server-13; RFC 9110, 12.5.3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.http.compression import Compression

BOTH = Compression(("br", "gzip"), (4, 6), frozenset({"text/plain", "application/json"}), frozenset())


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("br", "br"),
        ("gzip, deflate, br", "br"),
        ("gzip;q=1.0, br;q=0.5", "gzip"),
        ("BR;Q=0.5, GZIP;q=0.4", "br"),
        ("*", "br"),
        ("*;q=0.1", "br"),
        ("br;q=0, *", "gzip"),
        ("br;q=0, gzip;q=0", None),
        ("gzip;q=0.5, identity", None),
        ("gzip, identity;q=0.5", "gzip"),
        ("gzip;q=0.5, identity;q=0.5", "gzip"),
        ("deflate, zstd", None),
        ("", None),
        (",,;q=1,", None),
        ("gzip;q=high", None),
        ("gzip;q=1.5", None),
        ("gzip ; q = 0.8", "gzip"),
        ("gzip;level=9;q=0.8", "gzip"),
    ],
)
def test_the_best_common_coding_is_selected(accepted: str, coding: str | None) -> None:
    assert BOTH.choose(accepted) == coding


def test_codings_that_are_not_offered_are_not_selected() -> None:
    gzip = Compression(("gzip",), (6,), BOTH.include, BOTH.exclude)
    assert gzip.choose("br, gzip;q=0.1") == "gzip"
    assert gzip.choose("br") is None


@given(st.text())
def test_any_accept_encoding_header_selects_a_supported_coding_or_none(accepted: str) -> None:
    assert BOTH.choose(accepted) in ("br", "gzip", None)


@pytest.mark.parametrize(
    ("include", "exclude", "content_type", "fits"),
    [
        ("text/plain", "", "text/plain", True),
        ("text/plain", "", "Text/Plain; charset=utf-8", True),
        ("text/plain", "", "text/html", False),
        ("text/*", "", "text/html", True),
        ("*/*", "", "image/png", True),
        ("*/*", "image/*", "image/png", False),
        ("image/png", "image/*", "image/png", True),
        ("image/png", "image/png", "image/png", False),
        ("text/*", "text/html", "text/html", False),
        ("*/*", "*/*", "text/html", False),
        ("text/plain", "", "", False),
    ],
)
def test_the_most_specific_entry_applies(include: str, exclude: str, content_type: str, fits: bool) -> None:
    chosen = Compression(("br",), (4,), frozenset(include.split()), frozenset(exclude.split()))
    assert chosen.fits(content_type) is fits
