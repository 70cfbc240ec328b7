"""`make bench`: one run, one report. `python -m bench --help` lists options for shorter runs.

The exit status is 0 if the run was completed, even if targets are missed.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import by_connections, endurance, report, services
from bench.by_connections import SHARES, Level
from bench.measure import Cell, constant_responses, cores, first_responses, measure, prepare
from bench.pgbench import PLANS
from bench.postgres import Server, temporary_server
from bench.redis import temporary_redis
from bench.scenarios import BY_NAME, CACHE_SCENARIOS, REST_SCENARIOS, SCENARIOS, Scenario
from bench.services import ServiceError, Setting, StartedService

SCHEMA = Path(__file__).with_name("schema.sql")
REST = Path(__file__).with_name("rest.sql")
TABLES = Path(__file__).with_name("tables.sql")
RESULTS = Path(__file__).with_name("results")
GROUPS = {"cache": CACHE_SCENARIOS, "rest": REST_SCENARIOS}
"""Scenarios that are selected together."""
CHECKS = ("sustained", "half-load", "stream", "start-up", "variants")
VARIANT_SCENARIOS = ("minimal", "types-10")
NOISE = 0.95
CONNECTIONS = (1, 2, 4, 8, 16, 64, 256)
BY_CONNECTIONS = ("minimal", "one", "pay", "types-10")
"""Scenarios that are measured with several numbers of connections."""
QUICK_CONNECTIONS = (1, 8)
REFERENCES = ("constant", "fastapi", "fastify")
"""Services whose latency at half load is shown with that of rowcall."""


def arguments(command_line: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--scenarios", type=names, default=[scenario.name for scenario in SCENARIOS], metavar="A,B")
    every = [service.name for service in services.SERVICES] + list(PLANS)
    parser.add_argument("--peers", type=names, default=every, metavar="A,B", help=", ".join(every))
    parser.add_argument("--checks", type=names, default=list(CHECKS), metavar="A,B", help=", ".join(CHECKS) + ", none")
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one run (default 3)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each, median taken (default 3)")
    parser.add_argument(
        "--connections", type=counts, default=CONNECTIONS, metavar="N,M", help="numbers of connections, or none"
    )
    parser.add_argument("--by-connections", type=names, default=list(BY_CONNECTIONS), metavar="A,B", help="scenarios")
    parser.add_argument("--connection-seconds", type=float, default=2.0, help="length of one such run (default 2)")
    parser.add_argument("--workers", type=int, default=1, help="rowcall's workers (default 1)")
    parser.add_argument("--sustained-seconds", type=float, default=60.0, help="length of the check `sustained`")
    parser.add_argument("--stream-rows", type=int, default=1_000_000)
    parser.add_argument(
        "--slow-seconds", type=float, default=10.0, help="seconds for which the slow reader reads slowly"
    )
    parser.add_argument("--fsync", action="store_true", help="commits wait for the disk")
    parser.add_argument("--postgres", default="auto", help="auto, system, wheel, or a folder with its programs")
    parser.add_argument("--rowcall", type=Path, default=services.PROGRAMS / "rowcall", help="the command to measure")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument(
        "--quick", action="store_true", help="one short run of everything, which only shows that the bench works"
    )
    options = parser.parse_args(command_line)
    check_names(parser, options)
    if options.quick:
        options.seconds, options.runs, options.sustained_seconds, options.slow_seconds = 1.0, 1, 3.0, 2.0
        options.connections, options.connection_seconds = QUICK_CONNECTIONS, 0.3
    return options


def names(text: str) -> list[str]:
    chosen = [name for name in text.split(",") if name and name != "none"]
    return [scenario.name for scenario in GROUPS[chosen[0]]] if len(chosen) == 1 and chosen[0] in GROUPS else chosen


def uses_rest(options: argparse.Namespace) -> bool:
    return any(BY_NAME[name] in REST_SCENARIOS for name in (*options.scenarios, *options.by_connections))


def counts(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number and number != "none")


def check_names(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    allowed_names = {
        "scenarios": BY_NAME.keys(),
        "by_connections": BY_NAME.keys(),
        "peers": services.BY_NAME.keys() | PLANS.keys(),
        "checks": CHECKS,
    }
    for option, allowed in allowed_names.items():
        for name in getattr(options, option):
            if name not in allowed:
                parser.error(f"--{option.replace('_', '-')}: unknown {name!r}, known: {', '.join(sorted(allowed))}")


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Bench:
    """One run: a database, the services side by side, and their results."""

    def __init__(self, options: argparse.Namespace, server: Server, folder: Path, redis: str | None) -> None:
        self.options = options
        self.redis = redis
        self.server = server
        self.responses_file = folder / "responses.json"
        self.running: list[StartedService] = []
        self.absent: dict[str, str] = {}

    def setting(self) -> Setting:
        port, options = services.free_port(), self.options
        signed = any("Authorization" in dict(scenario.headers) for scenario in self.scenarios())
        return Setting(
            self.server,
            port,
            self.responses_file,
            options.rowcall,
            options.workers,
            signed=signed,
            rest=uses_rest(options),
            redis=self.redis,
        )

    def start(self, name: str, stack: ExitStack) -> None:
        """Start a service. If it does not start, it is reported and left out."""
        try:
            running = services.start(services.BY_NAME[name], self.setting())
            stack.callback(running.stop)
            services.wait_until_ready(running, SCENARIOS[0])
        except ServiceError as error:
            self.absent[name] = str(error)
            progress(f"not measured: {name}: {error}")
            return
        self.running.append(running)
        progress(f"serving: {name}")

    def scenarios(self) -> list[Scenario]:
        return [BY_NAME[name] for name in self.options.scenarios]

    def scenarios_by_connections(self) -> list[Scenario]:
        return [BY_NAME[name] for name in self.options.by_connections if self.options.connections]

    def start_all(self, stack: ExitStack) -> dict[Scenario, dict[str, bytes | str]]:
        """Start the services and return the first response of each to each scenario. Peers that send constant responses
        are started last, because they repeat those of the others.
        """
        chosen = [name for name in self.options.peers if name in services.BY_NAME]
        if "variants" in self.options.checks and "rowcall" in chosen:
            chosen += [service.name for service in services.VARIANTS if service.name not in chosen]
        scenarios = dict.fromkeys([SCENARIOS[0], *self.scenarios(), *self.scenarios_by_connections()])
        repeating = [name for name in chosen if services.BY_NAME[name].repeats]
        for name in chosen:
            if name not in repeating and any(map(services.BY_NAME[name].supports, scenarios)):
                self.start(name, stack)
        responses = {scenario: first_responses(self.server, self.running, scenario) for scenario in scenarios}
        if repeating:
            self.responses_file.write_text(constant_responses(responses), "utf-8")
            for name in repeating:
                self.start(name, stack)
            responses = {scenario: first_responses(self.server, self.running, scenario) for scenario in responses}
        return responses

    def measure(self, responses: dict[Scenario, dict[str, bytes | str]]) -> dict[Scenario, list[Cell]]:
        limits = [name for name in self.options.peers if name in PLANS]
        variants = {service.name for service in services.VARIANTS}
        table = {}
        for scenario in self.scenarios():
            progress(scenario.name)
            running = [
                service
                for service in self.running
                if service.service.supports(scenario)
                and (service.name not in variants or scenario.name in VARIANT_SCENARIOS)
            ]
            cells = prepare(self.server, running, responses[scenario], scenario, limits)
            measure(cells, self.options.runs, self.options.seconds, progress)
            missing = [Cell("rowcall", failure=self.absent["rowcall"])] if "rowcall" in self.absent else []
            table[scenario] = missing + cells
        return table

    def measure_by_connections(
        self, responses: dict[Scenario, dict[str, bytes | str]]
    ) -> dict[Scenario, dict[int, list[Level]]]:
        limits = [name for name in ("pgbench",) if name in self.options.peers]
        table = {}
        for scenario in self.scenarios_by_connections():
            subjects = by_connections.subjects(self.server, self.running, responses[scenario], scenario, limits)
            table[scenario] = {
                connections: by_connections.measure(subjects, connections, self.options.connection_seconds, progress)
                for connections in self.options.connections
            }
        return table

    def check(self, table: dict[Scenario, list[Cell]]) -> list[endurance.Finding]:
        """Run the checks of `endurance` on the default rowcall."""
        subject = next((running for running in self.running if running.name == "rowcall"), None)
        if subject is None or not self.options.checks:
            return []
        findings: list[endurance.Finding] = []
        steps = {
            "sustained": lambda: endurance.sustained_load(
                subject.service, self.setting(), self.options.sustained_seconds
            ),
            "half-load": lambda: self.half_loads(subject, table),
            "stream": lambda: self.streams(subject),
            "start-up": lambda: [endurance.start_up(subject.service, self.setting(), 3)],
            "variants": lambda: two_workers(table),
        }
        for name in self.options.checks:
            progress(f"check: {name}")
            try:
                findings += steps[name]()
            except (OSError, ServiceError) as error:
                findings.append(endurance.Finding(name, "failed", "", False, str(error)))
        return findings

    def half_loads(self, subject: StartedService, table: dict[Scenario, list[Cell]]) -> list[endurance.Finding]:
        seconds = max(self.options.seconds, 3.0)
        findings = []
        for scenario, cells in table.items():
            rates = {cell.service: cell.median.rate for cell in cells if cell.median}
            if subject.name not in rates or scenario.name not in VARIANT_SCENARIOS:
                continue
            references = [
                (running, rates[running.name])
                for running in self.running
                if running.name in REFERENCES and running.name in rates
            ]
            findings.append(endurance.half_load(subject, scenario, rates[subject.name], seconds, references))
        return findings

    def streams(self, subject: StartedService) -> list[endurance.Finding]:
        rows, slow = self.options.stream_rows, self.options.slow_seconds
        return [endurance.stream(subject, rows, seconds) for seconds in (0.0, slow)]


def two_workers(table: dict[Scenario, list[Cell]]) -> list[endurance.Finding]:
    """Check that two workers are not slower than one, if workers, PostgreSQL and generator have separate cores."""
    findings = []
    for scenario, cells in table.items():
        medians = report.medians_by_service(cells)
        if "rowcall" not in medians or "rowcall-2-workers" not in medians:
            continue
        ratio = medians["rowcall-2-workers"].rate / medians["rowcall"].rate
        enough = cores() >= 4
        note = "" if enough else f"{cores()} cores are shared by PostgreSQL, generator and workers"
        met = ratio >= NOISE if enough or ratio >= NOISE else None
        check = f"two workers against one ({scenario.name})"
        findings.append(endurance.Finding(check, f"{ratio:.2f}", f"≥ {NOISE}", met, note))
    return findings


def setting(options: argparse.Namespace, server: Server) -> dict[str, str]:
    return report.machine() | {
        "PostgreSQL": f"{server.version}, over a unix socket, pool of {services.POOL} for each peer",
        "load": "64 connections (generator.c) if not stated otherwise, every response compared with the first",
        "runs": f"median of {options.runs} runs of {options.seconds:g} s each, interleaved",
        "by connections": f"one run of {options.connection_seconds:g} s for each load: as fast as possible, and at "
        + ", ".join(f"{share:.0%}" for share in SHARES)
        + " of that rate",
        "rowcall": f"{options.workers} worker(s)",
        "fsync": "on" if options.fsync else "off",
    }


def main(command_line: Sequence[str] | None = None) -> int:
    options = arguments(command_line)
    with ExitStack() as stack:
        server = stack.enter_context(temporary_server(options.postgres, fsync=options.fsync))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowcall-bench-")))
        server.load(SCHEMA, "bench")
        server.psql("-f", str(TABLES))
        if uses_rest(options):
            server.psql("-f", str(REST))
        uses_cache = any(BY_NAME[name] in CACHE_SCENARIOS for name in options.scenarios)
        redis = stack.enter_context(temporary_redis(services.free_port())) if uses_cache else None
        bench = Bench(options, server, folder, redis)
        responses = bench.start_all(stack)
        table = bench.measure(responses)
        levels = bench.measure_by_connections(responses)
        findings = bench.check(table)
        result = report.Result(setting(options, server), table, findings, bench.absent, levels)
    page = report.save(result, options.results)
    print(page.read_text("utf-8"))
    progress(f"written: {page} and {page.with_suffix('.json').name}")
    return 0
