"""Durations in configuration and comments (comments-29)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.text.interval import parse_interval


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5),
        ("5 seconds", 5),
        ("1.5h", 5400),
        (".5 s", 0.5),
        ("250ms", 0.25),
        ("10 us", 0.00001),
        ("2 m", 120),
        ("3 MIN", 180),
        ("1d", 86_400),
        ("2 weeks", 1_209_600),
        ("00:00:01", 1),
        ("01:02:03.5", 3723.5),
        ("1.00:00:00", 86_400),
        ("  7 sec ", 7),
        ("0", 0),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_interval(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-1 s", "1h 30m", "5 months", "1 year", "soon", "1,5 s", "1e3", "5 5 s", "٣ s"])
def test_other_text_is_not_a_duration(text: str) -> None:
    assert parse_interval(text) is None


@given(st.text(max_size=30))
def test_any_text_gives_a_duration_or_none(text: str) -> None:
    seconds = parse_interval(text)
    assert seconds is None or seconds >= 0
