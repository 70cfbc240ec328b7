"""Imports with rows that the database refuses: `on_error`, `map_columns` and `dry_run` (CSV and workbooks)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import httpx
import openpyxl
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table stock (sku text primary key, count int not null check (count >= 0));
create function add_stock(_sku text, _count int) returns int language plpgsql as $$
begin
  if _sku = 'banned' then raise exception 'banned is not sold any more'; end if;
  insert into stock values (_sku, _count);
  return _count;
end $$;
create function import_skip(_files json) returns json language sql as 'select _files';
comment on function import_skip(json) is 'HTTP POST /skip
upload for csv
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::int)
on_error = skip';
create function import_collect(_files json) returns json language sql as 'select _files';
comment on function import_collect(json) is 'HTTP POST /collect
upload for csv
param _files is upload metadata
row_command = select add_stock(($2)[1], ($2)[2]::int)
on_error = collect 5';
create function import_mode(_files json, _mode text default null, _dry text default null) returns json language sql as
$$ select json_build_object('files', _files, 'stored', (select count(*) from stock)) $$;
comment on function import_mode(json, text, text) is 'HTTP POST /mode
upload for csv
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::int)
on_error = {_mode}
dry_run = {_dry}';
create function import_named(_files json) returns json language sql as 'select _files';
comment on function import_named(json) is 'HTTP POST /named
upload for csv
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::int)
map_columns = sku, count
on_error = collect';
create function import_plainly_named(_files json) returns json language sql as 'select _files';
comment on function import_plainly_named(json) is 'HTTP POST /plainly-named
upload for csv
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::int)
map_columns = sku, count';
create function import_chained(_files json) returns json language sql as 'select _files';
comment on function import_chained(json) is 'HTTP POST /chained
upload for csv
param _files is upload metadata
row_command = select add_stock(($2)[1], ($2)[2]::int + coalesce($3::int, 0))
on_error = skip';
create function import_sheet(_files json) returns json language sql as 'select _files';
comment on function import_sheet(json) is 'HTTP POST /sheet
upload for excel
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::int)
map_columns = Sku, Count
on_error = collect';
create function import_broken(_files json) returns json language sql as 'select _files';
comment on function import_broken(json) is 'HTTP POST /broken
upload for csv
param _files is upload metadata
row_command = insert into missing_table values (($2)[1])
on_error = skip';
create function import_wrong(_files json) returns json language sql as 'select _files';
comment on function import_wrong(json) is 'HTTP POST /wrong
upload for csv
param _files is upload metadata
row_command = select 1
on_error = sometimes';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {"Service:RequiresAuthorization": "false", "Service:UploadOptions:Enabled": "true"}
    return serve(database, SQL, settings)


@pytest.fixture(autouse=True)
def _truncate_stock(database: Database, service: Service) -> None:
    database.execute("truncate stock")


def send(service: Service, path: str, *files: str, **query: str) -> httpx.Response:
    parts = [("file", (f"{number}.csv", text.encode(), "text/csv")) for number, text in enumerate(files, 1)]
    return service.post(path, files=parts, params=query)


def stored_rows(database: Database) -> list[tuple[Any, ...]]:
    return database.fetch("select sku, count from stock order by sku")


def test_rows_with_errors_are_skipped(service: Service, database: Database) -> None:
    text = "horn,10\npedal,many\nsaddle,3\nhorn,4\nchain,-1\nlamp,\ntube,5\n"
    (entry,) = send(service, "/skip", text).json()
    assert stored_rows(database) == [("horn", 10), ("saddle", 3), ("tube", 5)]
    assert (entry["success"], entry["rows"], entry["failed"]) == (True, 7, 4)
    assert [(error["row"], error.get("column"), error.get("value"), error["code"]) for error in entry["errors"]] == [
        (2, "2", "many", "22P02"),
        (4, None, None, "23505"),
        (5, None, None, "23514"),
        (6, "count", None, "23502"),
    ]
    assert entry["errors"][0]["reason"] == 'invalid input syntax for type integer: "many"'
    assert "invalid input syntax" not in service.log


def test_collect_mode_lists_all_errors_and_imports_nothing(service: Service, database: Database) -> None:
    response = send(service, "/collect", "horn,10\npedal,many\nbanned,1\n", "lamp,1\nlamp,2\n")
    answer = problem(response, 400)
    assert answer["detail"] == "3 rows have errors; nothing was imported"
    assert answer["errors"] == [
        {
            "file": "1.csv", "row": 2, "column": "2", "value": "many", "code": "22P02",
            "reason": 'invalid input syntax for type integer: "many"',
        },
        {"file": "1.csv", "row": 3, "reason": "banned is not sold any more", "code": "P0001"},
        {
            "file": "2.csv", "row": 2, "code": "23505",
            "reason": 'duplicate key value violates unique constraint "stock_pkey"',
        },
    ]  # fmt: skip
    assert stored_rows(database) == []
    assert send(service, "/collect", "horn,10\n").status_code == 200
    assert stored_rows(database) == [("horn", 10)]


def test_collect_mode_stops_at_its_error_limit(service: Service, database: Database) -> None:
    response = problem(send(service, "/collect", "".join(f"x{n},no\n" for n in range(100))), 400)
    assert response["detail"] == "at least 5 rows have errors; nothing was imported"
    assert [error["row"] for error in response["errors"]] == [1, 2, 3, 4, 5]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 63, 64, 65, 300, 5000])
def test_errors_among_many_rows_are_skipped(service: Service, database: Database, count: int) -> None:
    """The statement that takes many rows is used behind the first ones."""
    bad = {number for number in range(1, count + 1) if number % 37 == 0}
    text = "".join(f"sku{number},{'no' if number in bad else number}\n" for number in range(1, count + 1))
    (entry,) = send(service, "/skip", text).json()
    assert (entry["rows"], entry["failed"]) == (count, len(bad))
    assert [error["row"] for error in entry["errors"]] == sorted(bad)[:100]
    expected = {(f"sku{number}", number) for number in range(1, count + 1)} - {(f"sku{n}", n) for n in bad}
    assert set(stored_rows(database)) == expected


def test_row_result_is_passed_to_the_next_row(service: Service, database: Database) -> None:
    (entry,) = send(service, "/chained", "a,1\nb,no\nc,10\nbanned,5\nd,100\n").json()
    assert stored_rows(database) == [("a", 1), ("c", 11), ("d", 111)]
    assert (entry["lastResult"], entry["failed"]) == (111, 2)


@pytest.mark.parametrize(
    ("mode", "status"), [("abort", 400), ("SKIP", 200), ("collect", 400), ("collect 3", 400), ("nonsense", 400)]
)
def test_request_parameter_selects_the_error_mode(service: Service, database: Database, mode: str, status: int) -> None:
    response = send(service, "/mode", "a,1\nb,no\n", mode=mode)
    assert response.status_code == status
    assert ("errors" in response.json()) == mode.startswith("collect")
    assert stored_rows(database) == ([("a", 1)] if status == 200 else [])


def test_dry_run_stores_nothing(service: Service, database: Database) -> None:
    response = send(service, "/mode", "a,1\nb,no\n", mode="skip", dry="true").json()
    assert (response["stored"], response["files"][0]["failed"]) == (1, 1)
    assert stored_rows(database) == []
    assert send(service, "/mode", "a,1\n", mode="skip", dry="false").json()["stored"] == 1
    assert stored_rows(database) == [("a", 1)]


def test_columns_are_mapped_by_header_names(service: Service, database: Database) -> None:
    (entry,) = send(service, "/plainly-named", 'price, Count ,SKU\n1.50,3,"a ""b"", c"\n2,4,d\n').json()
    assert entry["success"] is True
    assert stored_rows(database) == [('a "b", c', 3), ("d", 4)]
    database.execute("truncate stock")
    response = problem(send(service, "/named", "count,sku\n1,a\nno,b\n"), 400)
    assert response["errors"] == [
        {
            "file": "1.csv", "row": 3, "column": "count", "value": "no", "code": "22P02",
            "reason": 'invalid input syntax for type integer: "no"',
        }
    ]  # fmt: skip
    detail = problem(send(service, "/named", "number,name\n1,a\n"), 400)["detail"]
    assert detail == "1.csv has no column sku, count in its first row"


@pytest.mark.slow
def test_workbook_errors_have_sheet_row_and_column(service: Service, database: Database) -> None:
    response = send_workbook(service, {"North": [["Count", "Sku"], [1, "a"], ["x", "b"]], "South": [["Sku"], ["c"]]})
    answer = problem(response, 400)
    assert [(error["sheet"], error["row"], error["column"], error["value"]) for error in answer["errors"]] == [
        ("North", 3, "Count", "x")
    ]
    assert answer["errors"][0]["file"] == "book.xlsx"
    (entry,) = send_workbook(service, {"North": [["Count", "Sku"], [1, "a"]]}).json()
    assert entry["success"] is True
    assert stored_rows(database) == [("a", 1)]


def send_workbook(service: Service, sheets: Mapping[str, list[list[object]]]) -> httpx.Response:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    data = io.BytesIO()
    book.save(data)
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    return service.post("/sheet", files={"file": ("book.xlsx", data.getvalue(), kind)})


def test_errors_of_the_row_command_itself_get_500(service: Service) -> None:
    problem(send(service, "/broken", "a\nb\n"), 500)


def test_invalid_on_error_annotation_is_logged(service: Service) -> None:
    assert "none of abort, skip, collect, collect N with N up to 10000" in service.log
