"""Pages: hidden columns, the row beyond the page, and what is written behind the rows."""

from __future__ import annotations

import pytest

from rowcall.ext.rendering.body_writer import ColumnsChangedError
from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.page_rows import MARK, PageWriter
from rowcall.ext.rendering.rows import Renderer
from tests.ext.results import result_of

INT, TEXT = 23, 25
COLUMNS = [(b"id", INT), (b"rowcall_position", TEXT)]
COUNTED = [*COLUMNS, (b"n", TEXT)]


def page(rows: list[list[bytes | None]], limit: int, columns: list[tuple[bytes, int]] = COLUMNS) -> list[bytes]:
    counted = len(columns) - 2
    writer = PageWriter(Renderer(Codecs(), "rows", True, True, [b"id"], hidden=1 + counted), limit, bool(counted))
    writer.expect((INT,))
    with result_of(columns, rows) as address:
        return writer.render_result(address).split(MARK)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], [b"[]", b"", b"0", b"", b"", b""]),
        ([[b"1", b"a"]], [b'[{"id":1}]', b"", b"1", b"", b"a", b"a"]),
        ([[b"1", b"a"], [b"2", b"b"]], [b'[{"id":1},{"id":2}]', b"", b"2", b"", b"a", b"b"]),
        ([[b"1", b"a"], [b"2", b"b"], [b"3", b"c"]], [b'[{"id":1},{"id":2}]', b"more", b"2", b"", b"a", b"b"]),
        # Read backwards: the row beyond the page comes first.
        ([[b"0", b""], [b"1", b"a"], [b"2", b"b"]], [b'[{"id":1},{"id":2}]', b"more", b"2", b"", b"a", b"b"]),
    ],
)
def test_a_page_ends_with_its_positions(rows: list[list[bytes | None]], expected: list[bytes]) -> None:
    assert page(rows, 2) == expected


def test_the_total_number_of_rows_is_returned_without_a_row() -> None:
    assert page([[b"1", b"a", b"9"], [b"2", b"b", b"9"]], 1, COUNTED) == [
        b'[{"id":1}]',
        b"more",
        b"1",
        b"9",
        b"a",
        b"a",
    ]
    assert page([[None, None, b"9"]], 1, COUNTED) == [b"[]", b"", b"0", b"9", b"", b""]


def test_a_page_without_rows_reports_further_rows_only() -> None:
    assert page([[b"1", b"a"]], 0) == [b"[]", b"more", b"0", b"", b"", b""]


def test_long_positions_are_not_truncated() -> None:
    long = b"x" * 100_000
    assert page([[b"1", b"a"], [b"2", long]], 2)[4:] == [b"a", long]


def test_a_result_without_the_position_columns_is_refused() -> None:
    with pytest.raises(ColumnsChangedError):
        page([], 1, [(b"id", TEXT), (b"rowcall_position", TEXT)])
