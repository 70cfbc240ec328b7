"""Rows out of the XML of sheets, held against openpyxl's own reader where that reads them well."""

from __future__ import annotations

import datetime
import io
import zipfile
from typing import Any

import pytest
import xlsxwriter
from openpyxl import load_workbook
from openpyxl.utils.datetime import CALENDAR_MAC_1904, WINDOWS_EPOCH

from rowcall.core.uploads.cell_text import Cell
from rowcall.service.uploads.row_commands.sheet_reader import CellLimit, _Workbook
from rowcall.service.uploads.row_commands.sheet_xml import (
    MOST_COLUMNS,
    Sheet,
    UnreadableError,
    column_number,
    shared_strings,
)

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
STRICT = "http://purl.oclc.org/ooxml/spreadsheetml/main"
DAY, HOURS = 1, 2
STRINGS = ["zero", "one"]


def rows(data: str, space: str = MAIN, epoch: datetime.datetime = WINDOWS_EPOCH) -> list[tuple[int, list[Cell]]]:
    sheet = Sheet(STRINGS, epoch, frozenset((DAY, HOURS)), frozenset((HOURS,)))
    text = f'<x:worksheet xmlns:x="{space}"><x:sheetData>{data}</x:sheetData></x:worksheet>'
    return list(sheet.rows(io.BytesIO(text.replace("<c", "<x:c").replace("</c", "</x:c").encode())))


def cell(content: str, **attributes: str) -> str:
    return f"<c {' '.join(f'{name}={value!r}' for name, value in attributes.items())}>{content}</c>"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (cell("<x:v>1</x:v>"), 1),
        (cell("<x:v>1.50</x:v>"), 1.5),
        (cell("<x:v>1E3</x:v>"), 1000.0),
        (cell("<x:v>1</x:v>", t="s"), "one"),
        (cell("<x:v>1</x:v>", t="b"), True),
        (cell("<x:f>1+1</x:f><x:v>2</x:v>"), 2),
        (cell("<x:f>A1</x:f><x:v>a_x000D_b_xD800_</x:v>", t="str"), "a\rb_xD800_"),
        (cell("<x:f>1/0</x:f><x:v>#DIV/0!</x:v>", t="e"), None),
        (cell("<x:f>1+1</x:f>"), None),
        (cell("<x:v></x:v>"), None),
        (cell("<x:is><x:t>in</x:t></x:is>", t="inlineStr"), "in"),
        (cell("<x:is><x:r><x:t>a</x:t></x:r><x:r><x:t> b</x:t></x:r></x:is>", t="inlineStr"), "a b"),
        (cell("<x:is><x:t>kan</x:t><x:rPh><x:t>reading</x:t></x:rPh></x:is>", t="inlineStr"), "kan"),
        (cell("<x:v>45000</x:v>", s="1"), datetime.datetime(2023, 3, 15)),
        (cell("<x:v>0.5</x:v>", s="1"), datetime.time(12)),
        (cell("<x:v>1.25</x:v>", s="2"), datetime.timedelta(hours=30)),
        (cell("<x:v>1E300</x:v>", s="1"), None),
        (cell("<x:v>2026-03-01T10:00:00</x:v>", t="d"), datetime.datetime(2026, 3, 1, 10)),
    ],
)
@pytest.mark.parametrize("space", [MAIN, STRICT], ids=["transitional", "strict"])
def test_cells_have_the_type_of_their_value(written: str, value: Cell, space: str) -> None:
    ((_, result),) = rows(f"<x:row>{written}</x:row>", space)
    assert result == [value]
    assert type(result[0]) is type(value)


def test_dates_use_the_epoch_of_the_workbook() -> None:
    written = f"<x:row>{cell('<x:v>45000</x:v>', s='1')}</x:row>"
    assert rows(written, epoch=CALENDAR_MAC_1904) == [(1, [datetime.datetime(2027, 3, 16)])]


def test_explicit_positions_of_rows_and_cells_are_used() -> None:
    item = "<x:v>1</x:v>"
    assert rows(
        f"<x:row>{cell(item)}{cell(item)}</x:row>"
        f'<x:row r="7">{cell(item, r="C7")}{cell(item)}{cell(item, r="A7")}</x:row>'
        f"<x:row/>"
        f'<x:row r="3.0">{cell(item, r="AA3")}</x:row>'
    ) == [(1, [1, 1]), (7, [1, None, 1, 1]), (8, []), (3, [*[None] * 26, 1])]


@pytest.mark.parametrize(
    "data", [cell("", r="XFE1"), cell("", r="1"), cell("", r="\u00c41"), cell("") * (MOST_COLUMNS + 1)]
)
def test_a_cell_outside_of_every_sheet_is_refused(data: str) -> None:
    with pytest.raises(UnreadableError):
        rows(f"<x:row>{data}</x:row>")


def test_column_letters_are_converted_to_numbers() -> None:
    assert [column_number(letters) for letters in ("A", "Z", "AA", "XFD")] == [1, 26, 27, MOST_COLUMNS]


def test_elements_of_other_namespaces_are_ignored() -> None:
    assert rows(f'<x:row><y:c xmlns:y="urn:y"><y:v>9</y:v></y:c>{cell("<x:v>1</x:v>")}</x:row>') == [(1, [1])]


def test_shared_strings_are_read() -> None:
    text = (
        f'<sst xmlns="{MAIN}"><si><t>a_x005F_x000D_</t></si><si><r><t>b</t></r><r><t xml:space="preserve"> c</t></r>'
        "<rPh><t>no</t></rPh></si><si/></sst>"
    )
    assert shared_strings(io.BytesIO(text.encode())) == ["a_x000D_", "b c", ""]


def test_a_document_type_declaration_is_refused() -> None:
    with pytest.raises(UnreadableError):
        shared_strings(io.BytesIO(b'<!DOCTYPE sst [<!ENTITY a "b">]><sst>&a;</sst>'))


@pytest.mark.filterwarnings("ignore:Cell .* is marked as a date")
def test_a_workbook_is_read_as_openpyxl_reads_it() -> None:
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        bold = book.add_format({"bold": True})
        formats = [
            book.add_format({"num_format": text})
            for text in ("yyyy-mm-dd", "hh:mm", "[h]:mm", "0.00", "[Red]0", 'd "of" mmm', "@", "General")
        ]
        for name in ("A", "B"):
            sheet = book.add_worksheet(name)
            for number, form in enumerate(formats):
                for place, value in enumerate((0, 0.25, 59, 60, 61, 44000.75, 1e10, -1.5)):
                    sheet.write_number(number, 2 * place, value, form)
            sheet.write_rich_string(20, 0, "plain ", bold, "bold")
            sheet.write_formula(21, 3, "=A1", None, "text")
            sheet.write_formula(21, 4, "=A1", None, True)
            sheet.write_blank(22, 30, None, bold)
    ours = _Workbook(content, CellLimit(1_000_000))
    theirs = load_workbook(content, read_only=True, data_only=True)
    assert ours.names == ["A", "B"]
    for name in ours.names:
        rows = dict(ours.rows(name))
        opened: Any = theirs[name]
        for number, row in enumerate(opened.iter_rows(max_col=31), 1):
            values = [None if each.data_type == "e" else each.value for each in row]
            assert rows.get(number, [None] * 31) == values


def test_a_sheet_of_charts_has_no_rows() -> None:
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        book.add_chartsheet("Chart")
        book.add_worksheet("A")
    assert _Workbook(content, CellLimit(1_000_000)).names == ["A"]


def test_a_distant_row_needs_no_additional_memory() -> None:
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        book.add_worksheet().write(0, 0, "a")
    changed = io.BytesIO()
    with zipfile.ZipFile(content) as old, zipfile.ZipFile(changed, "w") as new:
        for part in old.namelist():
            new.writestr(part, old.read(part).replace(b'<row r="1"', b'<row r="2000000000"'))
    assert list(_Workbook(changed, CellLimit(1_000_000)).rows("Sheet1")) == [(2_000_000_000, ["a"])]
