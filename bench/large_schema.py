"""Measures start and reload of PostgREST's interface with a large schema: `python -m bench.large_schema`.

By default 60,000 tables with six columns each, and 30,000 foreign keys. One client sends requests for one row without a
pause during each reload, and while the description of the schema is built. The longest and the 99th percentile of their
durations are printed beside those without a reload: what is longer with one is what it costs callers.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.postgres import Server, temporary_server
from bench.reload import Clock, ReloadTimes, report, wait_for
from bench.services import free_port

DATABASE = "large_schema"
PER_TRANSACTION = 500
"""Tables that are created in one transaction: each holds locks until its end."""
CHANGES = {
    "nothing": "",
    "a new column": "alter table large.t1 add column added_{n} int",
    "a new table": "create table large.added_{n} (id int primary key, parent int references large.t1); "
    "grant select on large.added_{n} to bench_anon",
    "500 comments": "do $$ begin for n in 1..500 loop "
    "execute format('comment on table large.t%s is %L', n, 'comment {n}'); end loop; end $$",
}


def statements(tables: int, keys: int) -> Iterator[str]:
    """Yield the statements that create the schema. Every second table has a key, as far as there are keys."""
    yield "create schema large; grant usage on schema large to bench_anon;"
    for begin in range(1, tables + 1, PER_TRANSACTION):
        yield "begin;"
        for number in range(begin, min(begin + PER_TRANSACTION, tables + 1)):
            key = number * keys // tables > (number - 1) * keys // tables and number > 1
            parent = f" references large.t{number // 2}" if key else ""
            yield (
                f"create table large.t{number} (id int primary key, parent int{parent}, name text not null, "
                "amount numeric(12,2) default 0, seen timestamptz default now(), attributes jsonb);"
            )
            yield f"grant select on large.t{number} to bench_anon;"
        yield "commit;"
    yield "insert into large.t1 values (1, null, 'first');"


class Caller(threading.Thread):
    """Sends requests one after the other and records the duration of each, in seconds."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._ending = threading.Event()
        self.durations: list[float] = []
        self.failures = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=120)
        while not self._ending.is_set():
            began = time.perf_counter()
            connection.request("GET", "/t1?id=eq.1&select=id,name")
            response = connection.getresponse()
            response.read()
            self.durations.append(time.perf_counter() - began)
            self.failures += response.status != 200
        connection.close()

    def end(self) -> str:
        """End and return a description of the durations."""
        self._ending.set()
        self.join()
        ordered = sorted(self.durations)
        count = len(ordered)
        return (
            f"{count} requests, {self.failures} failed; p99 {ordered[count * 99 // 100] * 1000:.1f}, "
            f"longest {ordered[-1] * 1000:.1f} ms"
        )


def _during(port: int, seconds: float) -> str:
    caller = Caller(port)
    caller.start()
    time.sleep(seconds)
    return caller.end()


def _describe(port: int) -> int:
    """Request the description of the schema and return its size in bytes."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    connection.request("GET", "/")
    size = len(connection.getresponse().read())
    connection.close()
    return size


def measure(server: Server, workers: int, log: Path) -> None:
    port = free_port()
    conninfo = server.conninfo(DATABASE)
    command = [
        *(sys.executable, "-m", "rowcall.service.cli", f"--ConnectionStrings:Default={conninfo}"),
        *(f"--Urls=http://127.0.0.1:{port}", f"--HttpServer:Workers={workers}"),
        *("--PostgRest:Enabled=true", "--PostgRest:Schemas=large", "--PostgRest:AnonymousRole=bench_anon"),
        *("--Service:RoutineOptions:Enabled=false", "--Log:MinimalLevels:rowcall.http=Warning"),
    ]
    postmaster = psutil.Process(server.pid)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    service = psutil.Process(process.pid)
    clock = Clock(service, postmaster)
    try:
        wait_for(lambda: "listening on" in log.read_text("utf-8"), process)
        report("start", clock.read())
        print(f"  {_during(port, 5)}, without a reload")
        caller = Caller(port)
        caller.start()
        clock = Clock(service, postmaster)
        size = _describe(port)
        report(f"description, {size >> 20} MiB", clock.read())
        print(f"  {caller.end()}")
        number = 0
        for change, sql in CHANGES.items():
            for _ in range(2):
                number += 1
                if sql:
                    server.psql("-c", sql.format(n=number), database=DATABASE)
                report(f"reload after {change}", _reload(server, process, log, port, number))
        memory = [child.memory_full_info().uss >> 20 for child in service.children(recursive=True)]
        print(f"private memory of the other processes, MiB: {sorted(memory, reverse=True)}")
        print(f"memory of the supervisor, MiB: {service.memory_full_info().uss >> 20}")
    finally:
        process.terminate()
        process.wait(60)


def _reload(server: Server, process: subprocess.Popen[bytes], log: Path, port: int, number: int) -> ReloadTimes:
    clock = Clock(psutil.Process(process.pid), psutil.Process(server.pid))
    caller = Caller(port)
    caller.start()
    served = f"schema snapshot {number + 1} is served"
    server.psql("-c", "notify pgrst, 'reload schema'", database=DATABASE)
    wait_for(lambda: served in log.read_text("utf-8"), process)
    taken = clock.read()
    print(f"  {caller.end()}")
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.large_schema", description=__doc__)
    parser.add_argument("--tables", type=int, default=60_000)
    parser.add_argument("--keys", type=int, default=30_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--postgres", default="auto", help="system, wheel, auto, or a folder with programs")
    arguments = parser.parse_args()
    with temporary_server(arguments.postgres) as server, tempfile.TemporaryDirectory() as folder:
        server.psql("-c", f"create database {DATABASE}", "-c", "create role bench_anon", database="postgres")
        began = time.monotonic()
        script = "\n".join(statements(arguments.tables, arguments.keys))
        server.psql("-o", "/dev/null", stdin=script, database=DATABASE)
        server.psql("-c", "analyze", database=DATABASE)
        print(f"{arguments.tables} tables and {arguments.keys} keys created in {time.monotonic() - began:.0f} s")
        measure(server, arguments.workers, Path(folder) / "log")


if __name__ == "__main__":
    main()
