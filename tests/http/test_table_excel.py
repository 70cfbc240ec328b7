"""Rows as a spreadsheet, read by openpyxl (formats-1 to formats-6, formats-6 to formats-9)."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import openpyxl
import psutil
import pytest
from openpyxl.utils.escape import unescape

from tests.harness.database import Database
from tests.harness.expect import JSON, problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
SECTION = "Service:TableFormatOptions:"
ON = {SECTION + "Enabled": "true"}

SQL = r"""
create type gauge as (id int, label text);
create domain amount as numeric;
create function numbers() returns table (small int, exact numeric, big bigint, "float" float8, pay amount, long numeric,
    cash money, nan float8, huge numeric, ids int[])
    language sql stable as $$ values (-1, 1.50, 9007199254740993, 1e-7::float8, 12.5::amount,
        1234567890.12345678901234567890, 1.5::money, 'NaN'::float8, 1e400::numeric, array[1, 2]) $$;
create function moments() returns table (d date, ts timestamp, tz timestamptz, micro timestamp, old date, bc date,
    never timestamp, t time, i interval, first date, leap date, last timestamp)
    language sql stable set timezone = 'Asia/Kolkata' as $$ values (date '2024-02-29', timestamp '2024-01-15 10:30',
        timestamptz '2024-01-15 10:30+05:30', timestamp '2024-01-15 10:30:00.123456', date '1899-12-31',
        date '0044-03-15 BC', timestamp 'infinity', time '10:30', interval '1 day', date '1900-01-01',
        date '1900-03-01', timestamp '9999-12-31 23:59:59.999999') $$;
create function others() returns table (yes bool, no bool, nix text, doc jsonb, uid uuid, empty text, g gauge, sum text,
    link text)
    language sql stable as $$ values (true, false, null, '{"k": 1}'::jsonb,
        '7f0c2b7e-53a5-4a6e-8f6e-0d1d4c1f0a11'::uuid, '', row(7, 'x')::gauge, '=1+1', 'https://example.org') $$;
create function texts() returns setof text language sql stable as $$
    values ('<r>a & "b"</r>'), (' kept '), (E'tab\t, line\nand \r'), (E'horn \x07 \x1f'), ('_x0041_ stays'), ('_x00'),
        (U&'\+01F600 \FFFE \FFFD'), (repeat('x', 40000)), (repeat(U&'\+01F600', 20000)), ('_'), ('001') $$;
create function orders(_format text, _file text default null, "pageName" text default null) returns table (order_id int)
    language sql stable as 'values (1), (2)';
create function no_rows() returns table (order_id int, d date) language sql stable
    as 'select 1, now()::date where false';
create function first_only() returns table (n int) language sql stable as 'values (1), (2)';
create function many(rows int) returns table (a int, b int, c numeric, d text, e text, f timestamp, g date, h bool,
    i float8, j text) language sql stable as $$
    select n, n * 2, n / 7.0, md5(n::text), 'text ' || n, timestamp '2024-01-01' + n * interval '1 minute',
        date '2024-01-01' + n % 1000, n % 2 = 0, n / 3.0::float8, null from generate_series(1, rows) n $$;
create function broken(rows int) returns table (n int) language sql stable as $$
    select 1 / (rows - n) from generate_series(1, rows) n $$;
create function locked() returns table (n int) language sql stable as 'values (1)';
comment on function numbers() is E'HTTP\ntable_format = excel';
comment on function moments() is E'HTTP\ntable_format = excel';
comment on function others() is E'HTTP\ntable_format = excel';
comment on function texts() is E'HTTP\ntable_format = excel';
comment on function orders(text, text, text) is
    E'HTTP\ntable_format = {_format}\nexcel_file_name = {_file}\nexcel_sheet = {pageName}\n'
    'Content-Type: text/plain\nContent-Disposition: inline\nX-Kind: table';
comment on function no_rows() is E'HTTP\ntable_format = excel\nexcel_file_name No orders\nexcel_sheet No: orders';
comment on function first_only() is E'HTTP\nsingle\ntable_format = excel';
comment on function many(int) is E'HTTP\ntable_format = excel';
comment on function broken(int) is E'HTTP\ntable_format = excel';
comment on function locked() is E'HTTP\nauthorize\ntable_format = excel';
"""


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the service would put temporary files."""
    return tmp_path_factory.mktemp("scratch")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, scratch: Path) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(scratch))
        started = serve(database, SQL, ON)
    yield started
    assert list(scratch.iterdir()) == []


def workbook(service: Service, path: str) -> Any:
    response = service.get(path)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == XLSX
    return openpyxl.load_workbook(io.BytesIO(response.content))


def row(service: Service, path: str, number: int = 2) -> dict[str, Any]:
    """The cells of one row by title."""
    sheet = workbook(service, path).active
    return {title.value: cell for title, cell in zip(sheet[1], sheet[number], strict=True)}


def test_numbers_become_numeric_cells(service: Service) -> None:
    cells = row(service, "/api/numbers")
    values = {title: cell.value for title, cell in cells.items()}
    assert values == {
        "small": -1,
        "exact": 1.5,
        "big": 9007199254740992,
        "float": 1e-07,
        "pay": 12.5,
        "long": 1234567890.1234567,
        "cash": "$1.50",
        "nan": "NaN",
        "huge": "1" + "0" * 400,
        "ids": "{1,2}",
    }
    assert [cells[title].data_type for title in ("small", "exact", "big", "float", "pay", "long")] == ["n"] * 6


def test_dates_and_time_stamps_become_date_cells(service: Service) -> None:
    cells = row(service, "/api/moments")
    values = {title: cell.value for title, cell in cells.items()}
    assert values == {
        "d": datetime(2024, 2, 29),
        "ts": datetime(2024, 1, 15, 10, 30),
        "tz": datetime(2024, 1, 15, 5, 0),
        "micro": values["micro"],
        "old": "1899-12-31",
        "bc": "0044-03-15 BC",
        "never": "infinity",
        "t": "10:30:00",
        "i": "1 day",
        "first": datetime(1900, 1, 1),
        "leap": datetime(1900, 3, 1),
        # Its number would round to a day that there is not.
        "last": "9999-12-31 23:59:59.999999",
    }
    assert abs((values["micro"] - datetime(2024, 1, 15, 10, 30, 0, 123456)).total_seconds()) < 0.001
    assert {cells[title].number_format for title in ("d", "ts", "tz", "first")} == {"yyyy-MM-dd HH:mm:ss"}


def test_other_values_become_boolean_text_or_empty_cells(service: Service) -> None:
    cells = row(service, "/api/others")
    assert {title: (cell.data_type, cell.value) for title, cell in cells.items()} == {
        "yes": ("b", True),
        "no": ("b", False),
        "nix": ("n", None),
        "doc": ("s", '{"k": 1}'),
        "id": ("n", 7),
        "uid": ("s", "7f0c2b7e-53a5-4a6e-8f6e-0d1d4c1f0a11"),
        "empty": ("s", ""),
        "label": ("s", "x"),
        "sum": ("s", "=1+1"),
        "link": ("s", "https://example.org"),
    }


def test_texts_are_preserved_in_cells(service: Service) -> None:
    sheet = workbook(service, "/api/texts").active
    smile = "\U0001f600"
    # openpyxl leaves the escapes of ECMA-376, 22.9.2.19 alone; spreadsheet programs read them.
    assert [unescape(cell.value) for cell in sheet["A"]] == [
        "texts",
        '<r>a & "b"</r>',
        " kept ",
        "tab\t, line\nand \r",
        "horn \x07 \x1f",
        "_x0041_ stays",
        "_x00",
        f"{smile} \ufffe \ufffd",
        "x" * 32767,
        smile * 16383,
        "_",
        "001",
    ]


def test_titles_are_bold(service: Service) -> None:
    sheet = workbook(service, "/api/orders?format=excel").active
    assert [(cell.value, cell.font.bold) for cell in sheet["A"]] == [("orderId", True), (1, False), (2, False)]


@pytest.mark.parametrize(
    ("query", "file", "sheet"),
    [
        ("", 'filename="orders.xlsx"', "orders"),
        ("&file=&pageName=", 'filename="orders.xlsx"', "orders"),
        ("&file=May%202024", 'filename="May 2024.xlsx"', "orders"),
        ("&file=a/b.XLSX&pageName=a/b:c", 'filename="a_b.XLSX"', "a_b_c"),
        ("&file=Z%C3%BCrich", "filename=\"Z_rich.xlsx\"; filename*=UTF-8''Z%C3%BCrich.xlsx", "orders"),
        ("&file=x%0D%0ASet-Cookie:%20a", 'filename="xSet-Cookie: a.xlsx"', "orders"),
        (f"&pageName={'y' * 40}%26%3C", 'filename="orders.xlsx"', "y" * 31),
        ("&pageName=%26%3C%22", 'filename="orders.xlsx"', '&<"'),
    ],
)
def test_file_and_sheet_names_follow_the_comment(service: Service, query: str, file: str, sheet: str) -> None:
    response = service.get(f"/api/orders?format=excel{query}")
    assert response.headers.get_list("content-disposition") == [f"attachment; {file}"]
    assert response.headers["content-type"] == XLSX
    assert response.headers["x-kind"] == "table"
    assert openpyxl.load_workbook(io.BytesIO(response.content)).sheetnames == [sheet]


def test_an_unknown_format_is_ignored(service: Service) -> None:
    response = service.get("/api/orders?format=json&file=x")
    assert response.json() == [{"orderId": 1}, {"orderId": 2}]
    assert response.headers["content-disposition"] == "inline"


def test_an_empty_set_has_its_titles(service: Service) -> None:
    book = workbook(service, "/api/no-rows")
    assert book.sheetnames == ["No_ orders"]
    assert [[cell.value for cell in cells] for cells in book.active.rows] == [["orderId", "d"]]


def test_single_has_one_row(service: Service) -> None:
    assert [[cell.value for cell in cells] for cells in workbook(service, "/api/first-only").active.rows] == [
        ["n"],
        [1],
    ]


def test_head_gives_the_header_fields_alone(service: Service) -> None:
    for path in ("/api/first-only", "/api/many?rows=20000"):
        response = service.request("HEAD", path)
        assert (response.status_code, response.headers["content-type"], response.content) == (200, XLSX, b"")


def test_an_error_before_the_first_byte_is_a_problem(service: Service) -> None:
    assert problem(service.get("/api/broken?rows=10"), 500)["detail"] == "22012"


def test_an_error_after_the_first_byte_cuts_the_response(service: Service) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        service.get("/api/broken?rows=100000")


def test_spreadsheets_require_authorization(service: Service) -> None:
    problem(service.get("/api/locked"), 401)


def test_formats_of_cells_and_the_name_of_the_sheet_can_be_configured(
    database: Database, service: Service, serve: Serve
) -> None:
    """The fixture `service` loads the functions."""
    look = {
        SECTION + "ExcelKey": "xlsx",
        SECTION + "ExcelSheetName": "Report",
        SECTION + "ExcelDateTimeFormat": "dd.mm.yyyy",
        SECTION + "ExcelNumericFormat": "#,##0.00",
    }
    custom = serve(database, settings={**ON, **look})
    book = workbook(custom, "/api/orders?format=xlsx")
    assert book.sheetnames == ["Report"]
    assert book.active["A2"].number_format == "#,##0.00"
    assert custom.get("/api/orders?format=excel").headers["content-type"] == "text/plain"
    assert custom.get("/api/moments").headers["content-type"] == JSON


def test_equal_results_give_equal_workbooks(service: Service) -> None:
    with zipfile.ZipFile(io.BytesIO(service.get("/api/numbers").content)) as archive:
        assert re.findall(rb"\d{4}-\d\d-\d\dT[^<]*", archive.read("docProps/core.xml")) == [b"1980-01-01T00:00:00Z"] * 2
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.slow
def test_a_hundred_thousand_rows_need_little_memory(service: Service) -> None:
    service.get("/api/many?rows=20000")
    process = psutil.Process(service.pids()[0])
    before = process.memory_info().rss
    peak, body = before, io.BytesIO()
    with service.client.stream("GET", "/api/many?rows=100000") as response:
        for part in response.iter_bytes():
            body.write(part)
            peak = max(peak, process.memory_info().rss)
    assert peak - before < 64 << 20
    with zipfile.ZipFile(body) as archive:
        assert archive.testzip() is None
        sheet = archive.read("xl/worksheets/sheet1.xml")
    assert sheet.count(b"<row ") == 100_001
    assert re.search(rb'<row r="100001"><c r="A100001"><v>100000</v></c>', sheet)


@pytest.mark.slow
def test_a_disconnected_client_frees_the_connection(database: Database, service: Service, scratch: Path) -> None:
    with service.connect(receive_buffer=4096) as connection:
        connection.sendall(b"GET /api/many?rows=5000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    wait_until(lambda: not database.backends("state <> 'idle'"), "its query has ended")
    assert list(scratch.iterdir()) == []
