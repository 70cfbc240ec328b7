"""An action as data: its name, parameters and effect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rowcall.core.errors.problems import Problem

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")

Values = Mapping[str, str]
Result = dict[str, Any]
Results = Iterator[Result]


@dataclass(frozen=True, slots=True)
class Action:
    """An action that operators may run, with its parameters, whose values are texts."""

    name: str
    meaning: str
    run: Callable[[Values], Result | Results]
    """Called in a thread with the parameters. Returns the members of the response, or an iterator of results that are
    sent as events; an empty result is sent as a comment, only to notice that the client has disconnected. Raises
    `Problem`.
    """
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    longest: int = 2000
    """Most characters of a parameter."""

    def check(self, values: Values) -> None:
        """Raise `Problem` 400 for unknown, missing and overlong parameters, and for values with a NUL."""
        known = (*self.required, *self.optional)
        for name, value in values.items():
            if name not in known:
                raise Problem(400, f"{self.name} has no parameter {name[:50]!r}; it has {', '.join(known)}")
            if len(value) > self.longest or "\0" in value:
                raise Problem(400, f"{name}: the value is longer than {self.longest} characters, or contains a NUL")
        missing = [name for name in self.required if not values.get(name)]
        if missing:
            raise Problem(400, f"{self.name} needs {', '.join(missing)} in the query, as in ?{missing[0]}=…")


def uuid_of(values: Values, name: str) -> str:
    """Return the value of the parameter `name`, which must be present. Raises `Problem` 400 if it is no UUID."""
    if not _UUID.fullmatch(values[name]):
        raise Problem(400, f"{name}: {values[name][:50]!r} is no UUID")
    return values[name]
