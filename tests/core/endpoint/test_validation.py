"""Rules for request values, without a request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.endpoint.validation import BUILT_IN, Rule, RuleType

TEXTS = st.none() | st.text()


@given(TEXTS, st.sampled_from(RuleType), st.integers(0, 5))
def test_any_text_is_validated(text: str | None, kind: RuleType, length: int) -> None:
    accepted = Rule("r", kind, "m", pattern="a.c", length=length).accepts(text)
    assert accepted in (True, False)


@given(TEXTS)
def test_required_is_not_null_and_not_empty(text: str | None) -> None:
    both = BUILT_IN["not_null"].accepts(text) and BUILT_IN["not_empty"].accepts(text)
    assert BUILT_IN["required"].accepts(text) is both


@given(st.text(), st.integers(0, 20))
def test_every_length_is_long_enough_or_short_enough(text: str, length: int) -> None:
    shortest = Rule("r", RuleType.MIN_LENGTH, "m", length=length)
    longest = Rule("r", RuleType.MAX_LENGTH, "m", length=length)
    assert shortest.accepts(text) or longest.accepts(text)
    assert (shortest.accepts(text) and longest.accepts(text)) is (len(text) == length)


@pytest.mark.parametrize(
    ("message", "expected"),
    [("{0} {1} {2}", "_a a r"), ("{2}{2}", "rr"), ("{3} {", "{3} {"), ("", "")],
)
def test_a_message_names_parameter_and_rule(message: str, expected: str) -> None:
    assert Rule("r", RuleType.NOT_NULL, message).refusal("_a", "a") == expected
