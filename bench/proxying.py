"""Compares proxies: nginx and rowcall with one worker each, FastAPI with httpx, with the same origin server.

    python -m bench.proxying [--seconds 5] [--connections 64]

Needs nginx (`apt-get install nginx-light`), which is also the origin server. The result is the ratio of processor time
for a request, which equals the ratio of rates if each proxy has its own core. Targets: 0.35 of nginx and three times
FastAPI. Rates depend on other work of the machine and on processes that share its cores.

The proxies take turns, and the result is the median of the ratios of the turns, so that other work affects all alike.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

from bench.load import Target, generate, raw_request
from bench.one_worker import SMALL, OneWorker
from bench.postgres import temporary_server
from bench.services import PEERS, PROGRAMS, free_port

SIZES = (200, 20_000)
"""Bytes of a response."""
NGINX = """
daemon off; worker_processes 1; pid {folder}/{name}.pid; error_log {folder}/{name}.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000; client_body_temp_path {folder}; proxy_temp_path {folder};
  fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
  {body}
}}
"""
FILES = "server {{ listen 127.0.0.1:{port}; root {folder}; default_type application/json; }}"
PROXY = """
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 256; keepalive_requests 1000000000; }}
  server {{ listen 127.0.0.1:{port}; location / {{
    proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}
"""


@dataclass(frozen=True, slots=True)
class ProxyFigures:
    """Measurements of a proxy. rate: requests a second. cpu: microseconds of processor time for a request."""

    rate: float
    cpu: float


@contextmanager
def running(command: list[str], environment: dict[str, str] | None = None) -> Iterator[int]:
    """Provide the id of the process."""
    process = subprocess.Popen(command, env=os.environ | (environment or {}))
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def nginx(folder: Path, name: str, body: str) -> Iterator[int]:
    file = folder / f"{name}.conf"
    file.write_text(NGINX.format(folder=folder, name=name, body=body))
    with running([shutil.which("nginx") or "nginx", "-c", str(file), "-e", str(folder / "start.log")]) as number:
        yield number


def cpu_seconds(process: int) -> float:
    """Return the processor time in seconds, including children."""
    whole = psutil.Process(process)
    times = [item.cpu_times() for item in (whole, *whole.children(recursive=True))]
    return float(sum(item.user + item.system for item in times))


def measure(port: int, process: int, size: int, seconds: float, connections: int) -> ProxyFigures:
    request = raw_request("GET", f"/{size}.json", f"127.0.0.1:{port}", b"")
    before = cpu_seconds(process)
    tally = generate(Target("127.0.0.1", port, request, content(size)), connections, seconds)
    if tally.wrong or tally.lost:
        raise SystemExit(f"port {port}: {tally.wrong} wrong, {tally.lost} lost")
    return ProxyFigures(tally.answered / tally.seconds, (cpu_seconds(process) - before) * 1e6 / tally.answered)


def content(size: int) -> bytes:
    return b'"' + b"x" * (size - 2) + b'"'


def schema(origin: int) -> str:
    """Return the SQL of the endpoints with a proxy."""
    return SMALL + "".join(
        f"create function pass_{size}() returns void language sql as '';"
        f"comment on function pass_{size}() is e'HTTP GET /{size}.json\\nproxy http://127.0.0.1:{origin}';"
        for size in SIZES
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    if shutil.which("nginx") is None:
        raise SystemExit("nginx is missing: apt-get install nginx-light")
    origin, front, own, peer = (free_port() for _ in range(4))
    uvicorn = [str(PROGRAMS / "uvicorn"), "--app-dir", str(PEERS), "--host", "127.0.0.1", "--port", str(peer)]
    uvicorn += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    with tempfile.TemporaryDirectory(prefix="rowcall-bench-proxy-") as name, temporary_server("auto") as server:
        folder = Path(name)
        folder.chmod(0o755)
        for size in SIZES:
            (folder / f"{size}.json").write_bytes(content(size))
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=schema(origin))
        with (
            nginx(folder, "origin", FILES.format(port=origin, folder=folder)),
            nginx(folder, "front", PROXY.format(port=front, origin=origin)) as front_process,
            running([*uvicorn, "forwarding_app:app"], {"UPSTREAM": f"http://127.0.0.1:{origin}"}) as peer_process,
        ):
            service = OneWorker(server, own, "Service:ProxyOptions:Enabled=true", "Service:UrlPathPrefix=/api")
            time.sleep(2)  # The peer does not report when it is ready.
            proxies = ((front, front_process), (own, service.worker.pid), (peer, peer_process))
            try:
                for size in SIZES:
                    turns = [
                        [measure(port, process, size, chosen.seconds, chosen.connections) for port, process in proxies]
                        for _ in range(chosen.turns)
                    ]
                    print(line(size, turns))
            finally:
                service.stop()


def line(size: int, turns: list[list[ProxyFigures]]) -> str:
    figures = ", ".join(
        f"{name} {median(result.cpu for result in results):.1f} µs ({median(result.rate for result in results):,.0f}/s)"
        for name, results in zip(("nginx", "rowcall", "FastAPI + httpx"), zip(*turns, strict=True), strict=True)
    )
    of_nginx = median(passed.cpu / ours.cpu for passed, ours, _ in turns)
    of_peer = median(theirs.cpu / ours.cpu for _, ours, theirs in turns)
    return f"{size} bytes: {figures}; rowcall is {of_nginx:.2f} of nginx and {of_peer:.1f} times FastAPI on one core"


if __name__ == "__main__":
    main()
