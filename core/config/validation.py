"""Unknown keys, and the known key that was probably meant (reference 06, 1.5)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from rowcall.core.config.table import KEYS, ROOMS, Room
from rowcall.core.config.tree import Origin, Section


@dataclass(frozen=True, slots=True)
class UnknownKey:
    path: str
    """In the user's own spelling, reported once at its highest unknown level."""
    origin: Origin
    suggestion: str | None
    """Full path of the nearest known key."""

    def __str__(self) -> str:
        meant = f" (did you mean {self.suggestion}?)" if self.suggestion else ""
        return f"{self.path} at {self.origin}{meant}"


def unknown_keys(root: Section) -> tuple[UnknownKey, ...]:
    """Compare `root` with the table. Open maps and array elements are not inspected."""
    return tuple(_unknown(root, ROOMS, "", ""))


def _unknown(section: Section, room: Room, path: str, known_path: str) -> Iterator[UnknownKey]:
    for child in section:
        child_path = f"{path}:{child.name}" if path else child.name
        known = room.below(child.name)
        if known is None:
            yield UnknownKey(child_path, child.origin, _suggestion(child.name, room, known_path))
        elif isinstance(child.node, Section) and not known.open:
            below = f"{known_path}:{known.name}" if known_path else known.name
            yield from _unknown(child.node, known, child_path, below)


def _suggestion(name: str, room: Room, known_path: str) -> str | None:
    """A name of the same section that looks alike, else the highest key with exactly this name in another section."""
    near = difflib.get_close_matches(name.casefold(), room.rooms, n=1, cutoff=0.7)
    if near:
        known = room.rooms[near[0]].name
        return f"{known_path}:{known}" if known_path else known
    elsewhere = [key.path for key in KEYS if key.path.rpartition(":")[2].casefold() == name.casefold()]
    depth = min((path.count(":") for path in elsewhere), default=0)
    highest = [path for path in elsewhere if path.count(":") == depth]
    return highest[0] if len(highest) == 1 else None
