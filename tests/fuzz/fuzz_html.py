"""Fuzz HTML tables: no crash, no read outside a value, and the same body as that of the slow twin.

python -m tests.fuzz.fuzz_html [seconds]

Reads out of bounds are detected if the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc. libpq
stores a value of 1 kB or more in memory of its own, so values are stretched to that size and to where pieces end.
"""

from __future__ import annotations

from rowcall.ext.rendering.html_rows import HtmlTable
from tests.ext.results import result_of
from tests.ext.twins.markup import html_table
from tests.fuzz.mutation import cells_of, main, with_choices

OIDS = (25, 16, 23, 114, 17, 77_777)
STRETCHES = (0, 0, 0, 1020, 4090, 4095, 4096, 8190)
SEEDS = (
    b'a<b>&"c"\x1ft\x1e\x1ff\x1f7',
    b"true\x1ffalse\x1ft\x1e&amp;\x1f\x1f'",
    b"\xc3\xa9\xf0\x9f\x98\x80\x1f<<<<>>>>\x1e\x1f",
)
SYNTAX = (b"&", b"<", b">", b'"', b"'", b"t", b"\x1e", b"\x1f", b"\xff\xfe", b"<" * 33, b"0123456789abcdef" * 5)


def check(data: bytes) -> None:
    """The first byte determines how far values are stretched, the second the text around the table."""
    how = data[0] if data else 0
    around = data[1:2]
    rows, width = cells_of(data[2:])
    stretch = b"x" * STRETCHES[how % len(STRETCHES)]
    rows = [[None if cell is None else stretch + cell for cell in row] for row in rows]
    oids = [OIDS[(index + how) % len(OIDS)] for index in range(width)]
    titles = [around * index + b"<t>" for index in range(width)]
    with result_of(list(zip(titles, oids, strict=True)), rows) as address:
        body = HtmlTable(True, titles, around, around * 2).render_result(address)
    assert body == html_table(titles, oids, rows, around, around * 2)


if __name__ == "__main__":
    main(check, with_choices(SEEDS), SYNTAX)
