"""Measures each service with several numbers of connections: as fast as it goes, and at shares of that rate.

At a share of the peak, requests are sent by the clock: a latency runs from the moment at which the request was due,
even if no connection was free then (no coordinated omission). `completed` is the share of the rate that got
responses; if it is below 1, some requests could not be sent before the end, and the latencies are lower bounds.
"""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from bench import pgbench
from bench.load import Load, load
from bench.measure import Figures, measure_run
from bench.postgres import Server
from bench.scenarios import Scenario
from bench.services import StartedService

SHARES = (0.1, 0.5, 0.8)
WARM_UP = 1.0
COMPLETE = 0.98
"""If a smaller share of a rate was completed, the report says so."""

SERVICES = ("rowcall", "rowcall-granian", "fastify", "fastapi", "constant", "constant-loop")
Drive = Callable[[float, float, int], Load]
"""Runs a load for seconds, with requests per second (0: the maximum) and a number of connections."""


@dataclass(frozen=True, slots=True)
class MeasuredService:
    """A service, or pgbench (without a process of its own), in one scenario. failure: why it cannot be measured."""

    service: str
    drive: Drive | None
    server: Server
    process: int | None
    failure: str = ""


@dataclass(slots=True)
class Level:
    """The results of a service with one number of connections."""

    service: str
    peak: Figures | None = None
    shares: dict[float, Figures] = field(default_factory=dict)
    failure: str = ""

    @property
    def errors(self) -> int:
        return sum(figures.errors for figures in self._all())

    def completed(self, share: float) -> float:
        """Return the share of the requests of an open loop that were completed before its end."""
        return self.shares[share].rate / (self.peak.rate * share) if self.peak and self.peak.rate else 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "peak": asdict(self.peak) if self.peak else None,
            "shares": {
                f"{share:g}": asdict(item) | {"completed": self.completed(share)} for share, item in self.shares.items()
            },
            "failure": self.failure,
        }

    def _all(self) -> list[Figures]:
        return [*([self.peak] if self.peak else []), *self.shares.values()]


def subjects(
    server: Server,
    running: Sequence[StartedService],
    responses: dict[str, bytes | str],
    scenario: Scenario,
    limits: Sequence[str],
) -> list[MeasuredService]:
    """Return the services that are measured in a scenario, and pgbench. limits: plan modes of pgbench."""
    measured = []
    for service in running:
        if service.name not in SERVICES or not service.service.supports(scenario):
            continue
        response = responses[service.name]
        if isinstance(response, str):
            measured.append(MeasuredService(service.name, None, server, None, response))
        else:
            drive = partial(_load, scenario, service.port, response)
            measured.append(MeasuredService(service.name, drive, server, service.process.pid))
    for name in limits:
        drive = partial(_pgbench, server, scenario, pgbench.PLANS[name])
        measured.append(MeasuredService(name, drive, server, None))
    return measured


def _load(scenario: Scenario, port: int, response: bytes, seconds: float, rate: float, connections: int) -> Load:
    return load(scenario, port, response, seconds, rate, connections)


def _pgbench(server: Server, scenario: Scenario, plans: str, seconds: float, rate: float, connections: int) -> Load:
    return pgbench.run(server, scenario, plans, seconds, rate, connections)


def measure(
    subjects: Sequence[MeasuredService], connections: int, seconds: float, progress: Callable[[str], None]
) -> list[Level]:
    """Measure all services with this number of connections, one after another at each load."""
    levels = {subject.service: Level(subject.service, failure=subject.failure) for subject in subjects}
    for share in (0.0, *SHARES):
        for subject in subjects:
            level = levels[subject.service]
            if subject.drive is None or level.failure:
                continue
            try:
                if not share:
                    if subject.process is not None:
                        subject.drive(min(WARM_UP, seconds), 0.0, connections)
                    level.peak = _figures(subject, seconds, 0.0, connections)
                elif level.peak and level.peak.rate:
                    level.shares[share] = _figures(subject, seconds, level.peak.rate * share, connections)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                level.failure = str(error)
    for level in levels.values():
        rate = f"{level.peak.rate:10,.0f}/s" if level.peak else level.failure
        progress(f"  {connections:3} connections  {level.service:18} {rate}")
    return list(levels.values())


def _figures(subject: MeasuredService, seconds: float, rate: float, connections: int) -> Figures:
    assert subject.drive is not None
    drive = subject.drive
    return measure_run(subject.server, subject.process, lambda length: drive(length, rate, connections), seconds)[1]
