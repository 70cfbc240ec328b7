"""What the stages that build endpoints noticed, as data: the caller decides where it is logged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong with a database object or a file."""

    object: str
    """Which routine: `shop.find_parcels(integer)`."""
    line: str | None
    """The comment line it is about, as written; None when the object as a whole is meant."""
    message: str
    """What is wrong, and what to do or what happens instead."""
    fatal: bool = False
    """The service must not start like this (reference 01, 9). Otherwise it is a warning."""

    told: bool = False
    """Nothing is wrong, but it should be known: told once at Information."""

    def __str__(self) -> str:
        place = "" if self.line is None else f" (comment line: {self.line})"
        return f"{self.object}: {self.message}{place}"
