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
    """The service must not start like this (spec 2.3); at a later reading the object is left out."""

    told: bool = False
    """Nothing is wrong, but it should be known: told once at Information."""

    left_out: int = 0
    """How many objects are not served because of it: they are counted and listed as left out, never as served."""

    def __str__(self) -> str:
        place = "" if self.line is None else f" (comment line: {self.line})"
        return f"{self.object}: {self.message}{place}"
