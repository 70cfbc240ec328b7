"""Every configuration key, in documented order. Loading, typed reads, validation and the manual all come from here.

A new capability adds a module of rows and names it below; nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rowcall.core.config.keys import Key, KeyType
from rowcall.core.config.rows import application, connections, errors, http_server, log, service, table_formats

KEYS: tuple[Key, ...] = (
    *application.ROWS,
    *connections.ROWS,
    *http_server.ROWS,
    *log.ROWS,
    *errors.ROWS,
    *service.ROWS,
    *table_formats.ROWS,
)

ALIASES: Mapping[str, str] = {"kestrel": "HttpServer"}
"""Second names of top-level sections, by case-folded name."""


@dataclass(slots=True)
class Room:
    """A known name: its row, and the known names below it."""

    name: str
    key: Key | None = None
    rooms: dict[str, Room] = field(default_factory=dict)

    def below(self, name: str) -> Room | None:
        """The known name `name`, or the placeholder for names of the user's own."""
        return self.rooms.get(name.casefold()) or self.rooms.get("<name>")

    @property
    def open(self) -> bool:
        """Whatever stands below is the user's own, or an array, whose elements are not inspected."""
        return self.key is not None and (self.key.open or self.key.type in (KeyType.TEXTS, KeyType.NUMBERS))


def build_rooms(keys: Iterable[Key]) -> Room:
    """Arrange rows by the segments of their paths."""
    root = Room("")
    for key in keys:
        room = root
        for name in key.path.split(":"):
            room = room.rooms.setdefault(name.casefold(), Room(name))
        room.key = key
    return root


ROOMS = build_rooms(KEYS)
_BY_PATH = {key.path.casefold(): key for key in KEYS}


def key_at(path: str) -> Key:
    """The row of `path`. A KeyError is a mistake in our own code: every key that is read is declared."""
    return _BY_PATH[path.casefold()]


_SINGLE = {KeyType.TEXT, KeyType.BOOL, KeyType.INT, KeyType.CHOICE, KeyType.INTERVAL}


def knows(path: str) -> bool:
    """True when a single value at `path` would be read: of a key, an array element or an entry of an open map."""
    room = ROOMS
    for name in path.split(":"):
        if room.open:
            return True
        below = room.below(name)
        if below is None:
            return False
        room = below
    return room.key is not None and room.key.type in _SINGLE
