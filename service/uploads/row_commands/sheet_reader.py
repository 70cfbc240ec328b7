"""Reads the rows of a workbook, in a process of its own: `python -m …row_commands.sheet_reader OPTIONS`.

A workbook can do harm to a reader: it may unpack to gigabytes, and parsing it holds the interpreter lock all the time.
This process can use no more than the limits below, it delays no request, and it ends with the file.

Of `.xlsx`, openpyxl reads the list of parts and the styles; `sheet_xml` reads the sheets row by row, so that memory
does not grow with them (except for shared strings). The other formats, which cannot have more than 65,536 rows or are
rare, are read by python-calamine: it is fast, and reads a sheet as a whole.

The file is open on the descriptor that the options name. Messages in JSON go to the standard output, each with its
length on a line before it: `{"sheets": [...]}`, then for each sheet `{"sheet": name}` and `{"rows": [[index, cells],
...]}`, at last `{"end": true}`; or `{"error": "..."}` if it cannot be read, `{"too_large": "..."}` if it exceeds a
limit.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO

import orjson

from rowcall.core.text.array_literal import quote
from rowcall.core.uploads.cell_text import Cell, MomentFormats, cell_text, column_name
from rowcall.service.uploads.row_commands.binary_sheets import readable_workbook
from rowcall.service.uploads.row_commands.sheet_xml import Row, Sheet, UnreadableError, column_number, shared_strings

MEMORY = 1_073_741_824
"""Limit of the address space in bytes."""
SECONDS = 900
"""Limit of processor time."""
UNPACKED = 4_294_967_296
"""Maximum number of bytes of all parts together."""
PACKED_WELL = 500
"""Maximum ratio of unpacked to packed size of a large part; XML of equal rows has a ratio of about a hundred."""
LARGE_PART = 67_108_864
"""Bytes from which a part is large."""
BEHIND = 10
"""Added to the niceness of the process: if processors are short, requests that take a millisecond come first."""
BATCH, BATCH_TEXT = 200, 65_536
"""Approximate maximum number of rows of one message, and of their characters."""

_ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL = re.compile(rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]{1,3})\d')


def main(options: dict[str, Any], out: BinaryIO) -> None:
    """Send the messages of one workbook to `out` (see the module). Raises nothing for a workbook that cannot be read.

    options: `file`: descriptor. `all`, `sheet`: all sheets, or the one of this name; None: the first. `max_cells`:
    cells that are read at most. `time`, `date`, `datetime`: as for `MomentFormats`. `json`: rows are JSON instead of
    array literals.
    """

    def send(message: dict[str, Any]) -> None:
        text = orjson.dumps(message)
        out.write(b"%d\n%b" % (len(text), text))
        out.flush()

    try:
        workbook = _workbook(os.fdopen(options["file"], "rb", closefd=False), CellLimit(options["max_cells"]))
        names = _select_sheets(workbook.names, options)
        send({"sheets": names})
        formats = MomentFormats(options["time"], options["date"], options["datetime"])
        for name in names:
            send({"sheet": name})
            rows = workbook.rows(name)
            for batch in _batches(_texts(rows, formats), as_json=options["json"]):
                send({"rows": batch})
    except BrokenPipeError:
        return
    except MemoryError:
        send({"too_large": f"reading it needs more than {MEMORY} bytes of memory"})
    except TooManyCellsError as error:
        send({"too_large": str(error)})
    except Exception as error:
        send({"error": f"{type(error).__name__}: {error}"[:500]})
    else:
        send({"end": True})


def _select_sheets(names: Sequence[str], options: dict[str, Any]) -> list[str]:
    """Return the sheets that the options select: all, the one of this name in any case, or the first; empty if there is
    no such sheet. options: as for `main`.
    """
    if options["all"]:
        return list(names)
    sheet = options["sheet"]
    if sheet is None:
        return list(names[:1])
    return [name for name in names if name.casefold() == sheet.casefold()]


class TooManyCellsError(Exception):
    """The cell limit is exceeded. The message states the limit."""


class CellLimit:
    """Counts the cells of all sheets that are read. A row counts with its empty cells up to the last column of the
    sheet, as it is processed with them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def check(self, count: int) -> None:
        """Raise `TooManyCellsError` if `count` more cells exceed the limit."""
        if count > self._left:
            raise TooManyCellsError(
                f"it has more than {self._most} cells, empty ones up to the last column included; split it, or delete "
                "cells far away from the others"
            )

    def take(self, count: int) -> None:
        """Count cells. Raise `TooManyCellsError` if they exceed the limit."""
        self.check(count)
        self._left -= count


def _workbook(file: BinaryIO, limit: CellLimit) -> _Workbook | _OtherWorkbook:
    """Return the reader for the format of the file. Raises `UnreadableError` for a file that unpacks to too much, and
    various errors for one that is no workbook.
    """
    file.seek(0)
    if file.read(4) != b"PK\x03\x04":
        return _OtherWorkbook(file, limit)
    with zipfile.ZipFile(file) as parts:
        infos = parts.infolist()
    _check_parts(infos)
    if any(info.filename == "xl/workbook.bin" for info in infos):
        return _OtherWorkbook(readable_workbook(file), limit)
    return _Workbook(file, limit)


def _check_parts(parts: Iterable[zipfile.ZipInfo]) -> None:
    """Raise `UnreadableError` if all parts together would unpack to more than `UNPACKED` bytes, or a large part to more
    than `PACKED_WELL` times its packed size.

    No part can unpack to more than it states, as `zipfile` stops there.
    """
    total = 0
    for part in parts:
        total += part.file_size
        if part.file_size > LARGE_PART and part.file_size > PACKED_WELL * max(1, part.compress_size):
            raise UnreadableError(f"the part {part.filename} unpacks to {part.file_size} bytes")
    if total > UNPACKED:
        raise UnreadableError(f"it unpacks to {total} bytes")


class _Workbook:
    """Reader of `.xlsx`, row by row."""

    def __init__(self, file: BinaryIO, limit: CellLimit) -> None:
        from openpyxl.reader.excel import SHARED_STRINGS, ExcelReader
        from openpyxl.styles.stylesheet import apply_stylesheet

        self._limit = limit
        reader = ExcelReader(file, read_only=True, data_only=True, keep_links=False)
        reader.read_manifest()
        reader.read_workbook()
        apply_stylesheet(reader.archive, reader.wb)
        self._parts = reader.archive
        self._workbook = reader.wb
        self._sheets = {
            sheet.name: rel.target
            for sheet, rel in reader.parser.find_sheets()
            if rel.target in reader.valid_files and "chartsheet" not in rel.Type
        }
        self._strings: list[str] = []
        strings_part = reader.package.find(SHARED_STRINGS)
        if strings_part is not None:
            with self._parts.open(strings_part.PartName[1:]) as source:
                self._strings = shared_strings(source)

    @property
    def names(self) -> list[str]:
        return list(self._sheets)

    def rows(self, name: str) -> Iterator[Row]:
        """Yield all rows, filled with None up to the number of columns that `_size` counts. Raises `TooManyCellsError`,
        and as `Sheet.rows` does."""
        book = self._workbook
        sheet = Sheet(self._strings, book.epoch, frozenset(book._date_formats), frozenset(book._timedelta_formats))
        height, width = self._size(name)
        self._limit.check(height * width)
        with self._parts.open(self._sheets[name]) as source:
            for number, cells in sheet.rows(source):
                # Counted again, because `_size` searches for markup in ASCII, and expat reads UTF-16 too.
                self._limit.take(max(width, len(cells)))
                yield number, cells + [None] * (width - len(cells))

    def _size(self, name: str) -> tuple[int, int]:
        """Return the numbers of rows and columns of a sheet, counted in its XML: what the sheet says about its size may
        be wrong. They are too small if cells do not name their columns, or if the XML is in UTF-16."""
        columns: set[bytes] = set()
        height = 0
        with self._parts.open(self._sheets[name]) as source:
            rest = b""
            while piece := source.read(1_048_576):
                text = rest + piece
                columns.update(_CELL.findall(text))
                height += len(_ROW.findall(text)) - len(_ROW.findall(rest))
                rest = text[-200:]
        return height, max((column_number(letters.decode()) for letters in columns), default=0)


class _OtherWorkbook:
    """Reader of `.xls` and `.xlsb`."""

    def __init__(self, file: BinaryIO, limit: CellLimit) -> None:
        from python_calamine import CalamineWorkbook

        self._limit = limit
        file.seek(0)
        self._workbook = CalamineWorkbook.from_filelike(file)

    @property
    def names(self) -> list[str]:
        return list(self._workbook.sheet_names)

    def rows(self, name: str) -> Iterator[Row]:
        """Yield all rows, as wide as the widest one; numbers are from 1. Raises `TooManyCellsError`."""
        sheet = self._workbook.get_sheet_by_name(name)
        self._limit.take(sheet.total_height * sheet.total_width)
        for number, row in enumerate(sheet.to_python(skip_empty_area=False), 1):
            yield number, list(row)


def _texts(
    rows: Iterable[tuple[int, Sequence[Cell]]], formats: MomentFormats
) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the rows that are not empty: number, and cells as texts; None: the cell is empty."""
    for number, row in rows:
        texts = [cell_text(value, formats) for value in row]
        if any(text is not None for text in texts):
            yield number, texts


def _batches(rows: Iterable[tuple[int, list[str | None]]], *, as_json: bool) -> Iterator[list[tuple[int, str]]]:
    """Yield the rows in lists for one message each: number, and cells as an array literal or as JSON."""
    batch: list[tuple[int, str]] = []
    size = 0
    for number, texts in rows:
        text = _object(number, texts) if as_json else _array(texts)
        batch.append((number, text))
        size += len(text)
        if len(batch) >= BATCH or size >= BATCH_TEXT:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def _array(texts: Iterable[str | None]) -> str:
    """Return an array literal; None becomes NULL."""
    return "{" + ",".join(["NULL" if text is None else quote(text) for text in texts]) + "}"


def _object(number: int, texts: Sequence[str | None]) -> str:
    """Return the cells of a row as a JSON object by address (`B7`), without empty ones. number: of the row."""
    cells = {f"{column_name(place)}{number}": text for place, text in enumerate(texts) if text is not None}
    return orjson.dumps(cells).decode()


if __name__ == "__main__":
    os.nice(BEHIND)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    main(orjson.loads(sys.argv[1]), sys.stdout.buffer)
