"""Fuzz the rows of worksheets: no crash, no read outside a value, and the same markup as that of the slow twin.

python -m tests.fuzz.fuzz_sheet [seconds]

Reads out of bounds are detected if the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc. libpq
stores a value of 1 kB or more in memory of its own, so texts are stretched to that size, to where pieces end and to
where a cell is full. For days that do not exist, which no server sends, the markup only has to be well-formed.
"""

from __future__ import annotations

import re

from rowcall.ext.rendering.sheet_rows import SheetRows
from tests.ext.results import result_of
from tests.ext.twins.markup import DATE, KINDS, date_serial, sheet_rows
from tests.fuzz.mutation import Cells, cells_of, main, with_choices

OIDS = (25, 1700, 1114, 16, 701, 1082, 1184, 23, 114)
STRETCHES = (0, 0, 0, 0, 1020, 4090, 4094, 8190, 32_760)
SEEDS = (
    b"_x0041_ _x00\x1f12.50\x1f2024-02-29 10:30:00.123456\x1ft\x1f1e-7\x1f1900-03-01\x1f2024-01-01 00:00:00+05:30",
    b"\xef\xbf\xbe\xef\xbf\xbf\xef\xbf\x1f-0\x1finfinity\x1ff\x1fNaN\x1f0044-03-15 BC\x1f9999-12-31 23:59:59.999999-12",
    b'\x01\x0b\r\n\t<&>"\x1f12345678901234567890.1234567890\x1f1900-02-28\x1f\x1f-1.5e+300\x1f1900-01-01 00:00:00',
    b"\xf0\x9f\x98\x80\xc3\xa9\x1f1e400\x1f2024-01-15 10:30\x1ftrue\x1f9007199254740993\x1f2024-1-1\x1f\x1e\x1f\x1f",
)
SYNTAX = (
    *(b"_x005F_", b"_x", b"_", b"&", b"<", b"\x1e", b"\x1f", b"\x1f", b"\xef\xbf\xbe", b"\xf0\x9f\x98\x80", b"\xff"),
    *(b"-", b".", b"e+9", b"0", b"9" * 17, b"1900-01-01", b" 23:59:59", b".999999999", b"+14", b" BC", b":"),
)
_DATE_CELL = re.compile(rb'<c r="[A-Z]+[0-9]+" s="2"><v>-?[0-9]+(?:\.[0-9]+)?</v></c>')


def check(data: bytes) -> None:
    """The first byte determines how far texts are stretched, the second the styles."""
    how = data[0] if data else 0
    styles = (data[1] & 1, 2, data[1] >> 1 & 1) if len(data) > 1 else (0, 2, 0)
    rows, width = cells_of(data[2:])
    oids = [OIDS[index % len(OIDS)] for index in range(width)]
    stretch = b"x" * STRETCHES[how % len(STRETCHES)]
    rows = [
        [stretch + cell if cell is not None and oid == 25 else cell for cell, oid in zip(row, oids, strict=True)]
        for row in rows
    ]
    if not all(map(_exists, rows, [oids] * len(rows))):
        rows, unsure = _days_only(rows, oids)
        check_days(unsure)
    titles = [b"<t>" * (index % 3) + data[:1] for index in range(width)]
    with result_of(list(zip([title.replace(b"\0", b"") for title in titles], oids, strict=True)), rows) as address:
        body = SheetRows(True, titles, *styles).render_result(address)
    assert body == sheet_rows(titles, oids, rows, styles)


def _exists(row: list[bytes | None], oids: list[int]) -> bool:
    return all(_day_exists(oid, cell) for oid, cell in zip(oids, row, strict=True))


def _day_exists(oid: int, cell: bytes | None) -> bool:
    if cell is None or KINDS.get(oid) != DATE:
        return True
    try:
        date_serial(cell)
    except ValueError:
        return False
    return True


def _days_only(rows: Cells, oids: list[int]) -> tuple[Cells, list[bytes]]:
    """Return the rows without days that do not exist, and these days."""
    unsure = [
        cell
        for row in rows
        for oid, cell in zip(oids, row, strict=True)
        if cell is not None and not _day_exists(oid, cell)
    ]
    values = [[cell if _day_exists(oid, cell) else None for oid, cell in zip(oids, row, strict=True)] for row in rows]
    return values, unsure


def check_days(texts: list[bytes]) -> None:
    with result_of([(b"d", 1114)], [[text] for text in texts]) as address:
        body = SheetRows(True, [b"d"], 0, 2, 0).render_result(address)
    for row in body.split(b"<row")[2:]:
        cell = row[row.index(b">") + 1 : -len(b"</row>")]
        assert _DATE_CELL.fullmatch(cell) or b' t="inlineStr">' in cell, cell


if __name__ == "__main__":
    main(check, with_choices(SEEDS), SYNTAX)
