"""What the stages that build endpoints noticed, as data: the caller decides where it is logged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace


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
    """The service must not start like this (caching-38); at a later reading the object is left out."""

    told: bool = False
    """Nothing is wrong, but it should be known: told once at Information."""

    left_out: int = 0
    """How many objects are not served because of it: they are counted and listed as left out, never as served."""

    switched: bool = False
    """One key of the configuration is the cause, and mends it for all objects: `gathered` makes one of them."""

    def __str__(self) -> str:
        place = "" if self.line is None else f" (comment line: {self.line})"
        return f"{self.object}: {self.message}{place}"


FEW = 2
"""So many objects with one and the same mistake are told of one by one."""
MOST_NAMED = 20


def gathered(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Each once; what one key does to many objects is one diagnostic that names them, where the first one stood. A
    mistake in a comment keeps its own, with its line.
    """
    alike: dict[Hashable, list[Diagnostic]] = {}
    for one in dict.fromkeys(diagnostics):
        alike.setdefault((one.message, one.told) if one.switched else one, []).append(one)
    for group in alike.values():
        objects = list(dict.fromkeys(one.object for one in group))
        if len(objects) <= FEW:
            yield from group
            continue
        lines = {one.line for one in group}
        yield replace(
            group[0],
            object=_named(objects),
            line=group[0].line if len(lines) == 1 else None,
            fatal=any(one.fatal for one in group),
            left_out=sum(one.left_out for one in group),
        )


def _named(objects: list[str]) -> str:
    more = len(objects) - MOST_NAMED
    return ", ".join(objects[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
