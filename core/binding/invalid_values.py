"""Faults inside a value: collected while the value is read, and reported when the place of the value is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rowcall.core.errors.binding_error import MOST_FAULTS, Fault, quote_value, type_word


@dataclass(frozen=True, slots=True)
class InvalidValue:
    """One invalid place in a value."""

    place: str
    """Path below the value: `[2].trackId`; empty for the value itself."""
    reason: str
    type_text: str | None = None
    """The expected type. None: the place is not an attribute of the type."""

    def with_outer_step(self, step: str) -> InvalidValue:
        """Return the same fault as seen from an outer value. step: path from the outer value to this one, such as
        `[2]`."""
        return replace(self, place=f"{step}{self.place}")

    def with_remedy(self, remedy: str) -> InvalidValue:
        """Return the same fault with a remedy in its reason."""
        return replace(self, reason=f"{self.reason}; {remedy}")

    def fault(self, parameter: str, path: str) -> Fault:
        """Return the fault for a parameter. path: place of the whole value."""
        place = f"{path}{self.place}"
        if self.type_text is None:
            return Fault(parameter, place, f"unknown parameter {quote_value(place)}", invalid_value=False)
        return Fault(parameter, place, f"parameter '{place}' ({type_word(self.type_text)}): {self.reason}")


class InvalidValueError(ValueError):
    """A value is invalid. spots: its invalid places, at most `MOST_FAULTS`.

    Paths are extended while the exception passes outer values, so that valid values cost nothing.
    """

    def __init__(self, spots: Iterable[InvalidValue]) -> None:
        self.spots = tuple(spots)[:MOST_FAULTS]
        super().__init__("; ".join(f"{spot.place} {spot.reason}".strip() for spot in self.spots))

    def with_outer_step(self, step: str) -> list[InvalidValue]:
        """Return the invalid places as seen from an outer value. step: path from the outer value to this one."""
        return [spot.with_outer_step(step) for spot in self.spots]


def invalid_value(reason: str, type_text: str) -> InvalidValueError:
    return InvalidValueError((InvalidValue("", reason, type_text),))
