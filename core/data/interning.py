"""One result for one value, where a value that is asked about again is the very same object.

All operations on a table have the same columns, and of the functions of a large schema many have the parameters and
columns of others. What is made of them is made once and shared: it need not be computed, sent to workers and kept in
memory each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

REMEMBERED = 16
"""Results that are remembered while nobody says when they are forgotten."""
_MANY = 4096
_forgetting: list[Callable[[], None]] = []


def remembered(function: Callable[P, T]) -> Callable[P, T]:
    """Its results are shared until `forget`; arguments are hashable, `Same` where they are large."""
    cached = lru_cache(maxsize=_MANY)(function)
    _forgetting.append(cached.cache_clear)
    return cached  # type: ignore[return-value]  # typeshed says that it takes anything hashable


def forget() -> None:
    """All that has been read is made into something: what was remembered for that would only be kept alive."""
    for one in _forgetting:
        one()


class Same(Generic[T]):
    """A key for `functools.lru_cache`: it equals keys of the same object alone, and costs no look into it."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
