"""Uploads of workbooks: a row command for each row of a sheet (uploads-14 to uploads-21)."""

from __future__ import annotations

import base64
import datetime
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.node import packages, run
from tests.harness.service import Service
from tests.http.conftest import Serve

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

SCHEMA = """
create table line (number int, cells text[], previous text, about json, data json);
create function keep_line(int, text[], text, json) returns int language sql as
    $$ insert into line values ($1, $2, $3, $4) returning number $$;
create function up_first(_meta json) returns json language sql as 'select _meta';
comment on function up_first(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_command = select keep_line($1, $2, $3, $4)';
create function up_all(_meta json) returns json language sql as 'select _meta';
comment on function up_all(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
all_sheets = true
row_command = select keep_line($1, $2, $3, $4)';
create function up_sheet(_sheet text, _meta json) returns json language sql as 'select _meta';
comment on function up_sheet(text, json) is 'HTTP POST
upload for excel
param _meta is upload metadata
sheet_name = {_sheet}
date_format = dd.MM.yyyy
time_format = HH:mm
datetime_format = dd.MM.yyyy HH:mm
row_command = select keep_line($1, $2, $3, $4)';
create function up_json(_meta json) returns json language sql as 'select _meta';
comment on function up_json(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_is_json = true
row_command = insert into line (number, data) values ($1, $2)';
create function up_failing(_meta json) returns json language sql as 'select _meta';
comment on function up_failing(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_command = insert into line (number) values (1 / (2 - $1))';
create function up_or_csv(_meta json) returns json language sql as 'select _meta';
comment on function up_or_csv(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
fallback_handler = csv
row_command = select keep_line($1, $2, $3, $4)';
create function up_or_object(_meta json) returns json language sql as 'select _meta';
comment on function up_or_object(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
all_sheets = true
on_error = collect
fallback_handler = large_object
row_command = insert into line (number) values (($2)[2]::int)';
create function up_named(_meta json) returns json language sql as 'select _meta';
comment on function up_named(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_command = insert into line (number, cells, about) values ($1, array[($2)[2]], $4)';
create function up_objects(_meta json) returns json language sql as 'select _meta';
comment on function up_objects(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_is_json = true
row_command = insert into line (number, data, about) values ($1, $2, $4)';
create function keep_object(int, jsonb, text, jsonb) returns text language sql as
    $$ insert into line (number, data, previous, about) values ($1, $2, $3, $4) returning 'n' || number $$;
create function up_objects_chained(_meta json) returns json language sql as 'select _meta';
comment on function up_objects_chained(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_is_json = true
row_command = select keep_object($1, $2, $3, $4)';
create procedure keep_by_call(int, text[], text, json) language sql as
    $$ insert into line values ($1, $2, $3, $4) $$;
create function up_called(_meta json) returns json language sql as 'select _meta';
comment on function up_called(json) is 'HTTP POST
upload for excel
param _meta is upload metadata
row_command = call keep_by_call($1, $2, $3, $4)';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SCHEMA, {"Service:UploadOptions:Enabled": "true"}, workers=2)


def workbook() -> bytes:
    """Two sheets: numbers, dates and gaps; and a small one."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        north = book.add_worksheet("North")
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm"})
        clock = book.add_format({"num_format": "hh:mm:ss"})
        north.write_row(0, 0, ["sku", "count", "when", "clock", "seen", "ok"])
        north.write_row(1, 0, ["A-1", 10])
        north.write_datetime(1, 2, datetime.datetime(2026, 3, 1), day)
        north.write_datetime(1, 3, datetime.time(7, 5), clock)
        north.write_datetime(1, 4, datetime.datetime(2026, 3, 1, 18, 30), moment)
        north.write_boolean(1, 5, True)
        north.write_row(4, 1, [1.5])
        north.write_number(4, 4, 1234567890123456)
        north.write_formula(4, 5, "=1+1", None, 2)
        south = book.add_worksheet("South")
        south.write_row(1, 1, ["x"])
    return content.getvalue()


def upload(service: Service, path: str, content: bytes, name: str = "q.xlsx", kind: str = XLSX) -> Any:
    response = service.post(f"/api/{path}", files={"file": (name, content, kind)})
    assert response.status_code == 200, response.text
    return response.json()


def test_the_first_sheet_is_read(service: Service, database: Database) -> None:
    database.execute("truncate line")
    content = workbook()
    (entry,) = upload(service, "up-first", content)
    assert list(entry.items()) == [
        ("type", "excel"),
        ("fileName", "q.xlsx"),
        ("contentType", XLSX),
        ("size", len(content)),
        ("sheet", "North"),
        ("success", True),
        ("status", "Ok"),
        ("rows", 3),
        ("lastResult", 3),
        ("result", 3),
    ]
    assert database.fetch("select number, cells, previous, about ->> 'rowIndex' from line order by number") == [
        (1, ["sku", "count", "when", "clock", "seen", "ok"], None, "1"),
        (2, ["A-1", "10", "2026-03-01", "07:05:00", "2026-03-01 18:30:00", "True"], "1", "2"),
        (3, [None, "1.5", None, None, "1.234567890123456E+15", "2"], "2", "5"),
    ]
    assert list(database.value("select about from line limit 1")) == [
        "type",
        "fileName",
        "contentType",
        "size",
        "sheet",
        "rowIndex",
    ]


def test_all_sheets_are_read(service: Service, database: Database) -> None:
    database.execute("truncate line")
    entries = upload(service, "up-all", workbook())
    assert [(entry["sheet"], entry["rows"], entry["lastResult"]) for entry in entries] == [
        ("North", 3, 3),
        ("South", 1, 1),
    ]
    south = "where about ->> 'sheet' = 'South'"
    assert database.fetch(f"select cells, previous, about ->> 'rowIndex' from line {south}") == [
        ([None, "x"], None, "2")
    ]


def test_a_sheet_is_named_in_any_case_and_its_dates_have_the_chosen_format(
    service: Service, database: Database
) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, "up-sheet?sheet=north", workbook())
    assert entry["sheet"] == "North"
    assert database.value("select cells[3:5] from line where number = 2") == ["01.03.2026", "07:05", "01.03.2026 18:30"]
    assert upload(service, "up-sheet?sheet=west", workbook()) == []


def test_an_empty_sheet_has_no_rows(service: Service) -> None:
    content = io.BytesIO()
    with xlsxwriter.Workbook(content) as book:
        book.add_worksheet("Empty")
    response = service.post("/api/up-all", files={"file": ("é <&>.xlsx", content.getvalue(), XLSX)})
    assert response.text == (
        f'[{{"type":"excel","fileName":"é <&>.xlsx","contentType":"{XLSX}","size":{len(content.getvalue())},'
        '"sheet":"Empty","success":true,"status":"Ok","rows":0,"lastResult":null,"result":null}]'
    )


def test_rows_can_be_passed_as_json_objects(service: Service, database: Database) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, "up-json", workbook())
    assert entry["result"] is None
    assert database.value("select data from line where number = 3") == {
        "B5": "1.5",
        "E5": "1.234567890123456E+15",
        "F5": "2",
    }


def test_a_file_that_is_not_a_workbook_is_reported(service: Service) -> None:
    for content in (b"a,b\n", b"", b"PK\x03\x04 and nothing else", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and nothing"):
        assert upload(service, "up-first", content) == [
            {
                "type": "excel",
                "fileName": "q.xlsx",
                "contentType": XLSX,
                "size": len(content),
                "success": False,
                "status": "InvalidFormat",
            }
        ]


def test_a_file_that_is_not_a_workbook_can_be_imported_as_csv(service: Service, database: Database) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, "up-or-csv", b"a,b\nc,d\n", "s.csv", "text/csv")
    assert (entry["type"], entry["lastResult"]) == ("csv", 2)
    (entry,) = upload(service, "up-or-csv", b"\0\1\2", "s.bin", "x/y")
    assert (entry["type"], entry["status"]) == ("csv", "ProbablyBinary")


def test_an_error_of_the_row_command_is_not_reported_as_invalid_format(service: Service, database: Database) -> None:
    database.execute("truncate line")
    response = service.post("/api/up-failing", files={"file": ("q.xlsx", workbook(), XLSX)})
    assert problem(response, 500)["title"] == "22012: division by zero"
    assert database.value("select count(*) from line") == 0


def test_a_malformed_sheet_rolls_back_all_rows(service: Service, database: Database) -> None:
    database.execute("truncate line")
    broken = _with_part("xl/worksheets/sheet2.xml", b"<worksheet><sheetData><row></worksheet>")
    (entry,) = upload(service, "up-all", broken)
    assert (entry["success"], entry["status"]) == (False, "InvalidFormat")
    assert database.value("select count(*) from line") == 0


def test_a_malformed_workbook_is_passed_to_the_next_handler(service: Service, database: Database) -> None:
    broken = _with_part("xl/worksheets/sheet2.xml", b"<worksheet><sheetData><row></worksheet>")
    (entry,) = upload(service, "up-or-object", broken)
    assert (entry["type"], entry["success"]) == ("large_object", True)
    response = service.post("/api/up-or-object", files={"file": ("q.xlsx", workbook(), XLSX)})
    assert "nothing was imported" in problem(response, 400)["detail"]


def _with_part(name: str, content: bytes) -> bytes:
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(workbook())) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for part in old.namelist():
            new.writestr(part, content if part == name else old.read(part))
    return changed.getvalue()


LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;&e;&e;">
<!ENTITY g "&f;&f;&f;&f;&f;&f;&f;&f;&f;&f;"><!ENTITY h "&g;&g;&g;&g;&g;&g;&g;&g;&g;&g;">]>
<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>&h;&h;&h;</t></si></sst>"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("xl/sharedStrings.xml", LAUGHS),
        ("xl/sharedStrings.xml", b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><sst>&a;</sst>'),
        ("xl/worksheets/sheet1.xml", b" " * 200_000_000),
    ],
    ids=["laughs", "file", "bomb"],
)
def test_a_hostile_workbook_is_reported_and_has_no_other_effect(service: Service, part: str, content: bytes) -> None:
    (entry,) = upload(service, "up-first", _with_part(part, content))
    assert (entry["success"], entry["status"]) == (False, "InvalidFormat")


def test_a_sheet_without_dimensions_is_as_wide_as_its_widest_row(service: Service, database: Database) -> None:
    database.execute("truncate line")
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("S")
    for row in (["a"], [1, 2, 3], [None, None, None, None]):
        sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    upload(service, "up-first", content.getvalue())
    assert [cells for (cells,) in database.fetch("select cells from line order by number")] == [
        ["a", None, None],
        ["1", "2", "3"],
    ]


MANY = 700


def many_rows(text: str = "") -> bytes:
    """Each second row of the sheet."""
    content = io.BytesIO()
    with xlsxwriter.Workbook(content, {"constant_memory": True}) as book:
        sheet = book.add_worksheet("Many")
        for number in range(MANY):
            sheet.write_row(2 * number, 0, [f'"{number}, \\ {text}', number])
    return content.getvalue()


@pytest.mark.parametrize(
    ("path", "column", "kept", "result"),
    [
        ("up-first", "cells", lambda n: [f'"{n}, \\ ', str(n)], MANY),
        ("up-called", "cells", lambda n: [f'"{n}, \\ ', str(n)], None),
        ("up-named", "cells", lambda n: [str(n)], None),
        ("up-objects", "data", lambda n: {f"A{2 * n + 1}": f'"{n}, \\ ', f"B{2 * n + 1}": str(n)}, None),
        ("up-objects-chained", "data", lambda n: {f"A{2 * n + 1}": f'"{n}, \\ ', f"B{2 * n + 1}": str(n)}, f"n{MANY}"),
    ],
    ids=["function", "call", "columns", "objects", "chained objects"],
)
def test_batched_rows_of_a_workbook_are_stored_as_single_rows_are(
    service: Service, database: Database, path: str, column: str, kept: Callable[[int], object], result: object
) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, path, many_rows())
    assert (entry["rows"], entry["result"]) == (MANY, result)
    response = database.fetch(f"select number, {column}, about ->> 'rowIndex', previous from line order by number")
    prefix = "n" if path == "up-objects-chained" else ""
    chained = path in ("up-first", "up-objects-chained")
    assert response == [
        (n + 1, kept(n), str(2 * n + 1), f"{prefix}{n}" if chained and n else None) for n in range(MANY)
    ]


@pytest.mark.slow
def test_rows_with_long_texts_are_stored_in_small_batches(service: Service, database: Database) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, "up-first", many_rows("x" * 30_000))
    assert (entry["rows"], entry["result"]) == (MANY, MANY)
    assert database.value("select sum(length(cells[1])) from line") > MANY * 30_000


OLD = (
    b"c-rk)O=uHA6#izj+x*a^N!tjm5JJJKwLOTJT4=Wl+LNVvv8bS}2~=WIN$Q~<v|8iMB6w1~6slr`suzFIgWfy{E%hJ>LSjG=PlAGnHtU<W8}eg?2D"
    b"E6|Z<#l5znM4lc7ERM?&3lqJNu|Lhbr{Jfr8;iT^T1Rxr;Y`P`P19wV1mo88-eaxLq`nbsC;~-#FzQ%K6Sg!9(>GN#G-;V>pAs@kBJdj@ZjSj0ov"
    b"NFG+!0#Q4y{UNy2j$+C&%1FrdkWj`}lS@u%htT=)NeXyh3TE)Xk8<+VY+kL_|@0r<&AYRK=eBqif>uT7OJT-E9!xx0qddz{Az(6z+P0ITQ+=d63B"
    b"y`2&U6Dvg4dRa6_a!PkHr5l5hg2`_%H7X*J*iX{&9so_@ZAUl--;3AW!UD|mlq)ZM<wt44ez4qUX6FtoUg`vXv(Yk>xv3Y!8pMiHVrSXsIo+(@R6"
    b"JtTekMCOb#FwJ4<WuvqzpP9EJQ9QOL`?vz}xG4Xg*)(oe1~-}}0BV01`7&dd~_Jm&edMY;e37o`Om`(Qc%vrlxe#SWI2xYf<9x3X-env}N>1ubR&"
    b"G}pPzrR~(uF2-AZYni@{^z@g5PebXvzMb^>f!w*~`FHv(+GzM9WG}C2bc#-K^M=GTy_gGYOg^w|`6aHo6u;%WVI9H^SdsgZ5MX&;@$j<;aFh%*#l"
    b"<5WAV%7n<6UWMj-{|#SF2i=?Wr7NJ&Ot)G=eJCZNmLbCNn(sso!K28mrwi`R<wglHR8@;<4<AB5w&E*sx*4h7B7wY}oksAWHA!{MM&gZ{JSqzs?G"
    b"!g8iFh!{QLe>6)MqxqV1bp2TEL>t_=*QEW@B(WdynP~tH4o<t0z>_@ET^-Et*qWpQ*Z0P@UTd3Cl3$^(9m;3(--tY26"
)
"""A workbook of Excel 97, packed: the rows of `binary_workbook`, and moments in its fifth row."""


def record(kind: int, data: bytes = b"") -> bytes:
    """[MS-XLSB] 2.1.4: each record is a type, a size and data."""
    return bytes((kind & 0x7F | 0x80, kind >> 7) if kind > 0x7F else (kind,)) + bytes((len(data),)) + data


def wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def row(number: int) -> bytes:
    return record(0, struct.pack("<II", number, 0) + bytes(17))


def cell(kind: int, column: int, data: bytes) -> bytes:
    return record(kind, struct.pack("<II", column, 0) + data)


def short_cell(kind: int, data: bytes = b"") -> bytes:
    """In the column behind the cell before it."""
    return record(kind, bytes(4) + data)


TWO_ROWS = row(0) + cell(6, 0, wide("sku")) + cell(5, 1, struct.pack("<d", 1.5)) + cell(4, 2, b"\1")
TWO_ROWS += row(2) + cell(6, 1, wide("é"))


def binary_workbook(cells: bytes = TWO_ROWS, strings: tuple[str, ...] = ()) -> bytes:
    """An `.xlsb` with these records of cells."""
    sheets = record(0x8F) + record(0x9C, struct.pack("<II", 0, 1) + wide("rId1") + wide("North")) + record(0x90)
    book = record(0x83) + record(0x99, bytes(8) + wide("")) + sheets + record(0x9D, bytes(26)) + record(0x84)
    size = record(0x94, struct.pack("<IIII", 0, 2, 0, 2))
    sheet = record(0x81) + size + record(0x91) + cells + record(0x92) + record(0x82)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as parts:
        parts.writestr("_rels/.rels", _relation("officeDocument", "xl/workbook.bin"))
        parts.writestr("xl/_rels/workbook.bin.rels", _relation("worksheet", "worksheets/sheet1.bin"))
        if strings:
            items = b"".join(record(19, b"\0" + wide(text)) for text in strings)
            count = struct.pack("<II", len(strings), len(strings))
            parts.writestr("xl/sharedStrings.bin", record(159, count) + items + record(160))
        parts.writestr("xl/workbook.bin", book)
        parts.writestr("xl/worksheets/sheet1.bin", sheet)
    return content.getvalue()


def _relation(kind: str, target: str) -> str:
    return (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
        f'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/>'
        "</Relationships>"
    )


@pytest.mark.parametrize(
    ("name", "content", "moments"),
    [
        ("q.xls", zlib.decompress(base64.b85decode(OLD)), [["2026-03-01", "2026-03-01 18:30:00", "07:05:00"]]),
        ("q.xlsb", binary_workbook(), []),
    ],
    ids=["xls", "xlsb"],
)
def test_workbooks_of_other_formats_are_read(
    service: Service, database: Database, name: str, content: bytes, moments: list[list[str]]
) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, "up-first", content, name)
    assert (entry["fileName"], entry["sheet"], entry["rows"]) == (name, "North", 2 + len(moments))
    expected = [["sku", "1.5", "True"], [None, "é", None], *moments]
    assert database.fetch("select cells, about ->> 'rowIndex' from line order by number") == [
        (cells, str(index)) for cells, index in zip(expected, (1, 3, 5), strict=False)
    ]


def test_cells_of_a_binary_workbook_without_a_column_are_read(service: Service, database: Database) -> None:
    """[MS-XLSB] 2.4: BrtShortBlank, BrtShortRk, BrtShortError, BrtShortBool, BrtShortReal, BrtShortSt, BrtShortIsst."""
    rich = b"\1" + wide("rich") + struct.pack("<IHH", 1, 0, 0)
    cells = row(0) + cell(62, 0, rich) + short_cell(17, wide("sku")) + short_cell(18, struct.pack("<I", 1))
    cells += row(1) + short_cell(13, struct.pack("<i", 7 << 2 | 2)) + short_cell(12) + short_cell(15, b"\1")
    cells += cell(5, 4, struct.pack("<d", 1.5)) + short_cell(16, struct.pack("<d", 2.5)) + short_cell(14, b"\x07")
    content = binary_workbook(cells, ("zero", "one"))
    database.execute("truncate line")
    (entry,) = upload(service, "up-first", content, "q.xlsb")
    assert (entry["status"], entry["rows"]) == ("Ok", 2)
    assert database.fetch("select cells from line order by number") == [
        (["rich", "sku", "one", None, None, None, None],),
        (["7", None, "True", None, "1.5", "2.5", None],),
    ]


def test_a_binary_workbook_is_rewritten_in_pieces(service: Service, database: Database) -> None:
    """Records of cells without a column, of more bytes than are read at once."""
    item = wide("x" * 50)
    cells = b"".join(row(number) + cell(6, 0, item) + short_cell(17, item) * 9 for number in range(1200))
    assert len(cells) > 1_048_576
    database.execute("truncate line")
    (entry,) = upload(service, "up-first", binary_workbook(cells), "q.xlsb")
    assert (entry["status"], entry["rows"]) == ("Ok", 1200)
    assert database.value("select count(*) from line, unnest(cells) as cell where cell = repeat('x', 50)") == 12_000


@pytest.mark.parametrize(
    "cells",
    [
        row(0) + short_cell(17, wide("a")) + b"\x11\x7f",
        row(0) + record(62, bytes(4)),
        row(0) + record(62, bytes(9) + b"\xff\0\0\0"),
        row(0) + short_cell(17, wide("a")) * 16_385,
        row(0) + short_cell(17, wide("a")) + cell(5, 2**31, struct.pack("<d", 1)),
    ],
    ids=["cut off", "no column", "no text", "too many columns", "a column that is none"],
)
def test_a_binary_workbook_that_cannot_be_rewritten_is_refused(
    service: Service, database: Database, cells: bytes
) -> None:
    database.execute("truncate line")
    (entry,) = upload(service, "up-first", binary_workbook(cells), "q.xlsb")
    assert (entry["success"], entry["status"]) == (False, "InvalidFormat")
    assert database.value("select count(*) from line") == 0


SHEETJS = """
import { createRequire } from "node:module";
const XLSX = createRequire(process.argv[2] + "/")("xlsx");
const rows = [["sku", "count", "price", "ok", "day"], ["horn", 3, 1.25, true, new Date(2026, 2, 1)], ["é", -7, 1e100]];
const book = XLSX.utils.book_new();
XLSX.utils.book_append_sheet(book, XLSX.utils.aoa_to_sheet(rows), "North");
console.log(XLSX.write(book, { bookType: "xlsb", type: "base64", bookSST: process.argv[3] === "shared" }));
"""


@pytest.mark.slow
@pytest.mark.parametrize("strings", ["inline", "shared"])
def test_a_binary_workbook_of_sheetjs_is_read(
    service: Service, database: Database, tmp_path: Path, strings: str
) -> None:
    script = tmp_path / "write.mjs"
    script.write_text(SHEETJS, encoding="utf-8")
    content = base64.b64decode(run(script, str(packages()), strings))
    database.execute("truncate line")
    (entry,) = upload(service, "up-first", content, "q.xlsb")
    assert (entry["sheet"], entry["rows"]) == ("North", 3)
    assert database.fetch("select cells from line order by number") == [
        (["sku", "count", "price", "ok", "day"],),
        (["horn", "3", "1.25", "True", "2026-03-01"],),
        (["é", "-7", "1E+100", None, None],),
    ]


# --- how many cells ------------------------------------------------------------------------------------------------


LAST_COLUMN = '<row><c r="XFD1"><v>1</v></c></row>'


def sparse_workbook(rows: str, encoding: str = "utf-8") -> bytes:
    """An `.xlsx` with these rows in its first sheet."""
    markup = f"""<?xml version="1.0" encoding="{encoding}"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
{rows}</sheetData></worksheet>"""
    return _with_part("xl/worksheets/sheet1.xml", markup.encode(encoding))


def old_workbook_with_far_cell() -> bytes:
    """The first text of the `.xls`, a record LABELSST ([MS-XLS] 2.4.149), is moved to the last column of row 45,000."""
    content = zlib.decompress(base64.b85decode(OLD))
    at = content.index(struct.pack("<HHHH", 0xFD, 10, 2, 1)) + 4
    return content[:at] + struct.pack("<HH", 44_999, 255) + content[at + 4 :]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("q.xlsx", sparse_workbook(LAST_COLUMN + "<row/>" * 2999)),
        ("q.xls", old_workbook_with_far_cell()),
        ("q.xlsb", binary_workbook(TWO_ROWS + row(999) + cell(4, 16_383, b"\1"))),
    ],
    ids=["xlsx", "xls", "xlsb"],
)
def test_a_small_workbook_with_millions_of_cells_is_refused(
    service: Service, database: Database, name: str, content: bytes
) -> None:
    database.execute("truncate line")
    assert len(content) < 40_000
    response = service.post("/api/up-first", files={"file": (name, content, XLSX)})
    detail = problem(response, 413)["detail"]
    assert detail.startswith(f"the workbook {name} is too large: it has more than 10000000 cells")
    assert database.value("select count(*) from line") == 0


@pytest.fixture(scope="module")
def limited(service: Service, database: Database, serve: Serve) -> Service:
    settings = {"Enabled": "true", "UploadHandlers:ExcelMaxCells": "50000"}
    return serve(database, "", {f"Service:UploadOptions:{key}": value for key, value in settings.items()})


@pytest.mark.slow
def test_the_limit_of_cells_can_be_set(limited: Service) -> None:
    (entry,) = upload(limited, "up-first", sparse_workbook(LAST_COLUMN * 3))
    assert (entry["status"], entry["rows"]) == ("Ok", 3)
    response = limited.post("/api/up-first", files={"file": ("q.xlsx", sparse_workbook(LAST_COLUMN * 4), XLSX)})
    assert "more than 50000 cells" in problem(response, 413)["detail"]


def test_cells_of_markup_in_utf16_are_counted_while_they_are_read(limited: Service, database: Database) -> None:
    """Rows that have been processed are rolled back."""
    database.execute("truncate line")
    content = sparse_workbook(LAST_COLUMN * 4, "utf-16")
    response = limited.post("/api/up-first", files={"file": ("q.xlsx", content, XLSX)})
    assert "more than 50000 cells" in problem(response, 413)["detail"]
    assert database.value("select count(*) from line") == 0


def test_a_workbook_that_needs_too_much_memory_is_refused_with_the_reason(service: Service) -> None:
    content = binary_workbook(TWO_ROWS + row(1_048_575) + cell(4, 16_383, b"\1"))
    response = service.post("/api/up-first", files={"file": ("q.xlsb", content, XLSX)})
    assert problem(response, 413)["detail"] == (
        "the workbook q.xlsb is too large: reading it takes too much memory or time"
    )


def test_a_sheet_that_is_not_read_may_have_any_number_of_cells(service: Service) -> None:
    content = sparse_workbook(LAST_COLUMN + "<row/>" * 2999)
    (entry,) = upload(service, "up-sheet?sheet=South", content)
    assert (entry["sheet"], entry["status"]) == ("South", "Ok")
