"""Refresh tokens that can be used once, as data (RFC 9700, 4.14.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.auth.token_families import BETWEEN_SWEEPS, FailedUses, Families, Mark, mark_of

LATER = 1e9


def uses(*generations: int) -> list[bool]:
    families = Families()
    return [families.use(Mark("f", generation), 0.0, LATER) for generation in generations]


def test_each_generation_is_accepted_once() -> None:
    assert uses(0, 1, 2) == [True, True, True]


def test_a_second_use_ends_the_family() -> None:
    assert uses(0, 1, 0, 2, 3) == [True, True, False, False, False]


@given(st.lists(st.integers(0, 8), max_size=20))
def test_no_generation_is_accepted_twice_or_after_a_refusal(generations: list[int]) -> None:
    responses = uses(*generations)
    taken = [generation for generation, first in zip(generations, responses, strict=True) if first]
    assert taken == sorted(set(taken))
    assert responses == sorted(responses, reverse=True)


def test_families_are_independent() -> None:
    families = Families()
    assert families.use(Mark("f", 0), 0.0, LATER)
    assert families.use(Mark("g", 0), 0.0, LATER)
    assert not families.use(Mark("f", 0), 0.0, LATER)
    assert families.use(Mark("g", 1), 0.0, LATER)


def test_a_family_is_removed_when_its_tokens_have_expired() -> None:
    families = Families()
    for number in range(100):
        families.use(Mark(str(number), 0), 0.0, 60.0)
    families.use(Mark("lasting", 0), 0.0, BETWEEN_SWEEPS + 60.0)
    assert len(families) == 101
    assert not families.use(Mark("lasting", 0), BETWEEN_SWEEPS, BETWEEN_SWEEPS + 60.0)
    assert len(families) == 1


def test_a_token_is_accepted_once_more_after_each_use_without_effect() -> None:
    families, failed = Families(), FailedUses()
    mark = Mark("f", 0)

    def use() -> bool:
        return families.use(failed.mark_to_use(mark), 0.0, LATER)

    assert use()
    for _ in range(3):
        # A repetition before the failure is known.
        assert not use()
        failed.add(mark, 0.0, LATER)
        assert use()
    assert not use()
    assert failed.mark_to_use(Mark("g", 0)) == Mark("g", 0)


def test_failed_uses_of_expired_tokens_are_removed() -> None:
    failed = FailedUses()
    failed.add(Mark("f", 0), 0.0, 60.0)
    failed.add(Mark("g", 0), 61.0, LATER)
    assert failed.mark_to_use(Mark("f", 0)) == Mark("f", 0)
    assert failed.mark_to_use(Mark("g", 0)) != Mark("g", 0)


@given(st.text("abcXYZ019-_", min_size=1, max_size=64), st.integers(0, 999_999_998))
def test_a_family_mark_survives_serialization(family: str, generation: int) -> None:
    mark = Mark(family, generation)
    assert mark_of(mark.text, "whatever") == mark
    assert mark.next == Mark(family, generation + 1)


@pytest.mark.parametrize("written", [None, 7, "", "f", "f.", ".1", "f.-1", "f.1.2", "../f.1", "f/g.1", "f.9999999999"])
def test_a_token_without_a_mark_is_a_separate_family(written: object) -> None:
    first, other = mark_of(written, "one token"), mark_of(written, "another token")
    assert first == mark_of(written, "one token")
    assert first.generation == 0
    assert first.family != other.family
