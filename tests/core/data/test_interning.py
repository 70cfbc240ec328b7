"""A key that equals keys of the same object only."""

from __future__ import annotations

from rowcall.core.data.interning import Same, clear_all, memoize


def test_keys_are_equal_only_for_the_identical_object() -> None:
    first, second = [1], [1]
    assert Same(first) == Same(first)
    assert Same(first) != Same(second)
    assert {Same(first): "first", Same(second): "second"}[Same(second)] == "second"


def test_results_are_shared_until_they_are_dropped() -> None:
    @memoize
    def boxed(value: Same[list[int]]) -> list[list[int]]:
        return [value.value]

    numbers = [1]
    stored = boxed(Same(numbers))
    assert boxed(Same(numbers)) is stored
    assert boxed(Same([1])) is not stored
    clear_all()
    assert boxed(Same(numbers)) is not stored
