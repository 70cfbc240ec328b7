"""Compares the two HTTP engines with few and with many connections: `python -m bench.engines [SECONDS [RUNS]]`.

For each scenario and number of connections: requests per second and CPU time of the worker for each request, of the
event loop's server and of granian, in alternating runs. CPU time is the better measure on a machine that is busy.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from bench import load, services
from bench.postgres import throw_away
from bench.run import SCHEMA, TABLES
from bench.scenarios import BY_NAME, Scenario

ENGINES = ("Auto", "Granian")
CONNECTIONS = (1, 8, 64)
NAMES = ("minimal", "one", "pay")
WARM_UP = 1.5


@dataclass(frozen=True, slots=True)
class Measured:
    rate: float
    """Requests per second."""
    cpu: float
    """Microseconds of the worker for each request."""


class Subject:
    """A service with one engine."""

    def __init__(self, running: services.Running) -> None:
        self._port = running.port
        children = psutil.Process(running.process.pid).children(recursive=True)
        self._worker = next(child for child in children if child.name() == "rowcall-worker")

    def run(self, scenario: Scenario, connections: int, seconds: float) -> Measured:
        """Raises SystemExit for a response that is missing or wrong."""
        expected = b"" if scenario.keys else services.ask(self._port, scenario)[1]
        request = load.raw_request(scenario.method, scenario.path, f"127.0.0.1:{self._port}", scenario.body)
        before = self._worker.cpu_times()
        tally = load.generate(load.Target("127.0.0.1", self._port, request, expected), connections, seconds)
        after = self._worker.cpu_times()
        if tally.wrong or tally.lost:
            raise SystemExit(f"{scenario.name}: {tally.wrong} wrong, {tally.lost} lost")
        cpu = after.user + after.system - before.user - before.system
        return Measured(tally.answered / tally.seconds, cpu / tally.answered * 1e6)


def compare(subjects: dict[str, Subject], scenario: Scenario, connections: int, seconds: float, runs: int) -> str:
    measured: dict[str, list[Measured]] = {engine: [] for engine in ENGINES}
    for _ in range(runs):
        for engine, subject in subjects.items():
            measured[engine].append(subject.run(scenario, connections, seconds))
    rates = [statistics.median(item.rate for item in measured[engine]) for engine in ENGINES]
    cpu = [statistics.median(item.cpu for item in measured[engine]) for engine in ENGINES]
    return (
        f"{scenario.name:8} {connections:4} {rates[0]:9.0f} {rates[1]:9.0f} {rates[0] / rates[1]:6.2f}"
        f" {cpu[0]:9.1f} {cpu[1]:9.1f} {cpu[0] / cpu[1]:6.2f}"
    )


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.5
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with ExitStack() as stack:
        server = stack.enter_context(throw_away(""))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-bench-")))
        server.load(SCHEMA, "bench")
        server.psql("-f", str(TABLES))
        program = Path(sys.executable).with_name("rowcall")
        subjects = {}
        for engine in ENGINES:
            service = services.Service(engine, "", services.rowcall(f"--HttpServer:Engine={engine}"))
            setting = services.Setting(server, services.free_port(), folder / "answers.json", program, 1)
            running = services.start(service, setting)
            stack.callback(running.stop)
            services.wait_until_answering(running, BY_NAME["minimal"])
            subjects[engine] = Subject(running)
        print("scenario conn   req/s: loop, granian, ratio   CPU µs: loop, granian, ratio")
        for name in NAMES:
            for subject in subjects.values():
                subject.run(BY_NAME[name], 8, WARM_UP)
            for connections in CONNECTIONS:
                print(compare(subjects, BY_NAME[name], connections, seconds, runs), flush=True)


if __name__ == "__main__":
    main()
