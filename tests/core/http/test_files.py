"""Ranges of files, from the headers of requests."""

from __future__ import annotations

import pytest

from rowcall.core.http.files import UnsatisfiableError, byte_range


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-3", (0, 4)),
        ("bytes=4-", (4, 10)),
        ("bytes=-3", (7, 10)),
        ("bytes=2-99", (2, 10)),
        ("bytes=3-2", None),
        ("bytes=0-1,4-5", None),
        ("bytes=0-" + "9" * 5000, None),
        ("bytes=" + "9" * 5000 + "-", None),
    ],
)
def test_range_of_a_file_of_ten_bytes(header: str | None, expected: tuple[int, int] | None) -> None:
    assert byte_range(header, None, '"tag"', "date", 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=-0", "bytes=99999999999999999999-"])
def test_range_behind_the_end(header: str) -> None:
    with pytest.raises(UnsatisfiableError):
        byte_range(header, None, '"tag"', "date", 10)
