"""Percentiles of counted durations lie in the bucket that holds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.operations.percentiles import percentile

BOUNDS = (0.001, 0.01, 0.1, 1.0)


def test_values_within_a_bucket_are_interpolated() -> None:
    assert percentile(BOUNDS, (0, 10, 0, 0, 0), 0.5) == pytest.approx(0.0055)
    assert percentile(BOUNDS, (10, 0, 0, 10, 0), 0.75) == pytest.approx(0.55)


def test_without_values_there_is_no_percentile() -> None:
    assert percentile(BOUNDS, (0, 0, 0, 0, 0), 0.5) is None


def test_a_percentile_above_all_bounds_is_the_largest_bound() -> None:
    assert percentile(BOUNDS, (0, 0, 0, 0, 3), 0.5) == 1.0


@given(st.lists(st.integers(0, 1000), min_size=5, max_size=5).filter(any), st.floats(0, 1), st.floats(0, 1))
def test_a_percentile_grows_with_its_share(counts: list[int], one: float, other: float) -> None:
    lower, upper = (percentile(BOUNDS, counts, share) for share in sorted((one, other)))
    assert lower is not None
    assert upper is not None
    assert 0 <= lower <= upper <= BOUNDS[-1]
