"""A request that cannot be bound: what is wrong with which of its values, for whoever sent it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SHOWN = 60

MOST_FAULTS = 20
"""More are not listed: a request may hold a million of them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request."""

    parameter: str
    """Its name in requests, or the key that is none."""
    path: str
    """Where the value stands: `lines[2].trackId`; the parameter itself where it is no part of anything."""
    message: str
    invalid_value: bool = True
    """A value is there and cannot be used. False: a name is missing, or is none."""

    @property
    def discreet(self) -> Fault:
        """The same without the value, for endpoints whose values are nobody's business."""
        if not self.invalid_value:
            return self
        return Fault(self.parameter, self.path, f"parameter '{self.path}': the value cannot be used")

    @property
    def members(self) -> dict[str, str]:
        return {"parameter": self.parameter, "path": self.path, "message": self.message}


class BindingError(Exception):
    """The request cannot be bound. `status` follows binding-25, binding-26; `detail` is for the caller."""

    def __init__(
        self, status: int, detail: str, parameter: str | None = None, faults: Sequence[Fault] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        if faults is None:
            faults = () if parameter is None else (Fault(parameter, parameter, detail),)
        self.faults = tuple(faults)
        """Everything that was found, for `errors` in the answer."""

    @classmethod
    def of(cls, status: int, faults: Sequence[Fault], first: Fault) -> BindingError:
        """One error for all faults; `first` gives the detail."""
        others = len(faults) - 1
        more = f" (and {others} more, see errors)" if others else ""
        listed = sorted(faults, key=lambda fault: fault is not first)[:MOST_FAULTS]
        return cls(status, f"{first.message}{more}", faults=listed)

    def discreetly(self) -> BindingError:
        """The same, repeating none of the values that it is about."""
        faults = [fault.discreet for fault in self.faults]
        same = len(faults) == 0 or faults[0].message == self.faults[0].message
        return BindingError(self.status, self.detail if same else faults[0].message, faults=faults)


def type_word(cast: str) -> str:
    """A type as people write it: `mood` for `"public"."mood"`."""
    return re.sub(r'"([a-z_][a-z0-9_]*)"', r"\1", cast).removeprefix("public.")


def shown(value: str | bytes) -> str:
    """A value for a message: quoted, cut, and fit to be printed."""
    text = value[: 4 * _SHOWN].decode(errors="replace") if isinstance(value, bytes) else value
    cut = text[:_SHOWN] + "…" if len(text) > _SHOWN else text
    printable = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cut)
    return f"'{printable}'"
