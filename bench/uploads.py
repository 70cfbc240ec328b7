"""Uploads: rows a second through row commands, bytes a second into a folder, and what they do to everybody else.

    python -m bench.uploads [--rows 300000] [--megabytes 2000] [--workload NAME ...]

Beside each figure stand its limit (psql's COPY, cp), how much the worker grew, and the latency of a small endpoint of
the same worker, alone and meanwhile.
"""

import argparse
import http.client
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.one_worker import SMALL, Latency, OneWorker
from bench.postgres import Server, throw_away
from bench.services import free_port

SQL = """
create table kept (number int, sku text, title text, count int);
create function keep(_n int, _cells text[]) returns void language sql as
    $$ insert into kept values (_n, _cells[1], _cells[2], _cells[3]::int) $$;
create function keep_all(_n int, _cells text[], _previous int, _about json) returns int language sql as
    $$ insert into kept values (_n, _cells[1], _cells[2], _cells[3]::int) returning number $$;
create function up_function() returns bigint language sql as 'select count(*) from kept';
comment on function up_function() is 'HTTP POST
upload for csv
row_command = select keep($1, $2)';
create function up_chained() returns bigint language sql as 'select count(*) from kept';
comment on function up_chained() is 'HTTP POST
upload for csv
row_command = select keep_all($1, $2, $3, $4)';
create function up_insert() returns bigint language sql as 'select count(*) from kept';
comment on function up_insert() is 'HTTP POST
upload for csv
row_command = insert into kept (number, sku, title, count) values ($1, ($2)[1], ($2)[2], ($2)[3]::int)';
create function up_excel() returns bigint language sql as 'select count(*) from kept';
comment on function up_excel() is 'HTTP POST
upload for excel
row_command = select keep($1, $2)';
create function up_folder() returns int language sql as 'select 1';
comment on function up_folder() is 'HTTP POST
upload for file_system';
create function up_object() returns int language sql as 'select 1';
comment on function up_object() is 'HTTP POST
upload for large_object';
"""

BOUNDARY = "bench-of-uploads"
PIECE = 262_144


@dataclass(frozen=True, slots=True)
class Measured:
    workload: str
    amount: float
    unit: str
    seconds: float
    grown: float
    """Megabytes."""
    alone: float
    meanwhile: float
    """Milliseconds: p99 of the small endpoint."""
    limit: float | None = None
    """Of `amount` a second."""

    def line(self) -> str:
        rate = self.amount / self.seconds
        ratio = "" if self.limit is None else f", {rate / self.limit:.2f} of {self.limit:,.0f}"
        return (
            f"{self.workload:<10} {rate:>12,.0f} {self.unit}/s{ratio}; worker +{self.grown:.0f} MB; "
            f"p99 {self.alone:.1f} ms alone, {self.meanwhile:.1f} ms meanwhile"
        )


class Bench:
    def __init__(self, server: Server, port: int, folder: Path) -> None:
        self.server = server
        self.port = port
        self.folder = folder
        uploads = "Service:UploadOptions:"
        self.service = OneWorker(
            server,
            port,
            f"{uploads}Enabled=true",
            f"{uploads}LogUploadEvent=false",
            f"{uploads}UploadHandlers:FileSystemPath={folder}/stored",
            "HttpServer:Limits:MaxRequestBodySize=8000000000",
        )

    def run(
        self, name: str, path: str, file: Path, kind: str, amount: float, unit: str, limit: float | None
    ) -> Measured:
        self.server.psql("-c", "truncate kept")
        small = Latency(self.port)
        alone = small.p99(1.0)
        before = self.service.memory()
        most = before

        def watch() -> None:
            nonlocal most
            while not done.wait(0.05):
                most = max(most, self.service.memory())

        done = threading.Event()
        threads = [threading.Thread(target=watch), threading.Thread(target=small.go_on, args=(done,))]
        for thread in threads:
            thread.start()
        began = time.perf_counter()
        status, body = post(self.port, path, file, kind)
        seconds = time.perf_counter() - began
        done.set()
        for thread in threads:
            thread.join()
        if status != 200:
            raise SystemExit(f"{name}: {status} {body!r}")
        if unit == "rows" and body != b"%d" % amount:
            raise SystemExit(f"{name}: {body!r} rows were kept instead of {amount}")
        return Measured(name, amount, unit, seconds, (most - before) / 1e6, alone, small.found(), limit)


def post(port: int, path: str, file: Path, kind: str) -> tuple[int, bytes]:
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
        f"Content-Type: {kind}\r\n\r\n"
    ).encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()

    def body() -> Iterator[bytes]:
        yield head
        with file.open("rb") as opened:
            while piece := opened.read(PIECE):
                yield piece
        yield tail

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    size = len(head) + file.stat().st_size + len(tail)
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Content-Length": str(size)}
    connection.request("POST", path, body(), headers)
    response = connection.getresponse()
    return response.status, response.read()


def csv_file(folder: Path, rows: int) -> Path:
    path = folder / "rows.csv"
    path.write_text("".join(f"SKU-{number},title of {number},{number % 100}\n" for number in range(1, rows + 1)))
    return path


def workbook(folder: Path, rows: int) -> Path:
    import xlsxwriter

    path = folder / "rows.xlsx"
    with xlsxwriter.Workbook(path, {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        for number in range(rows):
            sheet.write_row(number, 0, [f"SKU-{number}", f"title of {number}", number % 100])
    return path


def copied_rows(server: Server, file: Path, rows: int) -> float:
    began = time.perf_counter()
    server.psql("-c", f"\\copy kept (sku, title, count) from '{file}' csv")
    return rows / (time.perf_counter() - began)


def copied_bytes(file: Path) -> float:
    began = time.perf_counter()
    subprocess.run(["cp", str(file), f"{file}.copy"], check=True)
    seconds = time.perf_counter() - began
    Path(f"{file}.copy").unlink()
    return file.stat().st_size / 1e6 / seconds


def big_file(folder: Path, megabytes: int) -> Path:
    path = folder / "big.bin"
    piece = bytes(range(256)) * 3906
    with path.open("wb") as opened:
        for _ in range(megabytes):
            opened.write(piece)
    return path


def workloads(bench: Bench, rows: int, megabytes: int) -> dict[str, Callable[[], Measured]]:
    folder = bench.folder
    mega = megabytes * 3906 * 256 / 1e6

    def csv(name: str, path: str) -> Callable[[], Measured]:
        def run() -> Measured:
            file = csv_file(folder, rows)
            return bench.run(name, path, file, "text/csv", rows, "rows", copied_rows(bench.server, file, rows))

        return run

    def excel() -> Measured:
        count = rows // 10
        return bench.run("excel", "/api/up-excel", workbook(folder, count), "x/y", count, "rows", None)

    def stored(name: str, path: str) -> Callable[[], Measured]:
        def run() -> Measured:
            file = big_file(folder, megabytes)
            return bench.run(name, path, file, "x/y", mega, "MB", copied_bytes(file))

        return run

    return {
        "function": csv("function", "/api/up-function"),
        "chained": csv("chained", "/api/up-chained"),
        "insert": csv("insert", "/api/up-insert"),
        "excel": excel,
        "folder": stored("folder", "/api/up-folder"),
        "object": stored("object", "/api/up-object"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--workload", action="append")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rowcall-bench-"))
    try:
        with throw_away("auto") as server:
            server.psql("-c", "create database bench", database="postgres")
            server.psql(stdin=SMALL + SQL)
            bench = Bench(server, free_port(), folder)
            try:
                for name, run in workloads(bench, arguments.rows, arguments.megabytes).items():
                    if not arguments.workload or name in arguments.workload:
                        print(run().line(), flush=True)
            finally:
                bench.service.stop()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
