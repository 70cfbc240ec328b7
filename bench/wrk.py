"""Runs a closed loop of 64 connections with wrk, or with our own generator where wrk is not installed.

Both check every response: status 200 and the very bytes of the first answer.
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.load import Generator, Target, raw_request
from bench.scenarios import Scenario

SCRIPT = Path(__file__).with_name("check.lua")
CONNECTIONS = 64
# One thread drives a service of one worker at full speed and leaves the other cores alone.
THREADS = 1 if (os.cpu_count() or 1) < 8 else 2


@dataclass(frozen=True, slots=True)
class Load:
    """What the load generator saw. Latencies in milliseconds, `cpu` is the generator's own in seconds."""

    requests: int
    seconds: float
    p50: float
    p99: float
    errors: int
    detail: str
    cpu: float


def available() -> str:
    return "wrk" if shutil.which("wrk") else "bench/load.py"


def closed_loop(scenario: Scenario, port: int, expected: bytes, seconds: float) -> Load:
    if shutil.which("wrk"):
        return with_wrk(scenario, port, expected, seconds)
    return with_own_generator(scenario, port, expected, seconds)


def with_wrk(scenario: Scenario, port: int, expected: bytes, seconds: float) -> Load:
    with tempfile.TemporaryDirectory(prefix="rowcall-bench-wrk-") as folder:
        answer, body = Path(folder, "expected"), Path(folder, "body")
        answer.write_bytes(expected)
        environment = os.environ | {"BENCH_EXPECTED": str(answer)}
        if scenario.body:
            body.write_bytes(scenario.body)
            environment["BENCH_BODY"] = str(body)
        command = ["wrk", f"-t{THREADS}", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "--timeout", "10s"]
        command += ["-s", str(SCRIPT), f"http://127.0.0.1:{port}{scenario.path}"]
        before = children_cpu()
        run = subprocess.run(command, env=environment, check=True, text=True, stdout=subprocess.PIPE)
        cpu = children_cpu() - before
    line = next(line for line in run.stdout.splitlines() if line.startswith("RESULT "))
    seen = json.loads(line.removeprefix("RESULT "))
    kinds = ("wrong_status", "wrong_body", "connect", "read", "write", "timeout")
    detail = ", ".join(f"{seen[kind]} {kind}" for kind in kinds if seen[kind])
    errors = sum(seen[kind] for kind in kinds)
    spent = seen["microseconds"] / 1e6
    return Load(seen["requests"], spent, seen["p50"] / 1000, seen["p99"] / 1000, errors, detail, cpu)


def with_own_generator(
    scenario: Scenario, port: int, expected: bytes, seconds: float, rate: float | None = None
) -> Load:
    request = raw_request(scenario.method, scenario.path, f"127.0.0.1:{port}", scenario.body)
    before = resource.getrusage(resource.RUSAGE_SELF)
    tally = Generator(Target("127.0.0.1", port, request, expected), CONNECTIONS, rate).run(seconds)
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    errors = tally.wrong + tally.lost
    detail = f"{tally.wrong} wrong, {tally.lost} lost" if errors else ""
    return Load(tally.answered, tally.seconds, tally.percentile(0.5), tally.percentile(0.99), errors, detail, cpu)


def children_cpu() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime
