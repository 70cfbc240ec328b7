"""Measures the cost of requests to other services: memory for a proxied body of 1 GB in both directions, and the time
of an endpoint with two HTTP types, compared with the slower of the two.

    python -m bench.calling_out [--bytes 1000000000] [--requests 300]

Limits: a worker may grow by 16 MB (PSS, of `smaps_rollup`), and two types may take a millisecond longer than one (p50).
The other service is a thread of this process. Requests of the two endpoints alternate, so that other work of the
machine affects both.
"""

import argparse
import http.client
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.one_worker import SMALL, OneWorker
from bench.postgres import temporary_server
from bench.services import free_port

CHUNK = bytes(1_048_576)
DELAY = 0.02
"""Response time of the slower of two services in seconds; the other takes half of it."""
MOST_MEMORY = 16_000_000
MOST_TIME = 0.001


class OtherService:
    """The other service: it sends and accepts bodies, and responds after a delay."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                path = line.split()[1].decode()
                length = 0
                while header := stream.readline().strip():
                    name, _, value = header.partition(b":")
                    length = int(value) if name.lower() == b"content-length" else length
                while length:
                    length -= len(stream.read(min(length, len(CHUNK))))
                self._respond(connection, path)

    def _respond(self, connection: socket.socket, path: str) -> None:
        endpoint, _, number = path.partition("?")
        if endpoint == "/down":
            size = int(number)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for sent in range(0, size, len(CHUNK)):
                connection.sendall(CHUNK[: size - sent])
            return
        time.sleep({"/slow": DELAY, "/quick": DELAY / 2}.get(endpoint, 0))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def schema(port: int) -> str:
    url = f"http://127.0.0.1:{port}"
    fields = "status_code int, body text"
    return SMALL + "".join((
        "create function down() returns void language sql as '';",
        f"comment on function down() is e'HTTP GET /down\\nproxy {url}';",
        "create function up() returns void language sql as '';",
        f"comment on function up() is e'HTTP POST /up\\nproxy {url}';",
        f"create type slow_type as ({fields}); comment on type slow_type is 'GET {url}/slow';",
        f"create type quick_type as ({fields}); comment on type quick_type is 'GET {url}/quick';",
        "create function one(_a slow_type) returns int language sql stable as $$ select (_a).status_code $$;",
        "comment on function one is 'HTTP GET /one';",
        "create function two(_a slow_type, _b quick_type) returns int language sql stable as",
        " $$ select (_a).status_code + (_b).status_code $$; comment on function two is 'HTTP GET /two';",
    ))  # fmt: skip


def pss(pid: int) -> int:
    """Return the PSS of a process in bytes; shared memory counts in part."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


@contextmanager
def peak(pid: int) -> Iterator[Callable[[], int]]:
    """Provide the highest memory while the block runs."""
    done = threading.Event()
    highest = pss(pid)

    def sample() -> None:
        nonlocal highest
        while not done.wait(0.05):
            highest = max(highest, pss(pid))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield lambda: highest
    finally:
        done.set()
        thread.join()


def download(port: int, size: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", f"/down?{size}")
    response = connection.getresponse()
    buffer = bytearray(len(CHUNK))
    received = 0
    while number := response.readinto(buffer):
        received += number
    connection.close()
    return received


def upload(port: int, size: int) -> int:
    def chunks() -> Iterator[bytes]:
        for sent in range(0, size, len(CHUNK)):
            yield CHUNK[: size - sent]

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/up", chunks(), {"Content-Length": str(size)})
    status = connection.getresponse().status
    connection.close()
    return size if status == 200 else 0


def growth(service: OneWorker, port: int, size: int, transfer: Callable[[int, int], int]) -> tuple[int, float]:
    """Return the growth of the worker in bytes, and the duration in seconds."""
    transfer(port, 20_000_000)  # Memory that stays allocated after any first transfer.
    before = pss(service.worker.pid)
    began = time.monotonic()
    with peak(service.worker.pid) as highest:
        if transfer(port, size) != size:
            raise SystemExit(f"{transfer.__name__}: the transfer is incomplete")
    return highest() - before, time.monotonic() - began


def times(port: int, requests: int) -> dict[str, float]:
    """Return the median duration of each endpoint in seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times_by_path: dict[str, list[float]] = {"/one": [], "/two": []}
    for number in range(requests + 20):
        for path, durations in times_by_path.items():
            began = time.perf_counter()
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise SystemExit(f"{path}: {response.status}")
            if number >= 20:
                durations.append(time.perf_counter() - began)
    return {path: statistics.median(durations) for path, durations in times_by_path.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.calling_out", description=__doc__)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--requests", type=int, default=300)
    chosen = parser.parse_args()
    other = OtherService()
    port = free_port()
    with temporary_server("auto") as server:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=schema(other.port))
        settings = ("Service:ProxyOptions:Enabled=true", "Service:HttpClientOptions:Enabled=true")
        limits = (f"HttpServer:Limits:MaxRequestBodySize={chosen.bytes}", "Service:UrlPathPrefix=/api")
        service = OneWorker(server, port, *settings, *limits)
        try:
            for transfer in (download, upload):
                size, seconds = growth(service, port, chosen.bytes, transfer)
                verdict = "within" if size <= MOST_MEMORY else "MORE THAN"
                print(
                    f"{transfer.__name__} of {chosen.bytes / 1e6:,.0f} MB through a proxy: the worker grows by "
                    f"{size / 1e6:.1f} MB, {verdict} {MOST_MEMORY / 1e6:.0f} MB; {seconds:.1f} s"
                )
            p50s = times(port, chosen.requests)
            more = p50s["/two"] - p50s["/one"]
            verdict = "within" if more <= MOST_TIME else "MORE THAN"
            print(
                f"p50 with the slower type alone {p50s['/one'] * 1000:.2f} ms, "
                f"with both {p50s['/two'] * 1000:.2f} ms: {more * 1000:+.2f} ms, {verdict} {MOST_TIME * 1000:.0f} ms"
            )
        finally:
            service.stop()


if __name__ == "__main__":
    main()
