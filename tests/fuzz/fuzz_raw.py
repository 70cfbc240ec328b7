"""Fuzz raw rows and bytes: no crash, no read outside a value, and the same body as that of the slow twin.

python -m tests.fuzz.fuzz_raw [seconds]

Reads out of bounds are detected if the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc.
"""

from __future__ import annotations

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.raw_rows import BytesRenderer, RawRenderer
from tests.ext.results import result_of
from tests.ext.twins.raw import RawColumn, render_raw
from tests.fuzz.mutation import main, with_choices

TYPES = (("text", 25), ("int4", 23), ("jsonb", 3802), ("bytea", 17), ("date", 1182), ("unknown", 77_777))
SEEDS = (
    b'a,"b"\x1fc\x1e\x1fd\n',
    b'\\x00ff\x1f\\x4\x1e\\xzz\x1f""""',
    b"{1,2}\x1f2024-01-01\x1e,,\x1f\r\n",
    b"\x1e\x1e\x1f\x1f",
)
SYNTAX = (b'"', b'""', b",", b"\n", b"\\x", b"\\x0g", b"\x1e", b"\x1f", b"\xff\xfe", b"x" * 33, b"0123456789abcdef" * 5)
CODECS = Codecs()
EMPTY_IS_NULL = 1
SEPARATED = 2
HEADER = 4


def check(data: bytes) -> None:
    """The first byte determines the format, the second the separators; the rest are rows, cut at 0x1E and 0x1F."""
    how, between, text = data[:1], data[1:2], data[2:].replace(b"\0", b"")
    mode = how[0] if how else 0
    cells = [row.split(b"\x1f") for row in text.split(b"\x1e")]
    width = max(map(len, cells))
    rows: list[list[bytes | None]] = [
        [None if not cell and mode & EMPTY_IS_NULL else cell for cell in row] + [None] * (width - len(row))
        for row in cells
    ]
    check_text(rows, width, between * 3 if mode & SEPARATED else None, between, bool(mode & HEADER))
    check_bytes([row[0] for row in rows])


def check_text(
    rows: list[list[bytes | None]], width: int, separator: bytes | None, new_line: bytes, header: bool
) -> None:
    kinds = [TYPES[index % len(TYPES)] for index in range(width)]
    columns = [RawColumn(b'c"' * (index % 3), name) for index, (name, _) in enumerate(kinds)]
    described = [(column.name, oid) for column, (_, oid) in zip(columns, kinds, strict=True)]
    with result_of(described, rows) as address:
        body = RawRenderer(CODECS, True, separator, new_line, header).render_result(address)
    assert body == render_raw(columns, rows, separator, new_line, header)


def check_bytes(values: list[bytes | None]) -> None:
    with result_of([(b"part", 17)], [[value] for value in values]) as address:
        body = BytesRenderer(True).render_result(address)
    assert body == b"".join(decoded(value or b"") for value in values)


def decoded(text: bytes) -> bytes:
    digits = text.removeprefix(b"\\x")
    is_hex = (
        len(digits) < len(text) and len(digits) % 2 == 0 and all(byte in b"0123456789abcdefABCDEF" for byte in digits)
    )
    return bytes.fromhex(digits.decode()) if is_hex else text


if __name__ == "__main__":
    main(check, with_choices(SEEDS), SYNTAX)
