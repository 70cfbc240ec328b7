"""Rows as HTML tables and as worksheet rows: the markup is well-formed for all values."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.ext.rendering.codecs import Codecs
from rowcall.ext.rendering.html_rows import HtmlTable, escape
from rowcall.ext.rendering.rows import Renderer
from rowcall.ext.rendering.sheet_rows import SheetRows, column_letters
from rowcall.ext.rendering.timed_rows import TimedWriter, render_column
from tests.ext.conftest import Connection
from tests.ext.results import address_of
from tests.harness.effort import examples

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
PIECES = ['"', "&", "<", ">", "_x0041_", "_", "x00", "\r", "\x1f", "\ufffe", "é"]
TRICKY = st.lists(st.sampled_from(PIECES)).map("".join)
NUMBERS = re.compile(r"_x([0-9A-Fa-f]{4})_")


def unescaped(text: str) -> str:
    """ECMA-376, part 1, 22.9.2.19."""
    return NUMBERS.sub(lambda match: chr(int(match[1], 16)), text)


def cells(markup: bytes) -> list[list[str | None]]:
    root = ElementTree.fromstring(b"<sheetData>" + markup + b"</sheetData>")
    return [[unescaped("".join(cell.itertext())) for cell in row] for row in root]


@given(TEXT | TRICKY)
def test_html_text_is_escaped_with_four_entities(text: str) -> None:
    assert escape(text.encode()).decode() == html.escape(text).replace("&#x27;", "'")


@settings(max_examples=examples(60))
@given(st.lists(TEXT | TRICKY, min_size=1, max_size=5))
def test_a_worksheet_preserves_every_text(connection: Connection, texts: list[str]) -> None:
    cursor = connection.execute("select unnest(%s::text[])", (texts,))
    writer = SheetRows(True, [texts[0].encode()], 1, 2, 0)
    assert cells(writer.render_result(address_of(cursor))) == [[texts[0]], *([text] for text in texts)]


@settings(max_examples=examples(60))
@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_numbers_have_the_precision_of_a_double(connection: Connection, number: object) -> None:
    cursor = connection.execute("select %s::numeric, 'NaN'::numeric", (number,))
    _, row = cells(SheetRows(True, [b"n", b"x"], 0, 0, 0).render_result(address_of(cursor)))
    assert row[0] is not None
    assert float(row[0]) == float(str(number))
    assert row[1] == "NaN"


@settings(max_examples=examples(60))
@given(st.datetimes())
def test_time_stamps_are_days_since_1899(connection: Connection, moment: object) -> None:
    sql = "select t::text, extract(epoch from t - timestamp '1899-12-30') / 86400 from (values (%s::timestamp)) v (t)"
    text, days = connection.execute(sql, (moment,)).fetchall()[0]
    cursor = connection.execute("select %s::timestamp", (moment,))
    _, row = cells(SheetRows(True, [b"t"], 0, 0, 0).render_result(address_of(cursor)))
    assert row[0] is not None
    if days < 2:
        assert row[0] == text
    else:
        assert float(row[0]) == pytest.approx(float(days) - (days < 61), abs=1e-9)


def test_columns_are_named_by_letters() -> None:
    assert [column_letters(index) for index in (0, 25, 26, 701, 702)] == [b"A", b"Z", b"AA", b"ZZ", b"AAA"]


@pytest.mark.parametrize("writer", [HtmlTable(True, [b"a"], b"", b""), SheetRows(True, [b"a"], 0, 0, 0)])
def test_columns_that_do_not_fit_the_titles_are_refused(connection: Connection, writer: HtmlTable | SheetRows) -> None:
    cursor = connection.execute("select 1, 2")
    with pytest.raises(ValueError, match="2 columns where 1 were expected"):
        writer.render_result(address_of(cursor))


def test_a_timed_writer_produces_the_same_output(connection: Connection) -> None:
    cursor = connection.execute("select n, 'x' from generate_series(1, 3) n")
    renderer = Renderer(Codecs(), "rows", True, True, [b"a", b"b"])
    assert TimedWriter(renderer).render_result(address_of(cursor)) == renderer.render_result(address_of(cursor))


def test_one_column_can_be_rendered_separately(connection: Connection) -> None:
    cursor = connection.execute("select n, 'x' from generate_series(1, 3) n")
    renderer = Renderer(Codecs(), "rows", True, True, [b"a", b"b"])
    assert [render_column(renderer, address_of(cursor), index) for index in (0, 1)] == [3, 9]
    hidden = Renderer(Codecs(), "rows", True, True, [b"a"], hidden=1)
    first = Renderer(Codecs(), "rows", True, False, [], first_only=True)
    for each, index in ((renderer, 2), (hidden, 1), (first, 1)):
        with pytest.raises(IndexError):
            render_column(each, address_of(cursor), index)
