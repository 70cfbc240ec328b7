"""Sends load to a service over many connections, as fast as it responds or at a fixed rate; compares each response.

The generator is a C program (`generator.c` explains why), compiled at its first use.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.scenarios import Scenario

SOURCE = Path(__file__).with_name("generator.c")
PROGRAM = SOURCE.parent.parent / "build" / "bench" / "generator"
CONNECTIONS = 64


class CompilerError(Exception):
    """The generator cannot be compiled; the message is that of the compiler."""


@dataclass(frozen=True, slots=True)
class Load:
    """The results of the generator. Latencies in milliseconds; `cpu` is the time of the generator itself in seconds."""

    requests: int
    seconds: float
    p50: float
    p99: float
    errors: int
    detail: str
    cpu: float


@dataclass(frozen=True, slots=True)
class Target:
    """Address, raw bytes of the request, and the expected body."""

    host: str
    port: int
    request: bytes
    expected: bytes


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of the generator.

    lost: requests whose connection ended, or that were unanswered ten seconds after the end. Latencies in microseconds,
    from the moment at which a request was due.
    """

    sent: int
    answered: int
    wrong: int
    lost: int
    seconds: float
    p50: float
    p99: float
    cpu: float


def raw_request(method: str, path: str, host: str, body: bytes, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers)
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def load(
    scenario: Scenario,
    port: int,
    expected: bytes,
    seconds: float,
    rate: float = 0.0,
    connections: int = CONNECTIONS,
) -> Load:
    """Run a load. rate: requests per second over all connections, 0 for the maximum."""
    request = raw_request(scenario.method, scenario.path, f"127.0.0.1:{port}", scenario.body, scenario.headers)
    tally = generate(Target("127.0.0.1", port, request, expected), connections, seconds, rate)
    errors = tally.wrong + tally.lost
    detail = f"{tally.wrong} wrong, {tally.lost} lost" if errors else ""
    return Load(tally.answered, tally.seconds, tally.p50 / 1000, tally.p99 / 1000, errors, detail, tally.cpu)


def generate(target: Target, connections: int, seconds: float, rate: float = 0.0) -> Tally:
    with tempfile.TemporaryDirectory(prefix="rowcall-bench-load-") as folder:
        request, expected = Path(folder, "request"), Path(folder, "expected")
        request.write_bytes(target.request)
        expected.write_bytes(target.expected)
        numbers = [str(number) for number in (target.port, connections, seconds, rate)]
        command = [str(program()), target.host, *numbers, str(request), str(expected)]
        done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    return Tally(**json.loads(done.stdout))


@functools.cache
def program() -> Path:
    """Return the compiled generator. Raises `CompilerError`."""
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= SOURCE.stat().st_mtime:
        return PROGRAM
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may compile at once; each moves a complete program into place.
    unfinished = PROGRAM.with_suffix(f".{os.getpid()}")
    command = [os.environ.get("CC", "cc"), "-O2", "-Wall", "-Wextra", "-Werror", "-o", str(unfinished), str(SOURCE)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise CompilerError(f"{' '.join(command)} failed: {getattr(error, 'stderr', error)}") from error
    return unfinished.replace(PROGRAM)


def children_cpu() -> float:
    """Return the CPU seconds of the child processes that have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime
