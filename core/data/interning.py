"""One result for one value, where a value that is asked about again is the very same object.

All operations on a table have the same columns. What is made of them is made once and shared: it need not be computed,
sent to workers and kept in memory eleven times.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")

REMEMBERED = 16
"""Results that are remembered of each function: those of one table at a time, and of nothing that has gone."""


class Same(Generic[T]):
    """A key for `functools.lru_cache`: it equals keys of the same object alone, and costs no look into it."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
