"""Reads the XML of sheets and shared strings of an `.xlsx` workbook, row by row (ECMA-376 part 1, 18.3 and 18.4).

expat calls back for the elements of rows, and no objects are built for the rest, so that a row costs a fifth of what
openpyxl's own reader takes. Which styles mean dates is known from openpyxl, which reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import BinaryIO
from xml.parsers import expat

from openpyxl.utils.datetime import from_excel, from_ISO8601

from rowcall.core.uploads.cell_text import Cell

PIECE = 65_536
MOST_COLUMNS = 16_384
"""Maximum number of columns of a sheet (`XFD`)."""

NAMESPACES = (
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
)
"""Namespaces of transitional documents, which Excel writes, and of strict ones."""

_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")

Row = tuple[int, list[Cell]]
"""The number of the row in the sheet, and its cells."""


class UnreadableError(Exception):
    """The workbook cannot be read. The message says why."""


def shared_strings(source: BinaryIO) -> list[str]:
    """Return the shared strings; phonetic readings (`rPh`) and formats are omitted. Raises `UnreadableError`, and
    various errors for XML that is malformed."""
    strings: list[str] = []
    parts: list[str] = []
    kinds = _kinds("si", "t", "rPh")
    hidden = taking = False

    def start(name: str, _attributes: object) -> None:
        nonlocal hidden, taking
        kind = kinds.get(name)
        if kind == "si":
            parts.clear()
        elif kind == "rPh":
            hidden = True
        elif kind == "t":
            taking = not hidden

    def end(name: str) -> None:
        nonlocal hidden, taking
        kind = kinds.get(name)
        if kind == "si":
            strings.append(_decode_escapes("".join(parts)))
        elif kind == "rPh":
            hidden = False
        elif kind == "t":
            taking = False

    def text(data: str) -> None:
        if taking:
            parts.append(data)

    for _ in _parse_chunks(source, start, end, text):
        pass
    return strings


class Sheet:
    """Reader for the cells of one sheet."""

    def __init__(self, strings: list[str], epoch: datetime, dates: frozenset[int], durations: frozenset[int]) -> None:
        """strings: the shared ones. epoch: the day of the number 0. dates, durations: the styles whose numbers are
        dates or durations.
        """
        self._strings = strings
        self._epoch = epoch
        self._dates = dates
        self._durations = durations
        self._columns: dict[str, int] = {}
        """Column numbers by letters, cached."""
        self._rows: list[Row] = []
        self._number = 0
        self._cells: list[Cell] = []
        self._column = -1
        self._type = "n"
        self._style = "0"
        self._value: list[str] | None = None
        self._inline: list[str] = []
        self._taking: list[str] | None = None
        self._hidden = False

    def rows(self, source: BinaryIO) -> Iterator[Row]:
        """Yield the rows, each up to its last cell. source: XML of the sheet. Raises `UnreadableError`, and various
        errors for XML that is malformed.
        """
        for _ in _parse_chunks(source, self._start_handler(), self._end_handler(), self._text):
            rows, self._rows = self._rows, []
            yield from rows

    def _start_handler(self) -> Callable[[str, dict[str, str]], None]:
        kinds = _kinds("row", "c", "v", "t", "rPh")

        def start(name: str, attributes: dict[str, str]) -> None:
            kind = kinds.get(name)
            if kind == "v":
                if self._value is None:
                    self._value = self._taking = []
            elif kind == "c":
                self._begin_cell(attributes)
            elif kind == "t":
                self._taking = None if self._hidden else self._inline
            elif kind == "row":
                written = attributes.get("r")
                self._number = self._number + 1 if written is None else _whole(written)
                self._column = -1
            elif kind == "rPh":
                self._hidden = True

        return start

    def _end_handler(self) -> Callable[[str], None]:
        kinds = _kinds("row", "c", "v", "t", "rPh")

        def end(name: str) -> None:
            kind = kinds.get(name)
            if kind == "v" or kind == "t":
                self._taking = None
            elif kind == "c":
                self._end_cell()
            elif kind == "row":
                self._rows.append((self._number, self._cells))
                self._cells = []
            elif kind == "rPh":
                self._hidden = False

        return end

    def _text(self, data: str) -> None:
        if self._taking is not None:
            self._taking.append(data)

    def _begin_cell(self, attributes: dict[str, str]) -> None:
        """Begin a cell at the column that its attribute `r` names, else behind the cell before. Raises
        `UnreadableError` for a column that a sheet cannot have.
        """
        place = attributes.get("r")
        if place is None:
            self._column += 1
            if self._column >= MOST_COLUMNS:
                raise UnreadableError(f"row {self._number} has more than {MOST_COLUMNS} cells")
        else:
            letters = place.rstrip("0123456789")
            column = self._columns.get(letters)
            self._column = self._new_column(letters) if column is None else column
        self._type = attributes.get("t", "n")
        self._style = attributes.get("s", "0")
        self._value = None
        if self._inline:
            self._inline = []

    def _new_column(self, letters: str) -> int:
        """Return and cache the number of a column, from 0. Raises `UnreadableError`."""
        number = self._columns[letters] = column_number(letters) - 1
        return number

    def _end_cell(self) -> None:
        """Add the value of the cell that has ended to its row, at its column; cells that were left out before it are
        None.
        """
        cells, column = self._cells, self._column
        value = self._cell()
        if column == len(cells):
            cells.append(value)
            return
        cells += [None] * (column + 1 - len(cells))
        cells[column] = value

    def _cell(self) -> Cell:
        """Return the value of the cell that has ended; None if it is empty or an error."""
        kind = self._type
        if kind == "inlineStr":
            return _decode_escapes("".join(self._inline))
        value = "".join(self._value) if self._value else ""
        if not value or kind == "e":
            return None
        if kind == "s":
            return self._strings[int(value)]
        if kind == "n":
            return self._moment(_number(value))
        if kind == "b":
            return bool(int(value))
        if kind == "d":
            moment: Cell = from_ISO8601(value)
            return moment
        return _decode_escapes(value)

    def _moment(self, value: int | float) -> Cell:
        """Return a number, or the date, time or duration that it means in the style of its cell. None for a date
        outside the calendar, which is an error in the sheet too.
        """
        style = int(self._style)
        if style not in self._dates:
            return value
        try:
            moment: Cell = from_excel(value, self._epoch, timedelta=style in self._durations)
        except (OverflowError, ValueError):
            return None
        return moment


def column_number(letters: str) -> int:
    """Return the number of a column, from 1. Raises `UnreadableError` if the letters are not those of a column."""
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter.upper()) - 64
    if not letters.isascii() or not letters.isalpha() or number > MOST_COLUMNS:
        raise UnreadableError(f"{letters[:20]!r} is no column of a sheet")
    return number


def _parse_chunks(
    source: BinaryIO,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
) -> Iterator[None]:
    """Parse the source. start, end, text: called with names and attributes of elements, and with texts. Yields once for
    each parsed chunk, to let the caller take the rows.
    """
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _no_doctype
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    while piece := source.read(PIECE):
        parser.Parse(piece, False)
        yield
    parser.Parse(b"", True)
    yield


def _no_doctype(*_: object) -> None:
    """Raise `UnreadableError` for a document type: workbooks have none, and attacks with nested entities need one."""
    raise UnreadableError("it has a document type declaration")


def _kinds(*names: str) -> dict[str, str]:
    """Return the names of elements without namespace, by the names that the parser reports."""
    return {f"{space} {name}": name for space in NAMESPACES for name in names}


def _whole(text: str) -> int:
    """Return the integer of a text; some programs write whole numbers as `3.0`."""
    return int(text) if text.isdigit() else int(float(text))


def _number(text: str) -> int | float:
    """Convert a number, to an integer if it is written as one. Raises `ValueError`."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _decode_escapes(text: str) -> str:
    """Decode escapes such as `_x000D_` for characters that XML cannot have (ST_Xstring, 22.9.2.19). Half of a surrogate
    pair stays as it is.
    """
    return _ESCAPED.sub(_character, text) if "_x" in text else text


def _character(match: re.Match[str]) -> str:
    """Return the character of an escape, or the escape itself for half of a surrogate pair."""
    code = int(match[1], 16)
    return match[0] if 0xD800 <= code < 0xE000 else chr(code)
