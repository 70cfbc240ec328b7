"""An import of a million rows with a thousand bad ones: all good rows are stored, all bad ones reported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

pytestmark = pytest.mark.drill

ROWS = int(os.environ.get("ROWCALL_DRILL_ROWS", "1000000"))
BAD = 1000
EVERY = ROWS // BAD
GROWTH = 20_000_000
"""Most bytes by which the worker may grow: for the rows between two savepoints and the reports of bad ones."""
SQL = """
create table stock (sku text primary key, count int not null check (count >= 0));
create function import_stock(_files json) returns json language sql as 'select _files';
comment on function import_stock(json) is 'HTTP POST /stock
upload for csv
timeout 20 minutes
param _files is upload metadata
row_command = insert into stock values (($2)[1], ($2)[2]::int)
on_error = skip';
"""


def rows() -> Iterator[bytes]:
    """Yield the parts of a form with the file; each `EVERY`th row is bad, in three ways in turn."""
    yield b'--x\r\ncontent-disposition: form-data; name="f"; filename="stock.csv"\r\ncontent-type: text/csv\r\n\r\n'
    for start in range(0, ROWS, 10_000):
        yield "".join(row(number) for number in range(start, start + 10_000)).encode()
    yield b"\r\n--x--\r\n"


def row(number: int) -> str:
    if number % EVERY:
        return f"sku {number},{number % 100}\n"
    return (f"sku {number},-1\n", f"sku {number},many\n", f"sku {number + 1},1\n")[number // EVERY % 3]


def test_a_million_rows_with_a_thousand_invalid_ones_are_imported(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    limits = {"HttpServer:Limits:MaxRequestBodySize": "1000000000", "Service:CommandTimeout": "20 minutes"}
    service = serve_once(own_database, SQL, {**limits, "Service:UploadOptions:Enabled": "true"})
    before = resident(service)
    headers = {"content-type": "multipart/form-data; boundary=x"}
    with service.new_client(timeout=1200) as client:
        response = client.post("/stock", content=rows(), headers=headers)
    assert response.status_code == 200, response.text
    (result,) = response.json()
    assert (result["rows"], result["failed"], len(result["errors"])) == (ROWS, BAD, 100)
    assert own_database.value("select count(*) from stock") == ROWS - BAD
    # The row behind the one that has its key is the one that is refused.
    shown = [(error["row"], error["code"]) for error in result["errors"][:3]]
    assert shown == [(1, "23514"), (EVERY + 1, "22P02"), (2 * EVERY + 2, "23505")]
    growth = resident(service) - before
    print(f"{ROWS} rows, the workers have grown by {growth / 1e6:.1f} MB")
    assert growth < GROWTH


def resident(service: Service) -> int:
    """Return the memory of all workers in bytes."""
    return sum(psutil.Process(pid).memory_info().rss for pid in service.pids())
