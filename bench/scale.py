"""Extrapolates a saved run to a larger load: `python -m bench.scale [RESULT.json]`.

This is arithmetic, not a measurement: CPU per request times requests, divided by the usable share of a core. All
assumptions are in `Assumptions`; they can be set on the command line and are printed with the table.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from bench.report import SUBJECT

RESULTS = Path(__file__).parent / "results"
RATES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MIXES: Mapping[str, Mapping[str, float]] = {
    "smallest": {"minimal": 1.0},
    "reads": {"one-stable": 0.5, "table": 0.3, "search": 0.2},
    "shop": {"one-stable": 0.45, "table": 0.3, "search": 0.15, "insert": 0.05, "pay": 0.05},
    "reports": {"one-stable": 0.5, "table": 0.4, "types-100": 0.1},
}
"""Shares of the scenarios of `scenarios.py`."""
WRITES = frozenset({"insert", "pay"})
"""Scenarios that only the primary can run."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumptions beside the measured figures."""

    busy: float = 0.6
    """Used share of a core at the peak; the rest is for bursts, the loss of a host, and the kernel."""
    host_cores: int = 16
    """Cores of each host that runs rowcall."""
    server_cores: int = 64
    """Cores of each PostgreSQL server."""
    pool: int = 16
    """Database connections of a worker."""
    network: float = 1.0
    """Round-trip time between rowcall and the database in milliseconds, added to each request."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one request of a mix: µs of CPU, and ms."""

    service: float
    primary: float
    """Cost on the primary, for requests that only the primary can run."""
    reading: float
    """Cost of requests that a replica can run too."""
    latency: float


@dataclass(frozen=True, slots=True)
class Need:
    """Required resources of a mix at a rate."""

    rate: int
    service_cores: float
    hosts: int
    workers: int
    in_flight: int
    connections: int
    gibibytes: float
    primary_cores: float
    replica_cores: float
    servers: str


class Run:
    """The figures of this service in a file that `bench.run` has written. Raises `SystemExit` if it has none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        document = json.loads(path.read_text("utf-8"))
        self.setting: dict[str, str] = document["setting"]
        self._medians: dict[str, dict[str, float]] = {
            name: scenario["services"][SUBJECT]["median"]
            for name, scenario in document["scenarios"].items()
            if SUBJECT in scenario["services"]
        }
        if not self._medians:
            raise SystemExit(f"{path}: there are no figures of {SUBJECT}")

    def lacks(self, mix: Mapping[str, float]) -> list[str]:
        return [name for name in mix if name not in self._medians]

    def cost(self, mix: Mapping[str, float]) -> Cost:
        def mean(figure: str, *, names: frozenset[str] = frozenset(mix)) -> float:
            return sum(share * self._medians[name][figure] for name, share in mix.items() if name in names)

        return Cost(
            mean("service_cpu"),
            mean("database_cpu", names=WRITES & frozenset(mix)),
            mean("database_cpu", names=frozenset(mix) - WRITES),
            mean("p50"),
        )

    @property
    def worker_mebibytes(self) -> float:
        return max(figures["worker_memory"] for figures in self._medians.values())

    @property
    def host_mebibytes(self) -> float:
        """Memory that a host needs once: the supervisor and the template process. The run had one worker."""
        return max(figures["service_memory"] - figures["worker_memory"] for figures in self._medians.values())


def need(run: Run, mix: Mapping[str, float], rate: int, assumed: Assumptions) -> Need:
    cost = run.cost(mix)

    def cores(microseconds: float) -> float:
        return rate * microseconds / 1e6 / assumed.busy

    workers = math.ceil(cores(cost.service))
    hosts = math.ceil(workers / assumed.host_cores)
    return Need(
        rate=rate,
        service_cores=cores(cost.service),
        hosts=hosts,
        workers=workers,
        # Little's law, with the latency of a run at its limit, so this is an upper bound.
        in_flight=math.ceil(rate * (cost.latency + assumed.network) / 1000),
        connections=workers * assumed.pool,
        gibibytes=(workers * run.worker_mebibytes + hosts * run.host_mebibytes) / 1024,
        primary_cores=cores(cost.primary),
        replica_cores=cores(cost.reading),
        servers=_servers(cores(cost.primary), cores(cost.reading), assumed),
    )


def _servers(primary: float, reading: float, assumed: Assumptions) -> str:
    """Return the required servers: one if sufficient; otherwise replicas for reads; otherwise shards for writes."""
    most = assumed.server_cores
    if primary + reading <= most:
        return "1"
    if primary > most:
        return f"{math.ceil((primary + reading) / most)} sharded"
    replicas = math.ceil((primary + reading - most) / most)
    return f"1 and {replicas} replica{'s' if replicas > 1 else ''}"


def page(run: Run, assumed: Assumptions) -> Iterator[str]:
    """Yield the lines of the page in markdown."""
    yield f"From `{run.path.name}`: {run.setting['cpu']}; {run.setting['PostgreSQL']}; {run.setting['rowcall']}."
    assumptions = ", ".join(
        f"{assumption.name.replace('_', ' ')} {getattr(assumed, assumption.name):g}" for assumption in fields(assumed)
    )
    yield f"Assumed: {assumptions}."
    for name, mix in MIXES.items():
        yield ""
        if lacking := run.lacks(mix):
            yield f"**{name}**: the run has not measured {', '.join(lacking)}."
            continue
        cost = run.cost(mix)
        parts = ", ".join(f"{share:.0%} {scenario}" for scenario, share in mix.items())
        database = cost.primary + cost.reading
        yield f"**{name}** ({parts}): {cost.service:.1f} µs of rowcall and {database:.1f} µs of PostgreSQL"
        yield "a request."
        yield ""
        yield from _table([need(run, mix, rate, assumed) for rate in RATES])


def _table(needs: Sequence[Need]) -> Iterator[str]:
    yield (
        "| requests/s | cores rowcall | hosts | workers | in flight | database connections | GiB rowcall "
        "| cores PostgreSQL, writing | reading | servers |"
    )
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    for need in needs:
        yield (
            f"| {need.rate:,} | {need.service_cores:.1f} | {need.hosts} | {need.workers} | {need.in_flight:,} "
            f"| {need.connections:,} | {need.gibibytes:.1f} | {need.primary_cores:.1f} | {need.replica_cores:.1f} "
            f"| {need.servers} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument(
        "result", nargs="?", type=Path, help="a saved run; by default the newest that has all scenarios"
    )
    for assumption in fields(Assumptions):
        parser.add_argument(
            f"--{assumption.name.replace('_', '-')}", type=type(assumption.default), default=assumption.default
        )
    arguments = vars(parser.parse_args())
    path = arguments.pop("result") or newest()
    print(*page(Run(path), Assumptions(**arguments)), sep="\n")


def newest() -> Path:
    required = set().union(*MIXES.values())
    for path in sorted(RESULTS.glob("20*.json"), reverse=True):
        if required <= json.loads(path.read_text("utf-8"))["scenarios"].keys():
            return path
    raise SystemExit(f"no run in {RESULTS} has all of {', '.join(sorted(required))}; name one")


if __name__ == "__main__":
    main()
