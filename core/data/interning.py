"""Memoization of functions over catalogue values, so that equal arguments share one result object.

All operations on a table have the same columns, and many functions of a large schema have the parameters and columns of
others. Shared results are computed, sent to workers and held in memory once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

REMEMBERED = 16
"""Maximum number of results of a memoization that `clear_all` does not clear."""
_MANY = 4096
"""Maximum number of results of a function with `memoize`."""
_clear_functions: list[Callable[[], None]] = []


def memoize(function: Callable[P, T]) -> Callable[P, T]:
    """Memoize the latest results of a function, at most `_MANY`, until `clear_all`. Arguments have to be hashable;
    large ones are wrapped in `Same`."""
    cached = lru_cache(maxsize=_MANY)(function)
    _clear_functions.append(cached.cache_clear)
    return cached  # type: ignore[return-value]  # typeshed says that it takes anything hashable


def clear_all() -> None:
    """Clear the results of all functions with `memoize`. They are not needed after a schema snapshot is built."""
    for clear in _clear_functions:
        clear()


class Same(Generic[T]):
    """A hashable wrapper, for arguments of memoized functions, that equals only wrappers of the same object. Contents
    are not compared, so that `value` need not be hashable."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)
