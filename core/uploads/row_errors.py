"""Rows of an import that the database refuses: how they are treated, and how they are reported."""

from __future__ import annotations

import enum
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rowcall.core.data.record import Record
from rowcall.core.text.array_literal import elements, literal

MOST_SHOWN = 100
"""Maximum number of errors in the description of a file whose rows are skipped."""
MOST_COLLECTED = 10_000
"""Maximum of the limit of `collect`."""
LONGEST_VALUE = 200


class OnError(enum.Enum):
    """What the service does after an error of a row."""

    ABORT = "abort"
    """The first error ends the request."""
    SKIP = "skip"
    """Rows with errors are left out."""
    COLLECT = "collect"
    """All rows are tried. If one of them has an error, the request fails with a list of the errors."""


@dataclass(frozen=True, slots=True)
class ErrorHandling(Record):
    """Treatment of rows with errors. limit: for `COLLECT`, number of errors after which no further rows are tried."""

    mode: OnError = OnError.ABORT
    limit: int = MOST_SHOWN


def error_handling(text: str) -> ErrorHandling | None:
    """Return the treatment for a value of `on_error`: `abort`, `skip`, `collect` or `collect 50`; None: another
    text."""
    word, *rest = text.lower().split() or [""]
    modes = {mode.value: mode for mode in OnError}
    if word not in modes or len(rest) > 1 or (rest and modes[word] is not OnError.COLLECT):
        return None
    if not rest:
        return ErrorHandling(modes[word])
    number = rest[0]
    if not (number.isascii() and number.isdigit() and len(number) < 10 and 0 < int(number) <= MOST_COLLECTED):
        return None
    return ErrorHandling(modes[word], int(number))


_VALUE = re.compile(r'[:=] "(.*)"\Z|"([^"]*)"', re.DOTALL)
_CLASSES = ("22", "23", "P0")
"""Classes of SQLSTATE that are faults of a row: values, constraints, and what functions raise."""


def is_fault_of_row(sqlstate: str) -> bool:
    """Return whether an error with this SQLSTATE is the fault of the row, so that other rows can be tried."""
    return sqlstate[:2] in _CLASSES


def described_error(
    number: int,
    cells: bytes | None,
    names: Sequence[str] | None,
    sqlstate: str,
    message: str,
    column: str | None,
    place: dict[str, Any],
) -> dict[str, Any]:
    """Return the description of a row that was refused, as members of a JSON object.

    number: of the row, from 1. cells: its array literal, or JSON; None: a blank row. names: of its columns; None: they
    are unknown. column: name that the server reports; None: it reports none, so that the wrong cell is found by the
    text that the message quotes. An unnamed column is described by its number, from 1. place: members for file and
    sheet.
    """
    error: dict[str, Any] = {**place, "row": number}
    value, index = _quoted_cell(message, cells)
    if column is None and index is not None:
        column = names[index] if names is not None and index < len(names) else str(index + 1)
    if column is not None:
        error["column"] = column
    if value is not None:
        error["value"] = value[:LONGEST_VALUE]
    return {**error, "reason": message, "code": sqlstate}


def _quoted_cell(message: str, cells: bytes | None) -> tuple[str | None, int | None]:
    """Return the text of the cell that a message quotes, and its index from 0; both None: no cell has such a text, or
    the cells are no array."""
    if cells is None or not cells.startswith(b"{"):
        return None, None
    texts = elements(cells.decode(errors="replace"))
    for match in _VALUE.finditer(message):
        quoted = match[1] if match[1] is not None else match[2]
        if quoted in texts:
            return quoted, texts.index(quoted)
    return None, None


class ColumnMapping:
    """Puts the cells of rows in the order of expected columns, by the names in the first row, in any case. Rows and
    results are array literals; None: a blank row."""

    def __init__(self, expected: Sequence[str]) -> None:
        self.expected = tuple(expected)
        self._indexes: tuple[int, ...] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the first row has been read, and has all expected columns."""
        return self._indexes is not None

    def read_header(self, cells: bytes | None) -> list[str]:
        """Read the first row, and return the names of expected columns that it lacks. If it lacks none, rows can be
        mapped from now on."""
        names = [(text or "").strip().casefold() for text in _texts(cells)]
        missing = [name for name in self.expected if name.casefold() not in names]
        if not missing:
            self._indexes = tuple(names.index(name.casefold()) for name in self.expected)
        return missing

    def map_row(self, cells: bytes | None) -> bytes | None:
        """Return the row with the cells of the expected columns. Missing cells, and all cells of a blank row, are NULL.
        `is_known` has to be true."""
        texts = _texts(cells)
        picked = [texts[index] if index < len(texts) else None for index in self._indexes or ()]
        return literal(list(picked), quoted=True).encode()


def _texts(cells: bytes | None) -> list[str | None]:
    return [] if cells is None else elements(cells.decode(errors="replace"))
