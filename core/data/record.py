"""A base for frozen values that travel to worker processes.

Without it, pickling a frozen dataclass with slots asks `dataclasses.fields` for each value; a catalogue has tens of
thousands of them, and every worker waits for its copy at start.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

_GETTERS: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {}


class Record:
    """Pickled as the arguments of its constructor, in the order of the fields. Needs two fields or more."""

    __slots__ = ()

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        kind = type(self)
        getter = _GETTERS.get(kind)
        if getter is None:
            getter = _GETTERS[kind] = attrgetter(*kind.__match_args__)  # type: ignore[attr-defined]
        return kind, getter(self)
