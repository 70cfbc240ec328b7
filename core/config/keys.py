"""What a configuration key is. The keys themselves stand in `core.config.table`, one row each."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

JsonValue = str | int | float | bool | None | Sequence["JsonValue"] | Mapping[str, "JsonValue"]


class KeyType(enum.Enum):
    """How a key is read. The value is the name the manual uses."""

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


@dataclass(frozen=True, slots=True)
class Key:
    """One row of the table."""

    path: str
    """Colon-separated; `<name>` stands for a name the user chooses, `[]` for an array element."""
    type: KeyType
    default: JsonValue
    meaning: str
    nullable: bool = False
    choices: tuple[str, ...] = ()
    """Allowed values, in canonical spelling; compared without regard to case."""
    secret: bool = False
    """The value never appears in output or logs."""
    open: bool = False
    """Any keys may stand below: names are the user's own and bodies are not checked."""

    @property
    def allowed(self) -> str:
        """The accepted values in words, for messages and for the manual."""
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
                return "numbers"
            case _:
                return str(self.type.value)


def section(path: str, meaning: str, *, open: bool = False) -> Key:
    return Key(path, KeyType.SECTION, {}, meaning, open=open)


def text(path: str, default: str | None, meaning: str, *, nullable: bool = False) -> Key:
    return Key(path, KeyType.TEXT, default, meaning, nullable=nullable or default is None)


def flag(path: str, default: bool, meaning: str) -> Key:
    return Key(path, KeyType.BOOL, default, meaning)


def integer(path: str, default: int | None, meaning: str) -> Key:
    return Key(path, KeyType.INT, default, meaning, nullable=default is None)


def choice(path: str, choices: str, default: str | None, meaning: str) -> Key:
    return Key(path, KeyType.CHOICE, default, meaning, nullable=default is None, choices=tuple(choices.split()))


def interval(path: str, default: str | None, meaning: str) -> Key:
    return Key(path, KeyType.INTERVAL, default, meaning, nullable=default is None)


def texts(path: str, default: Sequence[str] | None, meaning: str) -> Key:
    return Key(path, KeyType.TEXTS, default, meaning, nullable=default is None)


def numbers(path: str, default: Sequence[float], meaning: str) -> Key:
    return Key(path, KeyType.NUMBERS, default, meaning)


def text_map(path: str, default: Mapping[str, str], meaning: str, *, choices: str = "", secret: bool = False) -> Key:
    return Key(path, KeyType.TEXT_MAP, default, meaning, choices=tuple(choices.split()), secret=secret, open=True)
