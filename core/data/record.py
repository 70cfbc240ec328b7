"""A base class for frozen values that are pickled for worker processes.

Without it, pickling a frozen dataclass with slots calls `dataclasses.fields` for each value; a catalogue has tens of
thousands of them, and every worker waits for its copy at the start.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

_GETTERS: dict[type[Any], Callable[[Any], tuple[Any, ...]]] = {}


class Record:
    """Base of frozen dataclasses that are sent to workers.

    A record is pickled as the arguments of its constructor, in the order of the fields; it needs at least two fields.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type[Any], tuple[Any, ...]]:
        kind = type(self)
        getter = _GETTERS.get(kind)
        if getter is None:
            # Each subclass is a dataclass, which mypy does not know.
            getter = _GETTERS[kind] = attrgetter(*kind.__match_args__)  # type: ignore[attr-defined]
        return kind, getter(self)
