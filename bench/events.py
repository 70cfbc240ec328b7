"""Measures event streams: `python -m bench.events`. Idle streams, many events to many streams, and unpublished notices.

One worker. The subscribers are sockets of this process, which reads everything and measures every twentieth event; the
results include its own cost.
"""

import argparse
import http.client
import json
import os
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.postgres import Server, temporary_server
from bench.processes import cpu_times, resident_mebibytes, tree
from bench.services import free_port

SQL = """
create function hello() returns text language sql stable as $$select 'hello'$$;
comment on function hello() is 'HTTP GET /hello';
create function publish(_count int, _at_once int, _pause float8) returns void language plpgsql as $$begin
    for n in 1 .. _count loop
        raise info '%', extract(epoch from clock_timestamp());
        if n % _at_once = 0 and _pause > 0 then perform pg_sleep(_pause); end if;
    end loop;
end$$;
comment on function publish(int, int, float8) is 'HTTP POST /publish
sse stream
timeout 300s';
create function unpublished(_count int) returns void language plpgsql as $$begin
    for n in 1 .. _count loop raise info '%', extract(epoch from clock_timestamp()); end loop;
end$$;
comment on function unpublished(int) is 'HTTP POST /unpublished
timeout 300s';
"""
SETTINGS = ("Service:RequiresAuthorization=false", "Service:LogConnectionNoticeEvents=false", "HttpServer:Workers=1",
            "Service:WarnUnboundServerSentEventsNotices=false", "Log:MinimalLevels:rowcall.http=Warning")  # fmt: skip
BATCH = 100
"""Subscribers that connect at once."""
SUBSCRIBE = b"GET /publish/stream HTTP/1.1\r\nhost: bench\r\n\r\n"


class Subscribers:
    """Sockets that a thread reads until they are closed."""

    def __init__(self, port: int, count: int) -> None:
        self.received = 0
        self.delays: list[float] = []
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        for number in range(count):
            # Several addresses of this host, because one has not enough ports for tens of thousands of connections.
            connection = socket.create_connection(
                ("127.0.0.1", port), source_address=(f"127.0.0.{2 + number // 8000}", 0)
            )
            connection.sendall(SUBSCRIBE)
            self._sockets.append(connection)
            if len(self._sockets) % BATCH == 0:
                self._wait()
        self._wait()
        self._running = True
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _wait(self) -> None:
        """Wait until all subscribers are connected."""
        for connection in self._sockets[len(self._selector.get_map()) :]:
            received = b""
            while b": connected" not in received:
                received += connection.recv(4096)
            connection.setblocking(False)
            self._selector.register(connection, selectors.EVENT_READ, len(self._selector.get_map()) % 20 == 0)

    def _read(self) -> None:
        while self._running:
            for key, _ in self._selector.select(0.2):
                connection: socket.socket = key.fileobj  # type: ignore[assignment]
                data = connection.recv(262_144)
                self.received += data.count(b"data: ")
                if key.data:
                    now = time.time()
                    self.delays += [now - float(part.partition(b"\n")[0]) for part in data.split(b"data: ")[1:]]

    def close(self) -> None:
        self._running = False
        self._thread.join()
        for connection in self._sockets:
            connection.close()


class Prober:
    """Measures the latency of another endpoint, with one request at a time, in a thread."""

    def __init__(self, port: int) -> None:
        self.seconds: list[float] = []
        self._running = True
        self._connection = http.client.HTTPConnection("127.0.0.1", port)
        self._thread = threading.Thread(target=self._probe)
        self._thread.start()

    def _probe(self) -> None:
        while self._running:
            began = time.perf_counter()
            self._connection.request("GET", "/hello")
            self._connection.getresponse().read()
            self.seconds.append(time.perf_counter() - began)
            time.sleep(0.005)

    def stop(self) -> float:
        """Stop and return p99 in milliseconds."""
        self._running = False
        self._thread.join()
        return quantile(self.seconds, 99)


def quantile(values: Sequence[float], which: int) -> float:
    """Return a percentile in milliseconds."""
    return statistics.quantiles(values, n=100)[which - 1] * 1000 if len(values) > 1 else float("nan")


@contextmanager
def running(server: Server, folder: Path, protocols: str) -> Iterator[tuple[int, int]]:
    """Provide the port and the process id of the worker."""
    port = free_port()
    settings = (*SETTINGS, f"ConnectionStrings:Default={server.conninfo()}")
    where = (
        f"HttpServer:Endpoints:Http:Url=http://127.0.0.1:{port}",
        f"HttpServer:Endpoints:Http:Protocols={protocols}",
    )
    command = [sys.executable, "-m", "rowcall.service.cli", *(f"--{setting}" for setting in (*settings, *where))]
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_for(port, process, folder)
        yield (
            port,
            next(pid for pid in tree(process.pid) if Path(f"/proc/{pid}/comm").read_text() == "rowcall-worker\n"),
        )
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        process.wait(60)


def wait_for(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    while process.poll() is None:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/hello")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit((folder / "service.log").read_text())


def post(port: int, path: str, body: dict[str, float]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    response = connection.getresponse()
    if response.status != 204:
        raise SystemExit(f"{path}: {response.status} {response.read()!r}")


def cpu_seconds(pid: int) -> float:
    times = cpu_times(pid)
    return times[0] if times else float("nan")


def idle(port: int, worker: int, count: int) -> str:
    before = resident_mebibytes(worker)
    subscribers = Subscribers(port, count)
    after = resident_mebibytes(worker)
    subscribers.close()
    size = (after - before) * 1024 / count
    return f"{count} idle streams: worker {after:.0f} MiB (before {before:.0f}), {size:.1f} KiB per stream"


def fan_out(port: int, worker: int, count: int, rate: int, seconds: float) -> Iterator[str]:
    quiet = Prober(port)
    time.sleep(min(3.0, seconds))
    before = quiet.stop()
    subscribers = Subscribers(port, count)
    loaded = Prober(port)
    total = int(rate * seconds)
    began, used_before = time.monotonic(), cpu_seconds(worker)
    post(port, "/publish", {"count": total, "atOnce": 10, "pause": 10 / rate})
    took = time.monotonic() - began
    deadline = time.monotonic() + 30
    while subscribers.received < total * count and time.monotonic() < deadline:
        time.sleep(0.05)
    after = loaded.stop()
    subscribers.close()
    delays = subscribers.delays
    yield f"{total / took:.0f} events/s to {count} streams: {subscribers.received} of {total * count} delivered"
    cost = (cpu_seconds(worker) - used_before) / max(1, subscribers.received) * 1e6
    yield f"{cost:.2f} µs of the worker for each delivery"
    yield f"delivery p50 {quantile(delays, 50):.1f} ms, p99 {quantile(delays, 99):.1f} ms"
    yield f"p99 of another endpoint: {before:.2f} ms before, {after:.2f} ms during the load ({after / before:.1f}×)"


def unpublished_notices(port: int, worker: int, count: int) -> str:
    """Return the processor time of the worker for each published notice, and for each unpublished one."""
    costs = []
    for path in ("/unpublished", "/publish"):
        body: dict[str, float] = {"count": count}
        if path == "/publish":
            body |= {"atOnce": 1, "pause": 0}
        post(port, path, body | {"count": 10})
        began = cpu_seconds(worker)
        post(port, path, body)
        costs.append((cpu_seconds(worker) - began) / count * 1e6)
    return f"a published notice without subscribers: {costs[1]:.1f} µs of the worker, unpublished: {costs[0]:.1f} µs"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.events", description=__doc__)
    parser.add_argument("--idle", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--rate", type=int, default=1000, help="events a second")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--notices", type=int, default=50_000)
    parser.add_argument("--only", choices=("unpublished", "fan-out", "idle"))
    parser.add_argument("--protocols", default="Http1", help="Http1 or Http1AndHttp2")
    options = parser.parse_args(arguments)
    with temporary_server("auto") as server, tempfile.TemporaryDirectory(prefix="rowcall-events-") as folder:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SQL)
        measures: dict[str, Callable[[int, int], Iterable[str]]] = {
            "unpublished": lambda port, worker: [unpublished_notices(port, worker, options.notices)],
            "fan-out": lambda port, worker: fan_out(port, worker, options.streams, options.rate, options.seconds),
            "idle": lambda port, worker: [idle(port, worker, options.idle)],
        }
        for measure in (measures[options.only],) if options.only else measures.values():
            with running(server, Path(folder), options.protocols) as (port, worker):
                for line in measure(port, worker):
                    print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
