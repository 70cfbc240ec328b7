"""The steps of a path to a claim, and the comparisons in its filters.

Source: RFC 9535, 2.3 and 2.3.5.2.2; PostgREST's documentation, JWT Role Extraction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Select = Callable[[Any, Any], Iterator[Any]]
"""Function from a JSON value, and the claims that contain it, to the values at one step of a path below the value."""


def child(name: str) -> Select:
    return lambda value, _: iter((value[name],) if isinstance(value, dict) and name in value else ())


def element(index: int) -> Select:
    return lambda value, _: iter(
        (value[index],) if isinstance(value, list) and -len(value) <= index < len(value) else ()
    )


def slice_step(bounds: slice) -> Select:
    """Return the step to the elements of an array, or to the part of a text, between two positions."""

    def select(value: Any, _claims: Any) -> Iterator[Any]:
        if isinstance(value, list) and bounds.step != 0:
            yield from value[bounds]
        elif isinstance(value, str) and bounds.step is None:
            yield value[bounds]

    return select


def children(value: Any, _claims: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def descendants(value: Any) -> Iterator[Any]:
    """Yield a value and everything in it, each before its content."""
    yield value
    for item in children(value, None):
        yield from descendants(item)


def _equal(left: Any, right: Any) -> bool:
    # In Python, true is equal to 1.
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _less(left: Any, right: Any) -> bool:
    """Return whether `left` is less than `right`: True only for two texts or two numbers. Values of other types have no
    order, and give False."""
    if isinstance(left, str) and isinstance(right, str):
        return left < right
    return _is_number(left) and _is_number(right) and bool(left < right)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _of_texts(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda left, right: isinstance(left, str) and isinstance(right, str) and test(left, right)


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: _less(left, right) or _equal(left, right),
    ">=": lambda left, right: _less(right, left) or _equal(left, right),
    "^==": _of_texts(str.startswith),
    "==^": _of_texts(str.endswith),
    "*==": _of_texts(str.__contains__),
}
