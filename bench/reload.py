"""Measures start and reload with many endpoints: `python -m bench.reload [--routines 22000] [--workers 2]`.

The databases are that of `many.sql`, whose routines are all alike, and that of `many_kinds.sql`, with 2,000 signatures
and comments of several lines; each with this number of routines. A start ends when the log reports that the service
listens, a reload when it reports that the new schema snapshot is active; a request then verifies it. Besides the
elapsed time, which depends on other load of the machine, the CPU time of the service and of PostgreSQL is printed:
their sum is about the elapsed time on an idle machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.endurance import MANY
from bench.postgres import Server, temporary_server
from bench.scenarios import Scenario
from bench.services import free_port, send_request

KINDS = MANY.with_name("many_kinds.sql")
CHANGES = {
    "a comment": "comment on function many.routine_77(int, text, date) is "
    "e'HTTP GET /many/changed-{n}\\nallow_anonymous'",
    "a source": "create or replace function many.routine_77(_id int, _label text default null, _day date default null) "
    "returns table (id int, label text, day date) language sql stable as 'select {n}, _label, _day'; "
    "comment on function many.routine_77(int, text, date) is e'HTTP GET /many/changed-{n}\\nallow_anonymous'",
    "a new routine": "create function many.new_{n}(id int) returns int language sql stable as 'select id + {n}'; "
    "comment on function many.new_{n}(int) is e'HTTP GET /many/changed-{n}\\nallow_anonymous'",
}


@dataclass(frozen=True, slots=True)
class ReloadTimes:
    """Seconds that a reload of the schema took. clock: elapsed. service, database: processor time."""

    clock: float
    service: float
    database: float


class Clock:
    """Measures the time since its creation: elapsed, and CPU time of the service and of the server."""

    def __init__(self, service: psutil.Process, server: psutil.Process) -> None:
        self._service, self._server = service, server
        self._began = time.monotonic(), _cpu(service), _cpu(server)

    def read(self) -> ReloadTimes:
        start = self._began
        return ReloadTimes(time.monotonic() - start[0], _cpu(self._service) - start[1], _cpu(self._server) - start[2])


def _cpu(process: psutil.Process) -> float:
    total = 0.0
    for member in (process, *process.children(recursive=True)):
        try:
            times = member.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
        # Includes ended sessions of the server.
        total += times.children_user + times.children_system if member == process else 0
    return total


def load_many(server: Server, script: Path, routines: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / script.name
        copy.write_text(script.read_text("utf-8").replace("1..1000", f"1..{routines}"), "utf-8")
        server.load(copy, "many")


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("the service has ended, or has not finished within 300 s")
        time.sleep(0.01)


def measure(server: Server, workers: int, log: Path) -> None:
    port = free_port()
    command = [
        *(sys.executable, "-m", "rowcall.service.cli", f"--ConnectionStrings:Default={server.conninfo('many')}"),
        *(f"--Urls=http://127.0.0.1:{port}", f"--HttpServer:Workers={workers}"),
    ]
    postmaster = psutil.Process(server.pid)
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    clock = Clock(psutil.Process(process.pid), postmaster)
    try:
        wait_for(lambda: "listening on" in log.read_text("utf-8"), process)
        report("start", clock.read())
        number = 0
        for change, sql in CHANGES.items():
            for _ in range(3):
                number += 1
                server.psql("-c", sql.format(n=number), database="many")
                # Because the catalogue is checked at most once a second.
                time.sleep(1.5)
                clock = Clock(psutil.Process(process.pid), postmaster)
                served = f"schema snapshot {number + 1} is served"
                server.psql("-c", "notify rowcall, 'reload'", database="many")
                wait_for(lambda served=served: served in log.read_text("utf-8"), process)  # type: ignore[misc]
                report(f"reload after {change}", clock.read())
                status = send_request(port, Scenario("changed", f"/many/changed-{number}?id=1", ""))[0]
                if status != 200:
                    raise SystemExit(f"/many/changed-{number} has status {status}")
        workers_memory = [
            child.memory_full_info().uss >> 20 for child in psutil.Process(process.pid).children(recursive=True)
        ]
        print(f"private memory of the other processes, MiB: {sorted(workers_memory, reverse=True)}")
    finally:
        process.terminate()
        process.wait(60)


def report(event: str, times: ReloadTimes) -> None:
    load = os.getloadavg()[0]
    print(
        f"{event:26} {times.clock:7.2f} s; CPU of rowcall {times.service:5.2f}, of PostgreSQL {times.database:5.2f} s; "
        f"load of the machine {load:.0f} on {os.cpu_count()} cores",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reload", description=__doc__)
    parser.add_argument("--routines", type=int, default=22_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--postgres", default="auto", help="system, wheel, auto, or a folder with programs")
    arguments = parser.parse_args()
    with temporary_server(arguments.postgres) as server, tempfile.TemporaryDirectory() as folder:
        for script in (MANY, KINDS):
            load_many(server, script, arguments.routines)
            print(f"{script.name}, {arguments.routines} routines:")
            measure(server, arguments.workers, Path(folder) / "log")


if __name__ == "__main__":
    main()
