"""The parameters of a file, and its statements with renumbered placeholders (sql-files-14 to sql-files-16).

Each statement is prepared separately, so its parameters are numbered from 1: a statement that uses only `$2` of the
file gets `$1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rowcall.core.sqlfile.splitting import RawStatement

MAX_PARAMETERS = 65_535
"""Maximum number of parameters in one Bind message."""


class PlaceholderError(Exception):
    """The placeholders of a file are invalid. start: offset of the wrong one in the file."""

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


@dataclass(frozen=True, slots=True)
class NumberedStatement:
    """A statement with the placeholders `$1 … $n`, ready to be prepared."""

    text: str
    numbers: tuple[int, ...]
    """For `$1`, `$2` …: 0-based index of the parameter of the file."""
    shifts: tuple[tuple[int, int], ...]
    """Behind each placeholder: an offset in `text`, and the equivalent offset in the file."""

    def in_file(self, position: int) -> int:
        """Return the offset in the file for an offset in `text`. A negative offset counts as 0."""
        before, there = max(shift for shift in self.shifts if shift[0] <= max(position, 0))
        return there + max(position, 0) - before


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a file, and its statements with placeholders for them."""

    names: tuple[str, ...]
    """Names in the order of their first occurrence, spelled as there; `$1 … $n` if the parameters have no names."""
    statements: tuple[NumberedStatement, ...]


def number(statements: Sequence[RawStatement]) -> Parameters:
    """Return the parameters of a file, and its statements with renumbered placeholders.

    Raises `PlaceholderError` if a number is out of range, or if the file has both named and positional placeholders.
    """
    names = _positional(statements) or _placeholder_names(statements)
    index = {name.lower(): position for position, name in enumerate(names)}
    return Parameters(names, tuple(_number_placeholders(statement, index) for statement in statements))


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


def _placeholder_names(statements: Sequence[RawStatement]) -> tuple[str, ...]:
    names: dict[str, str] = {}
    for statement in statements:
        for placeholder in statement.placeholders:
            names.setdefault(placeholder.name.lower(), placeholder.name)
    return tuple(names.values())


def _number_placeholders(statement: RawStatement, index: dict[str, int]) -> NumberedStatement:
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
    return NumberedStatement("".join(pieces), tuple(used), tuple(shifts))


def _index(name: str, index: dict[str, int]) -> int:
    return int(name[1:]) - 1 if name.startswith("$") else index[name.lower()]
