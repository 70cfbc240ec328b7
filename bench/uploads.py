"""Measures uploads: rows a second through row commands, bytes a second into a folder, and the effect on other requests.

    python -m bench.uploads [--rows 300000] [--megabytes 2000] [--rounds 3] [--workload NAME ...]

Each figure is shown with its limit (psql's COPY, cp), the processor time of the worker, of PostgreSQL and of the
client, which a busy machine does not change, the growth of the worker, and the latency of a small endpoint of the same
worker, without and with uploads. A client is a process of its own, and rounds alternate with those of their limit.

The latency has a control: the same endpoint of another service without uploads, called alternately. Its loss is caused
by the client and by PostgreSQL, which use the same processors; the further loss of the first one is caused by uploads.
"""

import argparse
import functools
import http.client
import itertools
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.one_worker import SMALL, Latency, OneWorker
from bench.postgres import Server, temporary_server
from bench.services import free_port

SQL = """
create table item (number int, sku text, title text, count int);
create function store(_n int, _cells text[]) returns void language sql as
    $$ insert into item values (_n, _cells[1], _cells[2], _cells[3]::int) $$;
create function store_all(_n int, _cells text[], _previous int, _about json) returns int language sql as
    $$ insert into item values (_n, _cells[1], _cells[2], _cells[3]::int) returning number $$;
create function up_function() returns bigint language sql as 'select count(*) from item';
comment on function up_function() is 'HTTP POST
upload for csv
row_command = select store($1, $2)';
create function up_chained() returns bigint language sql as 'select count(*) from item';
comment on function up_chained() is 'HTTP POST
upload for csv
row_command = select store_all($1, $2, $3, $4)';
create function up_insert() returns bigint language sql as 'select count(*) from item';
comment on function up_insert() is 'HTTP POST
upload for csv
row_command = insert into item (number, sku, title, count) values ($1, ($2)[1], ($2)[2], ($2)[3]::int)';
create function up_whole() returns bigint language sql as 'select count(*) from item';
comment on function up_whole() is 'HTTP POST
upload for csv
row_command = insert into item (number, sku, title, count) values ($1, ($2)[1], ($2)[2], ($2::text[])[3]::int)';
create function up_excel() returns bigint language sql as 'select count(*) from item';
comment on function up_excel() is 'HTTP POST
upload for excel
row_command = select store($1, $2)';
create function up_folder() returns int language sql as 'select 1';
comment on function up_folder() is 'HTTP POST
upload for file_system';
create function up_object() returns int language sql as 'select 1';
comment on function up_object() is 'HTTP POST
upload for large_object';
"""

BOUNDARY = "bench-of-uploads"
CHUNK = 262_144


@dataclass(frozen=True, slots=True)
class Round:
    seconds: float
    worker: float
    """Seconds of processor time, including its processes that read workbooks."""
    postgres: float
    client: float
    growth: float
    """Megabytes."""
    alone: float
    during: float
    """p99 of the small endpoint in milliseconds."""
    control: float
    """The same for the service without uploads."""
    limit: float | None
    """The amount a second of the limit."""


@dataclass(frozen=True, slots=True)
class WorkloadResult:
    """Measurements of one kind of upload. amount: how many units each round uploads."""

    workload: str
    amount: float
    unit: str
    rounds: list[Round]

    def line(self) -> str:
        def middle(of: Callable[[Round], float]) -> float:
            return statistics.median(of(item) for item in self.rounds)

        times = [middle(of) for of in (lambda run: run.alone, lambda run: run.during, lambda run: run.control)]
        ratios = [middle(lambda run: run.during / run.alone), middle(lambda run: run.during / run.control)]
        rate = self.amount / middle(lambda run: run.seconds)
        limits = [item.limit for item in self.rounds if item.limit is not None]
        limit = statistics.median(limits) if limits else None
        ratio = "" if limit is None else f" ({rate / limit:.2f} of {limit:,.0f})"
        each = 1e6 / self.amount
        return (
            f"{self.workload:<9}{rate:>10,.0f} {self.unit}/s{ratio}; CPU µs for each: worker "
            f"{middle(lambda run: run.worker) * each:.2f}, PostgreSQL {middle(lambda run: run.postgres) * each:.2f}, "
            f"client {middle(lambda run: run.client) * each:.2f}; worker +{middle(lambda run: run.growth):.0f} MB; p99 "
            f"{times[0]:.1f} ms alone, {times[1]:.1f} ms during the upload ({ratios[0]:.1f}x), {times[2]:.1f} ms of a "
            f"service without uploads ({ratios[1]:.1f}x)"
        )


class Bench:
    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.port = free_port()
        self.folder = folder
        uploads = "Service:UploadOptions:"
        self.service = OneWorker(
            server,
            self.port,
            f"{uploads}Enabled=true",
            f"{uploads}LogUploadEvent=false",
            f"{uploads}UploadHandlers:FileSystemPath={folder}/stored",
            "HttpServer:Limits:MaxRequestBodySize=8000000000",
        )
        control = free_port()
        self.control = OneWorker(server, control, f"{uploads}Enabled=true")
        self._ports = self.port, control

    def stop(self) -> None:
        self.service.stop()
        self.control.stop()

    def run(self, path: str, file: Path, kind: str, amount: float, unit: str, limit: float | None) -> Round:
        self.server.psql("-c", "truncate item")
        small = Latency(*self._ports)
        idle = self._cpu_seconds()
        alone = small.p99(2.0)
        # Subtracts the cost of the small endpoint itself.
        each = [(now - before) / small.count for now, before in zip(self._cpu_seconds(), idle, strict=True)]
        before = most = self.service.memory()

        def watch() -> None:
            nonlocal most
            while not done.wait(0.05):
                most = max(most, self.service.memory())

        done = threading.Event()
        threads = [threading.Thread(target=watch), threading.Thread(target=small.measure_until, args=(done,))]
        for thread in threads:
            thread.start()
        began = self._cpu_seconds()
        posted = subprocess.run(
            [sys.executable, "-m", "bench.uploads", "--post", str(self.port), path, str(file), kind],
            check=True,
            stdout=subprocess.PIPE,
        )
        ended = self._cpu_seconds()
        done.set()
        for thread in threads:
            thread.join()
        worker, postgres = (
            now - before - cost * small.count for now, before, cost in zip(ended, began, each, strict=True)
        )
        status, seconds, client, body = posted.stdout.split(b" ", 3)
        if status != b"200":
            raise SystemExit(f"{path}: {status!r} {body!r}")
        if unit == "rows" and body != b"%d" % amount:
            raise SystemExit(f"{path}: {body!r} rows were stored instead of {amount}")
        growth = (most - before) / 1e6
        latency = alone, small.last_p99(), small.last_p99(1)
        return Round(float(seconds), worker, postgres, float(client), growth, *latency, limit)

    def _cpu_seconds(self) -> tuple[float, float]:
        """Return the time of the worker, and of all processes of PostgreSQL that exist throughout."""
        postgres = psutil.Process(self.server.pid).children(recursive=True)
        return cpu_seconds(self.service.worker), sum(map(cpu_seconds, postgres))


def cpu_seconds(process: psutil.Process) -> float:
    """Return the processor time in seconds, including ended children."""
    try:
        return float(sum(process.cpu_times()[:4]))
    except psutil.NoSuchProcess:
        return 0.0


def post(port: int, path: str, file: Path, kind: str) -> tuple[int, bytes]:
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
        f"Content-Type: {kind}\r\n\r\n"
    ).encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()

    def body() -> Iterator[bytes]:
        yield head
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                yield chunk
        yield tail

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    size = len(head) + file.stat().st_size + len(tail)
    headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", "Content-Length": str(size)}
    connection.request("POST", path, body(), headers)
    response = connection.getresponse()
    return response.status, response.read()


def run_client(port: str, path: str, file: str, kind: str) -> None:
    began = time.perf_counter()
    status, body = post(int(port), path, Path(file), kind)
    seconds = time.perf_counter() - began
    usage = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.buffer.write(b"%d %.3f %.3f %b" % (status, seconds, usage.ru_utime + usage.ru_stime, body))


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


def copy_rows_rate(server: Server, file: Path, rows: int) -> float:
    began = time.perf_counter()
    server.psql("-c", f"\\copy item (sku, title, count) from '{file}' csv")
    return rows / (time.perf_counter() - began)


def copy_file_rate(file: Path) -> float:
    began = time.perf_counter()
    subprocess.run(["cp", str(file), f"{file}.copy"], check=True)
    seconds = time.perf_counter() - began
    Path(f"{file}.copy").unlink()
    return file.stat().st_size / 1e6 / seconds


def big_file(folder: Path, megabytes: int) -> Path:
    path = folder / "big.bin"
    chunk = bytes(range(256)) * 3906
    with path.open("wb") as opened:
        for _ in range(megabytes):
            opened.write(chunk)
    return path


def workloads(bench: Bench, rows: int, megabytes: int) -> dict[str, Callable[[], Iterator[WorkloadResult]]]:
    """Return functions that yield the result after each round, by the name of the workload."""
    folder = bench.folder
    mega = megabytes * 3906 * 256 / 1e6

    def rounds(name: str, amount: float, unit: str, run: Callable[[], Round]) -> Iterator[WorkloadResult]:
        done: list[Round] = []
        while True:
            done.append(run())
            yield WorkloadResult(name, amount, unit, done)

    def csv(name: str) -> Iterator[WorkloadResult]:
        file = csv_file(folder, rows)

        def run() -> Round:
            limit = copy_rows_rate(bench.server, file, rows)
            return bench.run(f"/api/up-{name}", file, "text/csv", rows, "rows", limit)

        return rounds(name, rows, "rows", run)

    def excel(name: str) -> Iterator[WorkloadResult]:
        count = rows // 10
        file = workbook(folder, count)
        return rounds(name, count, "rows", lambda: bench.run(f"/api/up-{name}", file, "x/y", count, "rows", None))

    def stored(name: str) -> Iterator[WorkloadResult]:
        file = big_file(folder, megabytes)

        def run() -> Round:
            limit = copy_file_rate(file)
            done = bench.run(f"/api/up-{name}", file, "x/y", mega, "MB", limit)
            shutil.rmtree(folder / "stored", ignore_errors=True)
            return done

        return rounds(name, mega, "MB", run)

    kinds = {"excel": excel, "folder": stored, "object": stored}
    names = ("function", "chained", "insert", "whole", *kinds)
    return {name: functools.partial(kinds.get(name, csv), name) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--megabytes", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workload", action="append")
    parser.add_argument("--post", nargs=4, help="run only the client of one upload: port, path, file, content type")
    arguments = parser.parse_args()
    if arguments.post:
        run_client(*arguments.post)
        return
    folder = Path(tempfile.mkdtemp(prefix="rowcall-bench-"))
    try:
        with temporary_server("auto") as server:
            server.psql("-c", "create database bench", database="postgres")
            server.psql(stdin=SMALL + SQL)
            bench = Bench(server, folder)
            try:
                workloads_by_name = workloads(bench, arguments.rows, arguments.megabytes)
                chosen = [workloads_by_name[name]() for name in arguments.workload or workloads_by_name]
                *_, last = itertools.islice(zip(*chosen, strict=True), arguments.rounds)
                print(*(measured.line() for measured in last), sep="\n")
            finally:
                bench.stop()
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
