"""`python -m bench.observability`: cost of metrics, traces and the console. Services with one worker: without any of
them, with metrics, with traces (none or 5 % sampled), and with the console (no page or one page open). They take
turns under the same load, many times, so that other work of the machine affects all alike. `--kinds` selects some.

The result is the processor time of worker and supervisor for a request, which a busy machine changes less than the
rate: the median over all turns, and its ratio to that of the service without any of them. Targets: 0.98; the console
without a page as metrics, which it records; with a page, 0.98 of that.
"""

import argparse
import contextlib
import http.client
import statistics
import threading
from collections.abc import Iterator

from bench.load import Target, generate, raw_request
from bench.one_worker import SMALL, OneWorker
from bench.postgres import temporary_server
from bench.services import free_port

TRACING = ("Tracing:Enabled=true", "Tracing:Endpoint=http://127.0.0.1:9")
TOKEN = "an operator's token of the bench"
CONSOLE = ("Console:Enabled=true", f"Admin:BearerToken={TOKEN}")
PAGE = "console, a page open"
KINDS: dict[str, tuple[str, ...]] = {
    "none": (),
    "metrics": ("Metrics:Enabled=true", "Admin:Url=http://127.0.0.1:0"),
    "traces, none sampled": (*TRACING, "Tracing:SampleRatio=0"),
    "traces, 5 % sampled": (*TRACING, "Tracing:SampleRatio=0.05"),
    "console, no page open": CONSOLE,
    PAGE: CONSOLE,
}


def cpu_of(service: OneWorker) -> float:
    """Return the processor time of worker and supervisor in seconds, including system time."""
    times = [process.cpu_times() for process in (service.worker, service.supervisor)]
    return float(sum(item.user + item.system for item in times))


def turn(service: OneWorker, port: int, connections: int, seconds: float) -> float:
    """Send requests for `seconds`, and return the processor time of the service for one in microseconds."""
    request = raw_request("GET", "/api/small", f"127.0.0.1:{port}", b"")
    before = cpu_of(service)
    tally = generate(Target("127.0.0.1", port, request, b"1"), connections, seconds)
    if tally.wrong or tally.lost:
        raise SystemExit(f"{tally.wrong} wrong, {tally.lost} lost")
    return (cpu_of(service) - before) / tally.answered * 1e6


@contextlib.contextmanager
def page_open(port: int) -> Iterator[None]:
    """Read what the overview of the console reads, for the time of the block."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/console/api/live", headers={"authorization": f"Bearer {TOKEN}"})
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"the console responds {response.status}")

    def read() -> None:
        # Until the socket is shut down at the end of the block.
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            while response.readline():
                pass

    sock = response.fp.raw._sock if response.fp is not None else None  # type: ignore[attr-defined]
    reading = threading.Thread(target=read)
    reading.start()
    try:
        yield
    finally:
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(2)
        reading.join()
        connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--kinds", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND", help=", ".join(KINDS))
    arguments = parser.parse_args()
    chosen = {kind: KINDS[kind] for kind in KINDS if kind == "none" or kind in arguments.kinds}
    with temporary_server("auto") as server:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SMALL)
        ports = {kind: free_port() for kind in chosen}
        consoles = {kind: free_port() for kind, settings in chosen.items() if settings is CONSOLE}
        services = {
            kind: OneWorker(server, ports[kind], *settings, *_console_url(consoles.get(kind)))
            for kind, settings in chosen.items()
        }
        costs_by_kind: dict[str, list[float]] = {kind: [] for kind in chosen}
        for number in range(arguments.turns + 1):
            for kind, service in services.items():
                with page_open(consoles[kind]) if kind == PAGE else contextlib.nullcontext():
                    cost = turn(service, ports[kind], arguments.connections, arguments.seconds)
                if number:  # The first turn is a warm-up.
                    costs_by_kind[kind].append(cost)
        for service in services.values():
            service.stop()
    plain = statistics.median(costs_by_kind["none"])
    for kind, costs in costs_by_kind.items():
        median = statistics.median(costs)
        ratio = statistics.median(bare / cost for bare, cost in zip(costs_by_kind["none"], costs, strict=True))
        print(f"{kind:22} {median:7.2f} µs per request   {median - plain:+6.2f} µs   {ratio:.3f} of the rate without")


def _console_url(port: int | None) -> tuple[str, ...]:
    return () if port is None else (f"Console:Url=http://127.0.0.1:{port}",)


if __name__ == "__main__":
    main()
