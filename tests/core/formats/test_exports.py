"""The format of an export, from the header Accept."""

from __future__ import annotations

import pytest

from rowcall.core.formats.exports import preferred_format

CSV, LINES = ("csv", "text/csv"), ("jsonl", "application/jsonl")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", None),
        ("*/*", None),
        ("application/json", None),
        ("text/csv", CSV),
        ("TEXT/CSV", CSV),
        ("text/csv, */*", CSV),
        ("text/csv;q=0.5, */*", None),
        ("text/csv, application/json", None),
        ("text/csv;q=0.9, application/json;q=0.5, */*", CSV),
        ("text/csv;q=0.9, application/json;q=0, */*", CSV),
        ("application/jsonl, application/*;q=0.9, */*;q=0.1", LINES),
    ],
)
def test_the_preferred_format_follows_the_accept_header(accept: str, expected: tuple[str, str] | None) -> None:
    assert preferred_format(accept, ("csv", "jsonl")) == expected
