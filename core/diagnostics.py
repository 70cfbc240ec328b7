"""What the stages that build endpoints noticed, as data: the caller decides where it is logged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One warning about a database object."""

    object: str
    """Which routine: `shop.find_parcels(integer)`."""
    line: str | None
    """The comment line it is about, as written; None when the object as a whole is meant."""
    message: str

    def __str__(self) -> str:
        place = "" if self.line is None else f" (comment line: {self.line})"
        return f"{self.object}: {self.message}{place}"
