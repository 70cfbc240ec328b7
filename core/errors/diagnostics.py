"""Diagnostics of building endpoints, as data; the caller logs them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message to the operator about a database object or a file."""

    object: str
    """Name of the object: `shop.find_parcels(integer)`."""
    line: str | None
    """The comment line in question, as written; None if the whole object is concerned."""
    message: str
    """The mistake, and the remedy or the consequence."""
    fatal: bool = False
    """The service must not start (caching-38); if a later snapshot has the mistake, the object is left out."""

    informational: bool = False
    """Not a mistake, but information: logged once at the level Information."""

    left_out: int = 0
    """Number of objects that are not served because of the mistake; they are counted and listed as left out."""

    switched: bool = False
    """A configuration key is the cause and the remedy for all objects, so that `merge_diagnostics` merges these
    diagnostics."""

    def __str__(self) -> str:
        place = "" if self.line is None else f" (comment line: {self.line})"
        return f"{self.object}: {self.message}{place}"


FEW = 2
"""Maximum number of objects with the same mistake that have separate diagnostics."""
MOST_NAMED = 20
"""Maximum number of objects that one diagnostic names."""


def merge_diagnostics(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Yield the diagnostics, each only once. Those that are `switched` and have equal messages are merged if they
    concern more than `FEW` objects.

    A merged diagnostic names at most `MOST_NAMED` of the objects, and is yielded in the place of the first one.
    """
    alike: dict[Hashable, list[Diagnostic]] = {}
    for diagnostic in dict.fromkeys(diagnostics):
        alike.setdefault(
            (diagnostic.message, diagnostic.informational) if diagnostic.switched else diagnostic, []
        ).append(diagnostic)
    for group in alike.values():
        objects = list(dict.fromkeys(diagnostic.object for diagnostic in group))
        if len(objects) <= FEW:
            yield from group
            continue
        lines = {diagnostic.line for diagnostic in group}
        yield replace(
            group[0],
            object=_join_objects(objects),
            line=group[0].line if len(lines) == 1 else None,
            fatal=any(diagnostic.fatal for diagnostic in group),
            left_out=sum(diagnostic.left_out for diagnostic in group),
        )


def _join_objects(objects: list[str]) -> str:
    more = len(objects) - MOST_NAMED
    return ", ".join(objects[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
