"""Configuration keys and their types. `declaration` creates them; `core.config.table` has all of them."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST = 2_147_483_647
"""Largest allowed value of an INT that declares no other."""

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]


class KeyType(enum.Enum):
    """The type of a key, which decides how it is read. The value of a member is its name in the manual."""

    SECTION = "section"
    TEXT = "text"
    BOOL = "bool"
    INT = "int"
    CHOICE = "one of"
    INTERVAL = "interval"
    TEXTS = "list of texts"
    NUMBERS = "list of numbers"
    TEXT_MAP = "map of texts"
    OBJECT_MAP = "map of sections"
    OBJECTS = "list of sections"
    STEPS = "list of texts or sections"
    NAMES = "list of names, or map of names to default texts"
    ANY = "any value"


@dataclass(frozen=True, slots=True)
class Key:
    """The declaration of a configuration key."""

    path: str
    """Names separated by colons; `<name>` is a user-defined name, `[]` an array element."""
    type: KeyType
    default: JsonValue
    meaning: str
    nullable: bool = False
    choices: tuple[str, ...] = ()
    """Allowed values in canonical spelling; case is ignored."""
    minimum: int = 0
    """Smallest allowed value of an INT."""
    maximum: int = MOST
    """Largest allowed value of an INT."""
    secret: bool = False
    """The value must not appear in output or logs."""
    open: bool = False
    """Keys below are user-defined and not checked."""
    lenient: bool = False
    """Any text is accepted: an unknown word means the default (configuration-16), or the entry that contains it is
    skipped (execution-7, execution-20)."""
    only_for: tuple[str, ...] = ()
    """Values of the sibling key `Type` for which this key is valid; empty: all."""

    @property
    def bounds(self) -> str:
        """The bounds of an INT, as in `at least 1`; empty if they are the default ones, 0 to `MOST`."""
        least = f"at least {self.minimum}" if self.minimum else ""
        most = f"at most {self.maximum}" if self.maximum < MOST else ""
        return ", ".join(filter(None, (least, most)))

    @property
    def allowed(self) -> str:
        """Description of the accepted values, for messages and the manual; without the bounds of an INT."""
        match self.type:
            case KeyType.CHOICE:
                return ", ".join(self.choices)
            case KeyType.BOOL:
                return "true, yes, 1, false, no, 0"
            case KeyType.INT:
                return "a whole number"
            case KeyType.INTERVAL:
                return 'a duration such as "5 seconds", "1.5h" or "00:00:05"'
            case KeyType.NUMBERS:
                return "numbers of at least 0"
            case _:
                return str(self.type.value)
