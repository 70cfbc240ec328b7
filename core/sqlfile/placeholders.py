"""The parameters of a file, and its statements with `$1 … $n` of their own (sql-files-14 to sql-files-16).

A statement is prepared alone, so its parameters are numbered alone: one that uses only `$2` of the file gets `$1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.core.sqlfile.splitting import RawStatement

MAX_PARAMETERS = 65_535
"""What one Bind message can hold."""


class PlaceholderError(Exception):
    """The placeholders of a file cannot be understood. `start`: offset in the file."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


@dataclass(frozen=True, slots=True)
class Numbered:
    """A statement ready to be prepared."""

    text: str
    numbers: tuple[int, ...]
    """0-based: which parameter of the file is `$1`, `$2` …"""
    shifts: tuple[tuple[int, int], ...]
    """Offset in `text` and in the file, for each place from which on both run in parallel."""

    def in_file(self, position: int) -> int:
        """Offset in the file of an offset in `text`."""
        before, there = max(shift for shift in self.shifts if shift[0] <= max(position, 0))
        return there + max(position, 0) - before


@dataclass(frozen=True, slots=True)
class Parameters:
    names: tuple[str, ...]
    """In the order of their first appearance, in their first spelling; `$1 … $n` where they have no names."""
    statements: tuple[Numbered, ...]


def number(statements: Sequence[RawStatement]) -> Parameters:
    """Raises `PlaceholderError` for a file that has both kinds of placeholders."""
    names = _positional(statements) or _named(statements)
    index = {name.lower(): position for position, name in enumerate(names)}
    return Parameters(names, tuple(_numbered(statement, index) for statement in statements))


def _positional(statements: Sequence[RawStatement]) -> tuple[str, ...]:
    highest, named, positional = 0, None, False
    for statement in statements:
        for placeholder in statement.placeholders:
            start = statement.start + placeholder.start
            if not placeholder.positional:
                named = (start, placeholder.name) if named is None else named
                continue
            positional = True
            digits = placeholder.name[1:].lstrip("0")
            if not digits or len(digits) > 5 or int(digits) > MAX_PARAMETERS:
                raise PlaceholderError(f"{placeholder.name[:20]} is not between $1 and ${MAX_PARAMETERS}", start)
            highest = max(highest, int(digits))
    if positional and named is not None:
        raise PlaceholderError(f"a file has either $1 or :{named[1]}, not both kinds of placeholders", named[0])
    return tuple(f"${position}" for position in range(1, highest + 1))


def _named(statements: Sequence[RawStatement]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for statement in statements:
        for placeholder in statement.placeholders:
            names.setdefault(placeholder.name.lower(), placeholder.name)
    return tuple(names.values())


def _numbered(statement: RawStatement, index: dict[str, int]) -> Numbered:
    used = sorted({_index(placeholder.name, index) for placeholder in statement.placeholders})
    own = {parameter: position for position, parameter in enumerate(used, 1)}
    pieces: list[str] = []
    shifts = [(0, statement.start)]
    length = position = 0
    for placeholder in statement.placeholders:
        piece = statement.text[position : placeholder.start] + f"${own[_index(placeholder.name, index)]}"
        pieces.append(piece)
        length += len(piece)
        position = placeholder.end
        shifts.append((length, statement.start + position))
    pieces.append(statement.text[position:])
    return Numbered("".join(pieces), tuple(used), tuple(shifts))


def _index(name: str, index: dict[str, int]) -> int:
    return int(name[1:]) - 1 if name.startswith("$") else index[name.lower()]
