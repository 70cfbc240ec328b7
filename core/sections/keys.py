"""Types of configuration keys, and constructors of rows. `core.config.table` contains the keys, one row for each."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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
    """One row of the table: the declaration of a configuration key."""

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
    only_for: tuple[str, ...] = ()
    """Values of the sibling key `Type` for which this key is valid; empty: all."""

    @property
    def bounds(self) -> str:
        """The allowed values of an INT, as in `at least 1`; empty if the ordinary ones are allowed."""
        least = f"at least {self.minimum}" if self.minimum else ""
        most = f"at most {self.maximum}" if self.maximum < MOST else ""
        return ", ".join(filter(None, (least, most)))

    @property
    def allowed(self) -> str:
        """Description of the accepted values, for messages and the manual."""
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


def section(path: str, meaning: str, *, open: bool = False) -> Key:
    return Key(path, KeyType.SECTION, {}, meaning, open=open)


def only_for(types: str, *keys: Key) -> tuple[Key, ...]:
    """Restrict rows to some values of their sibling key `Type`. types: values separated by spaces."""
    return tuple(replace(key, only_for=tuple(types.split())) for key in keys)


def text(path: str, default: str | None, meaning: str, *, nullable: bool = False, secret: bool = False) -> Key:
    return Key(path, KeyType.TEXT, default, meaning, nullable=nullable or default is None, secret=secret)


def flag(path: str, default: bool | None, meaning: str) -> Key:
    return Key(path, KeyType.BOOL, default, meaning, nullable=default is None)


def integer(
    path: str, default: int | None, meaning: str, *, nullable: bool = False, minimum: int = 0, maximum: int = MOST
) -> Key:
    nullable = nullable or default is None
    return Key(path, KeyType.INT, default, meaning, nullable=nullable, minimum=minimum, maximum=maximum)


def choice(path: str, choices: str, default: str | None, meaning: str) -> Key:
    return Key(path, KeyType.CHOICE, default, meaning, nullable=default is None, choices=tuple(choices.split()))


def interval(path: str, default: str | None, meaning: str, *, nullable: bool = False) -> Key:
    return Key(path, KeyType.INTERVAL, default, meaning, nullable=nullable or default is None)


def texts(path: str, default: Sequence[str] | None, meaning: str) -> Key:
    return Key(path, KeyType.TEXTS, default, meaning, nullable=default is None)


def numbers(path: str, default: Sequence[float], meaning: str) -> Key:
    return Key(path, KeyType.NUMBERS, default, meaning)


def text_map(path: str, default: Mapping[str, str], meaning: str, *, choices: str = "", secret: bool = False) -> Key:
    return Key(path, KeyType.TEXT_MAP, default, meaning, choices=tuple(choices.split()), secret=secret, open=True)


def names(path: str, meaning: str) -> Key:
    return Key(path, KeyType.NAMES, (), meaning)


def steps(path: str, meaning: str) -> Key:
    return Key(path, KeyType.STEPS, (), meaning)


def objects(path: str, default: Sequence[Mapping[str, JsonValue]] | None, meaning: str) -> Key:
    return Key(path, KeyType.OBJECTS, default, meaning, nullable=default is None)


def object_map(path: str, default: Mapping[str, JsonValue] | None, meaning: str, *, open: bool = False) -> Key:
    return Key(path, KeyType.OBJECT_MAP, default, meaning, nullable=default is None, open=open)
