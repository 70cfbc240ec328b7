"""Runs every scenario on every service, interleaved, and computes medians.

The services run side by side and are loaded in turn: first one run of each, then the second run of each. So a temporary
slow-down of the machine affects all services, not only one.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench import pgbench
from bench.compare import difference, key_difference
from bench.load import Load, load
from bench.postgres import Server
from bench.processes import usage
from bench.scenarios import Scenario
from bench.services import StartedService, send_request


@dataclass(frozen=True, slots=True)
class Figures:
    """Results of one run of the load generator, or medians of several runs.

    rate: requests per second. p50, p99: latencies in milliseconds. *_cpu: microseconds of processor time per request.
    *_memory: MiB.
    """

    rate: float
    p50: float
    p99: float
    errors: int
    database_cpu: float
    service_cpu: float
    generator_cpu: float
    worker_memory: float
    service_memory: float


@dataclass(slots=True)
class Cell:
    """One service in one scenario: its runs, or the reason why there are none."""

    service: str
    runs: list[Figures] = field(default_factory=list)
    failure: str = ""
    error_detail: str = ""
    attempt: Callable[[float], tuple[Load, Figures]] | None = None

    @property
    def median(self) -> Figures | None:
        """Median of each figure; errors are the sum, so that none is hidden."""
        if not self.runs:
            return None
        medians: dict[str, Any] = {
            name: statistics.median(getattr(run, name) for run in self.runs) for name in Figures.__dataclass_fields__
        }
        return Figures(**medians | {"errors": sum(run.errors for run in self.runs)})


def first_responses(server: Server, running: Sequence[StartedService], scenario: Scenario) -> dict[str, bytes | str]:
    """Return the response of each service as bytes, or a text: why there is none, or how it differs from PostgreSQL's
    JSON."""
    responses: dict[str, bytes | str] = {}
    single = scenario.single_request
    reference = b"" if scenario.writes else server.expected_json(single.sql, single.variables)
    for service in running:
        try:
            status, body = send_request(service.port, single)
        except OSError as error:
            responses[service.name] = f"no response: {error}"
            continue
        if status not in (200, 201):
            responses[service.name] = f"status {status}: {body[:200].decode(errors='replace')}"
            continue
        # Responses of writes differ each time; the first one shows the form that the others must have.
        reference = reference or body
        differs = difference(reference, body) if not scenario.writes else key_difference(reference, body)
        responses[service.name] = f"different response: {differs}" if differs else body
    return responses


def prepare(
    server: Server,
    running: Sequence[StartedService],
    responses: dict[str, bytes | str],
    scenario: Scenario,
    limits: Sequence[str],
) -> list[Cell]:
    cells = []
    for service in running:
        response = responses[service.name]
        if isinstance(response, str):
            cells.append(Cell(service.name, failure=response))
        else:
            drive = partial(load, scenario, service.port, response)
            cells.append(Cell(service.name, attempt=partial(measure_run, server, service.process.pid, drive)))
    for name in limits:
        drive = partial(pgbench.run, server, scenario, pgbench.PLANS[name])
        cells.append(Cell(name, attempt=partial(measure_run, server, None, drive)))
    return cells


def measure_run(
    server: Server, service: int | None, drive: Callable[[float], Load], seconds: float
) -> tuple[Load, Figures]:
    """Run the load and measure the cost for PostgreSQL and the service. pgbench (`service` None) is its own service."""
    database_before = usage(server.pid)
    service_before = usage(service) if service else None
    result = drive(seconds)
    service_after = usage(service) if service else None
    database_cpu = usage(server.pid).cpu - database_before.cpu
    if service_before and service_after:
        service_cpu, generator_cpu = service_after.cpu - service_before.cpu, result.cpu
        worker, whole = service_after.worker_resident(service_before), sum(service_after.resident.values())
    else:
        service_cpu, generator_cpu, worker, whole = result.cpu, 0.0, 0.0, 0.0
    share = 1e6 / max(result.requests, 1)
    figures = Figures(
        rate=result.requests / result.seconds if result.seconds else 0.0,
        p50=result.p50,
        p99=result.p99,
        errors=result.errors,
        database_cpu=database_cpu * share,
        service_cpu=service_cpu * share,
        generator_cpu=generator_cpu * share,
        worker_memory=worker,
        service_memory=whole,
    )
    return result, figures


def measure(cells: Sequence[Cell], runs: int, seconds: float, progress: Callable[[str], None]) -> None:
    """Run a warm-up (in which services prepare statements and choose plans), then the runs, interleaved."""
    for number in range(runs + 1):
        for cell in cells:
            if cell.attempt is None or cell.failure:
                continue
            try:
                load, figures = cell.attempt(seconds if number else min(1.0, seconds))
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                cell.failure = str(error)
                continue
            if load.detail:
                cell.error_detail = load.detail
            if number:
                cell.runs.append(figures)
                progress(f"  run {number}  {cell.service:18} {figures.rate:10,.0f}/s  {load.detail}")


def constant_responses(responses: dict[Scenario, dict[str, bytes | str]]) -> str:
    """Return the index for peers/granian_constant.py: for each scenario the first response."""
    chosen = {}
    for scenario, by_service in responses.items():
        body = next(
            (response for response in by_service.values() if isinstance(response, bytes) and not scenario.keys), None
        )
        if body is not None:
            chosen[scenario.path] = body.decode()
    return json.dumps(chosen)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
