"""Measures background jobs: `python -m bench.jobs`. Empty jobs per second, and the time from enqueuing to the start.

The throughput is that of jobs which one transaction has enqueued, with one and with two workers. The latency is that
of jobs enqueued at a fixed rate, each in its own transaction: from the time at which it was due to be enqueued to the
first statement of its routine, so it includes the transaction that enqueues it. The processor times are those of the
service and of the server for each job, which other load on the machine changes less than the numbers per second.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.events import quantile, wait_for
from bench.postgres import Server, temporary_server
from bench.processes import usage
from bench.services import free_port
from rowcall.service.installation.script import install_sql

SQL = """
create function hello() returns text language sql stable as $$select 'hello'$$;
comment on function hello() is 'HTTP GET /hello';
create function empty() returns void language sql as $$select$$;
comment on function empty() is 'HTTP POST /empty
job';
create table start (due float8, started float8);
create function record_start(_due float8) returns void language sql as
$$ insert into start values (_due, extract(epoch from clock_timestamp())) $$;
comment on function record_start(float8) is 'HTTP POST /record-start
job';
"""
SETTINGS = ("Service:RequiresAuthorization=false", "Jobs:Enabled=true", "Log:MinimalLevels:rowcall.http=Warning")
_UNFINISHED = """
select exists (select from rowcall.job where state = 'waiting')
    or exists (select from rowcall.job where state = 'running')
"""
_ENQUEUE_TIMED = "select rowcall.enqueue('POST /record-start', jsonb_build_object('due', %s::float8))"


@contextmanager
def running(server: Server, folder: Path, workers: int, settings: Sequence[str]) -> Iterator[int]:
    """Provide the process id of a service."""
    port = free_port()
    options = (
        *SETTINGS,
        f"ConnectionStrings:Default={server.conninfo()}",
        f"HttpServer:Workers={workers}",
        f"HttpServer:Endpoints:Http:Url=http://127.0.0.1:{port}",
        *settings,
    )
    command = [sys.executable, "-m", "rowcall.service.cli", *(f"--{setting}" for setting in options)]
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(port, process, folder)
        yield process.pid
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


def wait_until_ended(database: psycopg.Connection[tuple[bool]]) -> None:
    while True:
        row = database.execute(_UNFINISHED).fetchone()
        if row is None or not row[0]:
            return
        time.sleep(0.02)


def enqueue(database: psycopg.Connection[tuple[bool]], count: int) -> None:
    database.execute(f"select count(rowcall.enqueue('POST /empty')) from generate_series(1, {count})")


def throughput(server: Server, service: int, count: int) -> str:
    with psycopg.connect(server.conninfo(), autocommit=True) as database:
        enqueue(database, 200)
        wait_until_ended(database)
        before, before_server = usage(service).cpu, usage(server.pid).cpu
        enqueue(database, count)
        enqueued, enqueued_server = time.monotonic(), usage(server.pid).cpu
        wait_until_ended(database)
        seconds = time.monotonic() - enqueued
        used, used_server = usage(service).cpu - before, usage(server.pid).cpu - enqueued_server
        (failed,) = database.execute("select count(*) from rowcall.job where state <> 'done'").fetchone() or (0,)
    each, each_server = used / count * 1e6, used_server / count * 1e6
    enqueuing = (enqueued_server - before_server) / count * 1e6
    return (
        f"{count / seconds:.0f} jobs/s, for each {each:.0f} µs of the service and {each_server:.0f} µs of the server "
        f"({enqueuing:.0f} µs for enqueuing it); {failed} failed"
    )


def latency(server: Server, service: int, rate: int, seconds: float) -> str:
    with psycopg.connect(server.conninfo(), autocommit=True) as database:
        begin = time.time() + 0.1
        before, before_server = usage(service).cpu, usage(server.pid).cpu
        for number in range(int(rate * seconds)):
            due = begin + number / rate
            time.sleep(max(0.0, due - time.time()))
            database.execute(_ENQUEUE_TIMED, (due,))
        wait_until_ended(database)
        used, used_server = usage(service).cpu - before, usage(server.pid).cpu - before_server
        delays = [row[0] for row in database.execute("select started - due from start")]
    each, each_server = used / len(delays) * 1e6, used_server / len(delays) * 1e6
    return (
        f"{rate} jobs/s: p50 {quantile(delays, 50):.1f} ms, p99 {quantile(delays, 99):.1f} ms, "
        f"longest {max(delays) * 1000:.1f} ms; for each {each:.0f} µs of the service "
        f"and {each_server:.0f} µs of the server"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.jobs", description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=200, help="jobs a second, to measure the latency")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument(
        "--set", action="append", default=[], help="a setting of the service, such as Jobs:Concurrency=8"
    )
    parser.add_argument("--fsync", action="store_true", help="let the server wait for the disk")
    options = parser.parse_args(arguments)
    for workers in options.workers:
        with (
            temporary_server("auto", fsync=options.fsync) as server,
            tempfile.TemporaryDirectory(prefix="rowcall-jobs-") as folder,
        ):
            server.psql("-c", "create database bench", database="postgres")
            server.psql(stdin=install_sql() + SQL)
            with running(server, Path(folder), workers, options.set) as service:
                print(f"{workers} workers: {throughput(server, service, options.jobs)}", flush=True)
                print(f"{workers} workers: {latency(server, service, options.rate, options.seconds)}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
