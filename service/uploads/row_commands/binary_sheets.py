"""Worksheets of `.xlsb` ([MS-XLSB] 2.1.4), made readable for python-calamine.

calamine skips the records of cells that do not state their column (SheetJS writes them) and those of rich strings. A
workbook with such records is copied, with records of the same content that calamine reads.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from typing import IO, BinaryIO

from rowcall.service.uploads.row_commands.sheet_xml import UnreadableError

ROW = 0
"""Record BrtRowHdr."""
CELLS = range(1, 12)
"""Records BrtCellBlank to BrtFmlaError. Each begins with its column, 4 bytes."""
STRING = 6
"""Record BrtCellSt."""
SHORT_CELLS = range(12, 19)
"""Records BrtShortBlank to BrtShortIsst: as the first of `CELLS`, without the column, which is the one after that of
the cell before.
"""
SHORT = SHORT_CELLS.start - CELLS.start
RICH_STRING = 62
"""Record BrtCellRString: as `STRING`, with a byte of flags in front of the text, and with formats behind it."""
REWRITTEN = frozenset((*SHORT_CELLS, RICH_STRING))
BEGIN_SHEET = b"\x81\x01"
"""First record of a worksheet."""
BEGIN_DATA, END_DATA = 145, 146

COLUMNS = 16_384
"""Maximum number of columns of a worksheet."""
LONGEST_RECORD = 16_777_216
"""Maximum length of a record in bytes."""
PIECE = 1_048_576
"""Bytes that are read and written at once."""


def readable_workbook(file: BinaryIO) -> BinaryIO:
    """Return the workbook, or a copy in a temporary file if calamine would lose cells of it.

    Raises `UnreadableError` for invalid records, and various errors for an archive that is damaged.
    """
    with zipfile.ZipFile(file) as parts:
        infos = parts.infolist()
        rewritten = [_is_sheet(parts, info) and _has_rewritten_records(parts, info) for info in infos]
        if not any(rewritten):
            return file
        copy = tempfile.TemporaryFile()  # noqa: SIM115 (the caller reads it)
        with zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as copies:
            for info, changed in zip(infos, rewritten, strict=True):
                with parts.open(info) as source, copies.open(info.filename, "w", force_zip64=True) as target:
                    if changed:
                        _rewrite(source, target)
                    else:
                        shutil.copyfileobj(source, target)
    copy.seek(0)
    return copy


def _is_sheet(parts: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Return whether the part is a worksheet."""
    with parts.open(info) as source:
        return source.read(len(BEGIN_SHEET)) == BEGIN_SHEET


def _has_rewritten_records(parts: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """Return whether the worksheet has records that calamine skips. Raises `UnreadableError`."""
    with parts.open(info) as source:
        return any(kind in REWRITTEN for kind, _ in _records(source))


def _rewrite(source: IO[bytes], target: IO[bytes]) -> None:
    """Copy a worksheet, with records that calamine reads in place of the others. Raises `UnreadableError`."""
    out = bytearray()
    in_data = False
    column = -1
    for kind, data in _records(source):
        if kind in (BEGIN_DATA, END_DATA):
            in_data = kind == BEGIN_DATA
        elif in_data and kind == ROW:
            column = -1
        elif in_data and kind in SHORT_CELLS:
            column += 1
            kind, data = kind - SHORT, struct.pack("<I", column) + data
        elif in_data and (kind in CELLS or kind == RICH_STRING):
            column = _column(data)
            if kind == RICH_STRING:
                kind, data = STRING, _without_formats(data)
        if column >= COLUMNS:
            raise UnreadableError(f"a row has more than {COLUMNS} columns")
        out += _record(kind, data)
        if len(out) >= PIECE:
            target.write(out)
            out.clear()
    target.write(out)


def _column(data: bytes) -> int:
    """Return the column of a cell, from 0. data: of its record. Raises `UnreadableError` for an incomplete record."""
    if len(data) < 8:
        raise UnreadableError("a cell ends in the middle of a record")
    return int.from_bytes(data[:4], "little")


def _without_formats(data: bytes) -> bytes:
    """Return the data of a rich string without flags and formats. Raises `UnreadableError` for an incomplete record.

    Layout: column and style (8 bytes), flags (1 byte), count of UTF-16 units (4 bytes), the units.
    """
    end = 13 + 2 * int.from_bytes(data[9:13], "little")
    if len(data) < end:
        raise UnreadableError("a text ends in the middle of a record")
    return data[:8] + data[9:end]


def _records(source: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield kind and data of each record. Raises `UnreadableError` for a record that is too long or incomplete."""
    held = b""
    while piece := source.read(PIECE):
        held += piece
        place = 0
        while (header := _header(held, place)) is not None:
            kind, start, size = header
            if size > LONGEST_RECORD:
                raise UnreadableError(f"a record has {size} bytes")
            if start + size > len(held):
                break
            yield kind, held[start : start + size]
            place = start + size
        held = held[place:]
    if held:
        raise UnreadableError("a worksheet ends in the middle of a record")


def _header(data: bytes, place: int) -> tuple[int, int, int] | None:
    """Return the kind of a record, the offset of its data, and their size in bytes; None if the header is not complete.

    The header has the kind in 1 or 2 bytes, and behind it the size in 1 to 4 bytes; each byte has 7 bits, the lowest
    first. place: where the record begins in `data`.
    """
    try:
        kind = data[place]
        place += 1
        if kind & 0x80:
            kind = kind & 0x7F | (data[place] & 0x7F) << 7
            place += 1
        size = data[place] & 0x7F
        shift = 7
        while data[place] & 0x80 and shift < 28:
            place += 1
            size |= (data[place] & 0x7F) << shift
            shift += 7
    except IndexError:
        return None
    return kind, place + 1, size


def _record(kind: int, data: bytes) -> bytes:
    """Return the bytes of a record: a header as `_header` reads it, and the data."""
    header = bytearray((kind,) if kind < 0x80 else (kind & 0x7F | 0x80, kind >> 7))
    size = len(data)
    while size >= 0x80:
        header.append(size & 0x7F | 0x80)
        size >>= 7
    header.append(size)
    return bytes(header) + data
