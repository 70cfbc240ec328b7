"""The handler `jsonl`: a row command for each line of JSON lines, with errors, columns by name, dry runs, progress."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table stock (sku text primary key, count numeric not null check (count >= 0), extra jsonb);
create function add_line(_number int, _line json) returns text language sql as $$
    insert into stock values (_line ->> 'sku', (_line ->> 'count')::numeric, _line::jsonb) returning sku
$$;
create function import_whole(_files json) returns json language sql as 'select _files';
comment on function import_whole(json) is 'HTTP POST /whole
upload for jsonl
param _files is upload metadata
row_command = select add_line($1, $2)';
create function import_insert(_files json) returns json language sql as 'select _files';
comment on function import_insert(json) is 'HTTP POST /insert
upload for jsonl
param _files is upload metadata
row_command = insert into stock values ($2::json ->> ''sku'', ($2::json ->> ''count'')::numeric, $4::jsonb)';
create function import_mapped(_files json, _mode text default null, _dry text default null)
returns json language sql as 'select _files';
comment on function import_mapped(json, text, text) is 'HTTP POST /mapped
sse progress
upload_progress
upload for jsonl
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::numeric, ($2)[3]::jsonb)
map_columns = sku, count, extra
on_error = {_mode}
dry_run = {_dry}';
create function import_rows(_files json) returns json language sql as 'select _files';
comment on function import_rows(json) is 'HTTP POST /rows
sse progress
upload_progress
upload for csv
fallback_handler = excel
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::numeric)
on_error = skip';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {"Service:RequiresAuthorization": "false", "Service:UploadOptions:Enabled": "true"}
    return serve(database, SQL, settings)


@pytest.fixture(autouse=True)
def _truncate_stock(database: Database, service: Service) -> None:
    database.execute("truncate stock")


def send(service: Service, path: str, *lines: object, name: str = "a.jsonl", **query: str) -> httpx.Response:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line, ensure_ascii=False) for line in lines)
    return service.post(path, files={"file": (name, text.encode(), "application/jsonl")}, params=query)


def stored_rows(database: Database) -> list[tuple[Any, ...]]:
    return database.fetch("select sku, count::text, extra from stock order by sku")


def test_each_json_line_is_a_row(service: Service, database: Database) -> None:
    lines = [{"sku": "lamp", "count": 3}, "", {"sku": "é", "count": 0.10, "tags": ["a"]}]
    (entry,) = send(service, "/whole", *lines).json()
    assert (entry["type"], entry["fileName"], entry["status"], entry["lastResult"]) == ("jsonl", "a.jsonl", "Ok", "é")
    assert [(sku, count) for sku, count, _ in stored_rows(database)] == [("lamp", "3"), ("é", "0.1")]


@pytest.mark.parametrize("path", ["/whole", "/insert", "/mapped"])
def test_many_lines_are_imported(service: Service, database: Database, path: str) -> None:
    response = send(service, path, *({"sku": f"s{n:05}", "count": n} for n in range(3000)))
    assert response.status_code == 200, response.text
    assert database.fetch("select count(*), sum(count)::int from stock") == [(3000, 3000 * 2999 // 2)]


def test_numbers_preserve_all_digits(service: Service, database: Database) -> None:
    line = '{"count": 12345678901234567890.120, "sku": "x", "extra": {"n": 1.50}}'
    assert send(service, "/mapped", line).status_code == 200
    assert database.fetch("select count::text, extra::text from stock") == [("12345678901234567890.120", '{"n": 1.50}')]


@pytest.mark.parametrize("bad", ["{", '{"sku": 1} x', "nothing"])
def test_invalid_json_line_gets_400_and_imports_nothing(service: Service, database: Database, bad: str) -> None:
    response = send(service, "/whole", {"sku": "a", "count": 1}, bad, {"sku": "b", "count": 1})
    assert problem(response, 400)["detail"].startswith("a.jsonl line 2 is no row: ")
    assert stored_rows(database) == []


def test_blank_lines_count_in_line_numbers(service: Service) -> None:
    response = send(service, "/whole", {"sku": "a", "count": 1}, "", "  ", "x")
    assert problem(response, 400)["detail"].startswith("a.jsonl line 4 is no row: ")


def test_all_errors_are_listed_in_order(service: Service, database: Database) -> None:
    lines = [{"sku": "a", "count": "many"}, "{", {"sku": "b", "count": 1}, "[7]", {"sku": "c", "count": -1}]
    members = problem(send(service, "/mapped", *lines, mode="collect"), 400)
    assert members["detail"] == "4 rows have errors; nothing was imported"
    assert [(item["row"], item.get("column"), item.get("value")) for item in members["errors"]] == [
        (1, "count", "many"), (2, None, "{"), (4, None, "[7]"), (5, None, None),
    ]  # fmt: skip
    assert members["errors"][2]["reason"] == "it is no row: it is no object"
    assert stored_rows(database) == []


def test_rows_with_errors_are_skipped_and_a_dry_run_stores_nothing(service: Service, database: Database) -> None:
    lines = [{"sku": "a", "count": 1}, "{", {"sku": "b", "count": None}, {"count": 2, "sku": "c"}]
    (entry,) = send(service, "/mapped", *lines, mode="skip", dry="true").json()
    assert (entry["rows"], entry["failed"]) == (4, 2)
    assert stored_rows(database) == []
    (entry,) = send(service, "/mapped", *lines, mode="skip").json()
    assert [(item["row"], item["code"]) for item in entry["errors"]] == [(2, "22P02"), (3, "23502")]
    assert [(sku, count) for sku, count, _ in stored_rows(database)] == [("a", "1"), ("c", "2")]


def test_metadata_contains_the_file_size(service: Service, database: Database) -> None:
    response = send(service, "/insert", {"sku": "a", "count": 1}, {"sku": "b", "count": 2, "more": "x" * 400_000})
    assert response.status_code == 200, response.text
    about = database.value("select extra from stock where sku = 'a'")
    assert (about["fileName"], about["size"]) == ("a.jsonl", response.json()[0]["size"])


def test_binary_files_are_refused(service: Service) -> None:
    response = service.post("/whole", files={"file": ("a.bin", bytes(range(32)) * 50, "application/jsonl")})
    (entry,) = response.json()
    assert (entry["success"], entry["status"]) == (False, "ProbablyBinary")


@pytest.mark.parametrize("path", ["/mapped", "/rows"])
def test_progress_of_rows_is_published(service: Service, path: str) -> None:
    lines: list[object] = [{"sku": f"s{n}", "count": n} for n in range(2000)]
    if path == "/rows":
        lines = [f"s{n},{n}" for n in range(2000)]
    lines[7] = "{" if path == "/mapped" else "s7,many"
    with EventStream(service, f"{path}/progress") as stream:
        response = send(service, path, *lines, mode="skip") if path == "/mapped" else send(service, path, *lines)
        assert response.status_code == 200, response.text
        size = int(response.request.headers["content-length"])
        rows = {"file": "a.jsonl", "rows": 2000, "failed": 1}
        last = json.dumps({"received": size, "of": size, **rows}, separators=(",", ":"))
        stream.wait(lambda: last in stream.messages, last)
        counts = [json.loads(message).get("rows", 0) for message in stream.messages]
        assert counts == sorted(counts)
