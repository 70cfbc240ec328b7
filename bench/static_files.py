"""Small files from one core, compared with nginx: `python -m bench.static_files [--seconds 5] [--rounds 3]`.

Both serve the same folder, take turns, and have one worker on one core, while the generator uses the others. Besides
requests a second, the CPU time of a request is printed, which is meaningful on a busy machine too. nginx keeps files
open, and neither writes a log.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.load import CONNECTIONS, Target, generate, raw_request
from bench.one_worker import SMALL, OneWorker
from bench.postgres import temporary_server
from bench.services import free_port

SIZES = {"1kb": 1_024, "16kb": 16_384, "100kb": 102_400}
NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log crit;
events {{ worker_connections 1024; }}
http {{
    default_type application/octet-stream;
    types {{ text/css css; }}
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    open_file_cache max=1000 inactive=60s;
    server {{ listen 127.0.0.1:{port}; root {root}; }}
}}
"""


@dataclass(frozen=True, slots=True)
class FileServer:
    """A server of the folder, and the process that does the work."""

    name: str
    port: int
    worker: psutil.Process


@dataclass(frozen=True, slots=True)
class Figure:
    rate: float
    """Requests a second."""
    cost: float
    """Microseconds of CPU time for a request."""


@contextmanager
def nginx(folder: Path, root: Path) -> Iterator[FileServer]:
    port = free_port()
    path = folder / "nginx.conf"
    path.write_text(NGINX.format(folder=folder, port=port, root=root))
    process = subprocess.Popen(["nginx", "-e", str(folder / "error.log"), "-p", str(folder), "-c", str(path)])
    try:
        until = time.monotonic() + 10
        while not (children := psutil.Process(process.pid).children()):
            if time.monotonic() > until:
                raise SystemExit("nginx does not start")
            time.sleep(0.1)
        yield FileServer("nginx", port, children[0])
    finally:
        process.terminate()
        process.wait(10)


def measure(served: FileServer, path: str, body: bytes, seconds: float) -> Figure:
    target = Target("127.0.0.1", served.port, raw_request("GET", path, f"127.0.0.1:{served.port}", b""), body)
    before = _cpu(served.worker)
    tally = generate(target, CONNECTIONS, seconds)
    if tally.wrong or tally.lost:
        raise SystemExit(f"{served.name} {path}: {tally.wrong} wrong, {tally.lost} lost")
    return Figure(tally.answered / tally.seconds, (_cpu(served.worker) - before) / tally.answered * 1e6)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.static_files", description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if shutil.which("nginx") is None:
        raise SystemExit("nginx is not installed: apt-get install nginx")
    with tempfile.TemporaryDirectory(prefix="rowcall-bench-static-") as name, temporary_server("auto") as server:
        folder, root = Path(name), Path(name, "www")
        root.mkdir()
        # Because nginx's worker runs as another user.
        folder.chmod(0o755)
        for name, size in SIZES.items():
            (root / f"{name}.css").write_bytes(os.urandom(size))
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SMALL)
        port = free_port()
        ours = OneWorker(server, port, "StaticFiles:Enabled=true", f"StaticFiles:RootPath={root}")
        try:
            with nginx(folder, root) as theirs:
                compare((FileServer("rowcall", port, ours.worker), theirs), root, arguments.seconds, arguments.rounds)
        finally:
            ours.stop()


def compare(both: tuple[FileServer, FileServer], root: Path, seconds: float, rounds: int) -> None:
    cores = os.cpu_count() or 1
    for served in both:
        served.worker.cpu_affinity([0])
    if cores > 1:
        os.sched_setaffinity(0, set(range(1, cores)))
    print(f"{'file':<7} {'rowcall':>9} {'nginx':>9} {'ratio':>6}   CPU a request: rowcall, nginx, ratio")
    for name in SIZES:
        body = (root / f"{name}.css").read_bytes()
        figures_by_server: tuple[list[Figure], list[Figure]] = ([], [])
        for _ in range(rounds):
            for figures, served in zip(figures_by_server, both, strict=True):
                figures.append(measure(served, f"/{name}.css", body, seconds))
        rates = [statistics.median(figure.rate for figure in figures) for figures in figures_by_server]
        costs = [statistics.median(figure.cost for figure in figures) for figures in figures_by_server]
        print(
            f"{name:<7} {rates[0]:>9,.0f} {rates[1]:>9,.0f} {rates[0] / rates[1]:>6.2f}   "
            f"{costs[0]:.1f} µs, {costs[1]:.1f} µs, {costs[1] / costs[0]:.2f}"
        )


if __name__ == "__main__":
    main()
