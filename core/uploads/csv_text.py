"""Converts the lines of a CSV file to cells, and the cells to the text of a `text[]` (uploads-17).

The twin of `ext.binding.csv_rows`: a line is a row; cells are separated by any of several characters, may be quoted,
and are trimmed.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from rowcall.core.data.record import Record

LONGEST_LINE = 16_777_216
"""Maximum length of a line in characters, because a line is held in memory."""


class MalformedLineError(ValueError):
    """A line cannot be parsed. line: its number, from 1. why: the reason, as a sentence about the line."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


class InvalidByteError(MalformedLineError):
    """A byte of the line is not valid in the encoding of the file."""


@dataclass(frozen=True, slots=True)
class CsvFormat(Record):
    """Format of a CSV file. delimiters: each of these characters separates cells. quotes: cells may be in double
    quotes. blank_is_null: a blank cell is NULL; otherwise an empty text."""

    delimiters: str = ","
    quotes: bool = True
    blank_is_null: bool = True
    encoding: str | None = None
    """Name of a codec. None: UTF-8, with or without a byte order mark."""


class CsvRows:
    """Converts a file, chunk by chunk. Each line gives the array literal of its cells; a blank line gives None. lines:
    number of lines that were converted."""

    def __init__(self, form: CsvFormat) -> None:
        self._form = form
        self._decoder = codecs.getincrementaldecoder(form.encoding or "utf-8")()
        self._decoded = 0
        """Bytes of the file that are decoded."""
        self._held = ""
        self._begun = False
        self.lines = 0

    def feed(self, piece: bytes) -> list[bytes | None]:
        """Return the array literals of the rows that are complete with this chunk; None: a blank line. Raises
        `MalformedLineError` for a line that is not valid, or longer than `LONGEST_LINE`."""
        return self._rows(self._text(piece, ended=False), ended=False)

    def finish(self) -> list[bytes | None]:
        """Return the array literals of the rows at the end of the file; None: a blank line. Raises `MalformedLineError`
        as `feed` does."""
        return self._rows(self._text(b"", ended=True), ended=True)

    def _text(self, piece: bytes, *, ended: bool) -> str:
        state = self._decoder.getstate()
        try:
            try:
                text = self._decoder.decode(piece, ended)
            except UnicodeDecodeError as error:
                # `error.object` begins with the bytes of earlier chunks that the decoder still held.
                before = len(error.object) - len(piece)
                place = self._decoded - before + error.start + 1
                self._decoder.setstate(state)
                valid = self._without_mark(self._decoder.decode(piece[: max(0, error.start - before)]))
                # An error of an earlier line comes first.
                self._rows(valid, ended=False)
                if self._held.endswith("\r"):
                    self._row(self._held[:-1])
                byte = error.object[error.start]
                encoding = self._form.encoding or "utf-8"
                raise InvalidByteError(
                    self.lines + 1, f"byte {place} of the file (0x{byte:02x}) is not valid {encoding}"
                ) from None
        except UnicodeError:
            # Raised by the codec utf-16. It reports an invalid character in preference to a missing byte order mark.
            why = "the file does not begin with a byte order mark; the encodings utf-16le and utf-16be need none"
            raise InvalidByteError(1, why) from None
        self._decoded += len(piece)
        return self._without_mark(text)

    def _without_mark(self, text: str) -> str:
        if self._begun or not text:
            return text
        self._begun = True
        return text.removeprefix("\ufeff")

    def _rows(self, text: str, *, ended: bool) -> list[bytes | None]:
        *lines, self._held = _lines(self._held + text, ended=ended)
        if ended and self._held:
            lines.append(self._held)
        rows = [self._row(line) for line in lines]
        if len(self._held) > LONGEST_LINE:
            raise MalformedLineError(self.lines + 1, f"it is longer than {LONGEST_LINE} bytes")
        return rows

    def _row(self, line: str) -> bytes | None:
        self.lines += 1
        try:
            return array_text(cells(line, self._form))
        except _QuoteError as error:
            raise MalformedLineError(self.lines, str(error)) from None


def _lines(text: str, *, ended: bool) -> list[str]:
    """Return the lines of a text, without their ends: LF, CRLF or CR. The last item is what follows the last line end;
    it may be empty, and is incomplete unless the file has ended.

    A CR at the end of the text may be half of a CRLF, so that it stays in the last item.
    """
    held = "" if ended or not text.endswith("\r") else "\r"
    whole = text[: len(text) - len(held)]
    lines = whole.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines[-1] += held
    return lines


class _QuoteError(ValueError):
    pass


def cells(line: str, form: CsvFormat) -> list[str | None] | None:
    """Return the trimmed cells of a line, each a text or NULL (None); None for a blank line. Raises `_QuoteError` if
    the line contains a NUL, a quote that is not closed, or text behind a closing quote."""
    if not line.strip():
        return None
    if "\0" in line:
        raise _QuoteError("it holds a NUL character, which PostgreSQL cannot store")
    result: list[str | None] = []
    place = 0
    while True:
        text, place = _cell(line, place, form)
        text = text.strip()
        result.append(None if form.blank_is_null and not text else text)
        if place >= len(line):
            return result
        place += 1
        if place == len(line):
            result.append(None if form.blank_is_null else "")
            return result


def _cell(line: str, place: int, form: CsvFormat) -> tuple[str, int]:
    """Return the text of the cell that begins at `place`, and the position of the delimiter behind it or of the end of
    the line. Raises `_QuoteError` as `cells` does."""
    if form.quotes:
        start = _skip_blanks(line, place, form.delimiters)
        if line.startswith('"', start):
            return _read_quoted_cell(line, start + 1, form.delimiters)
    end = place
    while end < len(line) and line[end] not in form.delimiters:
        end += 1
    return line[place:end], end


def _read_quoted_cell(line: str, place: int, delimiters: str) -> tuple[str, int]:
    text = ""
    while True:
        end = line.find('"', place)
        if end < 0:
            raise _QuoteError("a quote is not closed")
        text += line[place:end]
        if not line.startswith('"', end + 1):
            break
        text += '"'
        place = end + 2
    behind = _skip_blanks(line, end + 1, delimiters)
    if behind < len(line) and line[behind] not in delimiters:
        raise _QuoteError("text follows a closing quote")
    return text, behind


def _skip_blanks(line: str, place: int, delimiters: str) -> int:
    """Return the position behind the blanks at `place`. A delimiter, such as a tab, is no blank."""
    while place < len(line) and line[place].isspace() and line[place] not in delimiters:
        place += 1
    return place


def array_text(row: list[str | None] | None) -> bytes | None:
    """Return the array literal of a row in UTF-8. row: its cells; None: a blank line, for which the result is None."""
    if row is None:
        return None
    return ("{" + ",".join("NULL" if cell is None else _element(cell) for cell in row) + "}").encode()


def _element(cell: str) -> str:
    return '"' + cell.replace("\\", "\\\\").replace('"', '\\"') + '"'
