"""A key that stands for one object, whatever that object equals."""

from __future__ import annotations

from rowcall.core.data.interning import Same


def test_keys_are_equal_only_for_the_same_object() -> None:
    first, second = [1], [1]
    assert Same(first) == Same(first)
    assert Same(first) != Same(second)
    assert {Same(first): "first", Same(second): "second"}[Same(second)] == "second"
