"""A service with one worker, its memory, and the latency of small requests (`GET /api/small`)."""

import http.client
import statistics
import subprocess
import sys
import threading
import time

import psutil

from bench.postgres import Server

SMALL = """
create function small() returns int language sql stable as 'select 1';
comment on function small() is e'HTTP GET\\nallow_anonymous';
"""


class OneWorker:
    def __init__(self, server: Server, port: int, *settings: str) -> None:
        """settings: `key=value`."""
        self._port = port
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "rowcall.service.cli", f"--Urls=http://127.0.0.1:{port}",
                f"--ConnectionStrings:Default={server.conninfo()}", "--HttpServer:Workers=1",
                "--Service:RequiresAuthorization=false", "--Log:ConsoleMinimumLevel=Warning",
                *(f"--{setting}" for setting in settings),
            ]
        )  # fmt: skip
        self._wait()
        self.supervisor = psutil.Process(self._process.pid)
        children = self.supervisor.children(recursive=True)
        self.worker = next(child for child in children if child.name() == "rowcall-worker")

    def _wait(self) -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                if request_status(self._port) == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit("rowcall does not respond within 30 s")

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        size: int = self.worker.memory_info().rss
        return size

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


class Latency:
    """Latency of a small request that is sent every 5 ms to each of several services in turn."""

    def __init__(self, *ports: int) -> None:
        self._ports = ports
        self._times: list[list[float]] = []

    def measure_until(self, done: threading.Event) -> None:
        """Send requests until the event is set."""
        self._times = [[] for _ in self._ports]
        connections = [http.client.HTTPConnection("127.0.0.1", port) for port in self._ports]
        while True:
            for connection, times in zip(connections, self._times, strict=True):
                if done.wait(0.005 / len(self._ports)):
                    return
                began = time.perf_counter()
                connection.request("GET", "/api/small")
                connection.getresponse().read()
                times.append(time.perf_counter() - began)

    @property
    def count(self) -> int:
        """Return the number of requests to each service."""
        return len(self._times[0])

    def p99(self, seconds: float) -> float:
        """Measure for some seconds and return p99 in milliseconds of the first service."""
        done = threading.Event()
        timer = threading.Timer(seconds, done.set)
        timer.start()
        self.measure_until(done)
        return self.last_p99()

    def last_p99(self, index: int = 0) -> float:
        """Return p99 in milliseconds of the latest measurement, for the service with this index."""
        times = self._times[index]
        return statistics.quantiles(times, n=100)[98] * 1000 if len(times) > 2 else float("nan")


def request_status(port: int) -> int:
    """Send one request and return the status of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/api/small")
    return connection.getresponse().status
