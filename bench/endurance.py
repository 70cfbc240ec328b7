"""Checks in addition to the table of rates: sustained load, latency at half load, memory, streaming, start-up.

Each check returns findings. A check that is not meaningful on this machine says so instead of passing.
"""

import socket
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.load import Load, load, raw_request
from bench.processes import usage
from bench.scenarios import BY_NAME, Scenario
from bench.services import Service, Setting, StartedService, free_port, send_request, start, wait_until_ready

MANY = Path(__file__).with_name("many.sql")
LAST_OF_MANY = Scenario("many", "/many/1000?id=1", "")
MEMORY_LIMIT = 60.0
STREAM_LIMIT = 32.0
START_LIMIT = 1.0
TAIL_LIMIT = 5.0


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `met` is None if the machine does not allow a verdict; `note` then contains the reason."""

    check: str
    measured: str
    limit: str
    met: bool | None
    note: str = ""


def sustained_load(service: Service, setting: Setting, seconds: float) -> list[Finding]:
    """Check that all requests of 64 connections in a closed loop are answered and that the worker stays small.

    The service is started for this check, because other scenarios increase the memory of the measured one.
    """
    running = start(service, replace(setting, port=free_port(), signed=False))
    try:
        wait_until_ready(running, BY_NAME["types-10"])
        return _sustained_load(running, seconds)
    finally:
        running.stop()


def _sustained_load(running: StartedService, seconds: float) -> list[Finding]:
    scenario = BY_NAME["types-10"]
    _, expected = send_request(running.port, scenario)
    before = usage(running.process.pid)
    result = load(scenario, running.port, expected, seconds)
    after = usage(running.process.pid)
    memory = after.worker_resident(before)
    rate = result.requests / result.seconds
    return [
        Finding(
            f"64 connections for {seconds:.0f} s ({scenario.name})",
            f"{result.requests:,} responses ({rate:,.0f}/s), {result.errors} lost or wrong",
            "0 lost or wrong",
            result.errors == 0 and result.requests > 0,
            result.detail,
        ),
        Finding(
            "resident memory of a worker under that load",
            f"{memory:.1f} MiB",
            f"≤ {MEMORY_LIMIT:.0f} MiB",
            0 < memory <= MEMORY_LIMIT,
        ),
    ]


def half_load(
    running: StartedService,
    scenario: Scenario,
    full_rate: float,
    seconds: float,
    references: Sequence[tuple[StartedService, float]] = (),
) -> Finding:
    """Check latency, measured from the moment at which each request is due.

    references: other services with their maximum rates. Their latencies at half load show what the machine causes.
    """
    result = _at_half(running, scenario, full_rate, seconds)
    requested_rate = full_rate / 2
    rate_share = result.requests / result.seconds / requested_rate
    ratio = _tail(result)
    is_meaningful = rate_share > 0.98
    others = [f"{service.name} {_tail(_at_half(service, scenario, rate, seconds)):.1f}" for service, rate in references]
    note = (
        result.detail
        if is_meaningful
        else f"not judged: generator and service together completed {rate_share:.0%} of the rate"
    )
    note = ", ".join([*([note] if note else []), *others])
    return Finding(
        f"p99 / p50 at half load ({scenario.name}, {requested_rate:,.0f}/s)",
        f"{ratio:.1f} (p50 {result.p50:.2f} ms, p99 {result.p99:.2f} ms)",
        f"≤ {TAIL_LIMIT:.0f}",
        ratio <= TAIL_LIMIT and not result.errors if is_meaningful else None,
        note,
    )


def _at_half(running: StartedService, scenario: Scenario, full_rate: float, seconds: float) -> Load:
    _, expected = send_request(running.port, scenario)
    return load(scenario, running.port, expected, seconds, full_rate / 2)


def _tail(result: Load) -> float:
    return result.p99 / result.p50 if result.p50 else float("inf")


def stream(running: StartedService, rows: int, slow_for: float) -> Finding:
    """Check the growth of the worker while a client reads a large set, fast or slowly for `slow_for` seconds."""
    before = usage(running.process.pid)
    with peak_memory(running.process.pid) as peak:
        begin = time.perf_counter()
        counted, whole = read_rows(running.port, rows, slow_for)
        seconds = time.perf_counter() - begin
    growth = max((peak[pid] - before.resident.get(pid, 0.0) for pid in peak), default=0.0)
    reader = f"slow reader, {slow_for:.0f} s" if slow_for else "fast reader"
    complete = whole and counted == rows
    return Finding(
        f"{rows:,} rows streamed, {reader}: growth of the worker",
        f"{growth:.1f} MiB in {seconds:.1f} s",
        f"≤ {STREAM_LIMIT:.0f} MiB",
        complete and growth <= STREAM_LIMIT,
        "" if complete else f"incomplete: {counted:,} rows",
    )


@contextmanager
def peak_memory(root: int) -> Iterator[dict[int, float]]:
    """Provide the highest resident MiB of each process of the tree, sampled while the block runs."""
    peak: dict[int, float] = {}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.02):
            for pid, resident in usage(root).resident.items():
                peak[pid] = max(peak.get(pid, 0.0), resident)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def read_rows(port: int, rows: int, slow_for: float) -> tuple[int, bool]:
    """Return the number of rows, counted by opening braces (no value contains one), and whether the response was
    complete."""
    request = raw_request("GET", f"/bench/stream?rows={rows}", "127.0.0.1", b"")
    counted = 0
    tail = b""
    with socket.socket() as peer:
        if slow_for:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        peer.settimeout(30)
        peer.connect(("127.0.0.1", port))
        peer.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        begin = time.perf_counter()
        while data := peer.recv(1 << 16):
            counted += data.count(b"{")
            tail = (tail + data)[-32:]
            if time.perf_counter() - begin < slow_for:
                time.sleep(0.05)
    return counted, b"]" in tail and (tail.endswith(b"0\r\n\r\n") or tail.endswith(b"]"))


def start_up(service: Service, setting: Setting, attempts: int) -> Finding:
    """Check the seconds from the start of the program to its first response, with 1,000 routines in the database."""
    setting.server.load(MANY, "many")
    seconds = [one_start(service, replace(setting, port=free_port(), database="many")) for _ in range(attempts)]
    median = statistics.median(seconds)
    return Finding(
        "start to first response with 1,000 routines",
        f"{median:.2f} s (median of {attempts})",
        f"≤ {START_LIMIT:.0f} s",
        median <= START_LIMIT,
    )


def one_start(service: Service, setting: Setting) -> float:
    begin = time.perf_counter()
    running = start(service, setting)
    try:
        wait_until_ready(running, LAST_OF_MANY, poll=0.005)
        seconds = time.perf_counter() - begin
        status, body = send_request(running.port, LAST_OF_MANY)
        if status != 200:
            raise OSError(f"status {status}: {body[:200]!r}")
        return seconds
    finally:
        running.stop()
