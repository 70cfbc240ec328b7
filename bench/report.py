"""The report: markdown, and JSON for later comparison. It includes failed requests and missed targets."""

import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.by_connections import COMPLETE, SHARES, Level
from bench.endurance import Finding
from bench.measure import Cell, Figures, cores
from bench.scenarios import DATABASE_CPU_LIMIT, FASTIFY_BY_CONNECTIONS, LATENCY_OVER_PGBENCH, Scenario

SUBJECT = "rowcall"
LIMITS = ("pgbench", "pgbench-generic")
VERDICT = {True: "met", False: "**missed**", None: "not judged"}


@dataclass(frozen=True, slots=True)
class Result:
    """All results of one run of the benchmark."""

    setting: dict[str, str]
    scenarios: dict[Scenario, list[Cell]]
    findings: list[Finding]
    absent: dict[str, str]
    connections: dict[Scenario, dict[int, list[Level]]] = field(default_factory=dict)
    """The results of each service, by scenario and number of connections."""


def machine() -> dict[str, str]:
    """Return the properties of the machine on which the figures depend."""
    cpu = "unknown"
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = (line for line in info.read_text("utf-8").splitlines() if line.startswith("model name"))
        cpu = next(models, "model name: unknown").partition(":")[2].strip()
    memory = Path("/proc/meminfo")
    total = memory.read_text("utf-8").split()[1] if memory.exists() else "0"
    return {
        "host": platform.node(),
        "cpu": f"{cpu}, {cores()} cores for everything",
        "memory": f"{int(total) / 2**20:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_version()}, {Path(sys.executable).resolve()}",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        process = subprocess.run(command, cwd=Path(__file__).parent, check=True, text=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return process.stdout.strip()


def limit_of(medians: dict[str, Figures]) -> Figures | None:
    """Return the faster of the two results of pgbench."""
    limits = [medians[name] for name in LIMITS if name in medians]
    return max(limits, key=lambda figures: figures.rate, default=None)


def medians_by_service(cells: Sequence[Cell]) -> dict[str, Figures]:
    """Return medians by service; `pgbench` is the better of its two results."""
    medians = {cell.service: cell.median for cell in cells}
    measured = {name: figures for name, figures in medians.items() if figures is not None}
    limit = limit_of(measured)
    return measured | ({"pgbench": limit} if limit else {})


def targets(scenario: Scenario) -> Iterator[tuple[str, float]]:
    """Yield the targets. Targets against pgbench are checked against both of its plan modes: the choice of PostgreSQL,
    and generic plans."""
    for other, ratio in scenario.targets.items():
        for name in LIMITS if other == "pgbench" else (other,):
            yield name, ratio


def verdicts(scenario: Scenario, cells: Sequence[Cell]) -> Iterable[tuple[str, float | None, float, bool | None]]:
    """Return for each target: the other service, our ratio to it, the target, and whether it is met.

    If rowcall was not measured, the target is missed; if the peer was not measured, there is no verdict.
    """
    medians = {cell.service: cell.median for cell in cells if cell.median is not None}
    ours = medians.get(SUBJECT)
    for other, target in targets(scenario):
        if ours is None:
            yield other, None, target, False
        elif other not in medians:
            yield other, None, target, None
        else:
            ratio = ours.rate / medians[other].rate if medians[other].rate else float("inf")
            yield other, ratio, target, ratio >= target and not ours.errors


def markdown(result: Result) -> str:
    parts = [f"# Benchmark of {result.setting['date']}", ""]
    parts += [f"- {key}: {value}" for key, value in result.setting.items()]
    parts += [f"- **not measured**: {name}: {one_line(reason)}" for name, reason in result.absent.items()]
    parts += ["", *summary(result), *details(result), *by_connections(result), *findings(result.findings)]
    return "\n".join(parts) + "\n"


def summary(result: Result) -> list[str]:
    lines = ["## Against the targets", "", "| scenario | against | ratio | target | |", "|---|---|--:|--:|---|"]
    for scenario, cells in result.scenarios.items():
        for other, ratio, target, met in verdicts(scenario, cells):
            ratio_text = f"{ratio:.2f}" if ratio is not None else "–"
            lines.append(f"| {scenario.name} | {other} | {ratio_text} | ≥ {target:g} | {VERDICT[met]} |")
        lines += database_cpu(scenario, cells)
    for scenario, levels_of in result.connections.items():
        for connections, levels in levels_of.items():
            peaks = {level.service: level.peak for level in levels if level.peak and not level.errors}
            lines += few_connections(scenario.name, connections, peaks)
    return [*lines, ""]


def few_connections(scenario: str, connections: int, peaks: dict[str, Figures]) -> Iterator[str]:
    """Yield a line for each target at this number of connections whose both sides were measured. peaks: by service."""
    ours, fastify, limit = peaks.get(SUBJECT), peaks.get("fastify"), limit_of(peaks)
    target = FASTIFY_BY_CONNECTIONS.get(scenario, {}).get(connections)
    title = f"{scenario}, {connections} connection" + "s" * (connections > 1)
    if ours and fastify and target is not None:
        ratio = ours.rate / fastify.rate
        yield f"| {title} | fastify | {ratio:.2f} | ≥ {target:g} | {VERDICT[ratio >= target]} |"
    most = LATENCY_OVER_PGBENCH.get(scenario)
    if ours and limit and most is not None and connections == 1:
        microseconds = (ours.p50 - limit.p50) * 1000
        verdict = VERDICT[microseconds <= most]
        yield f"| {title} | pgbench, p50 | {microseconds:+.0f} µs | ≤ +{most} µs | {verdict} |"


def database_cpu(scenario: Scenario, cells: Sequence[Cell]) -> list[str]:
    medians = medians_by_service(cells)
    if SUBJECT not in medians or "pgbench" not in medians:
        return []
    ratio = medians[SUBJECT].database_cpu / max(medians["pgbench"].database_cpu, 0.001)
    met = VERDICT[ratio <= DATABASE_CPU_LIMIT]
    return [
        f"| {scenario.name} | pgbench, PostgreSQL's CPU per request | {ratio:.2f} | ≤ {DATABASE_CPU_LIMIT} | {met} |"
    ]


HEADINGS = (
    *("scenario", "service", "requests/s", "spread", "rowcall is", "of the limit", "p50 ms", "p99 ms", "errors"),
    *("CPU µs PostgreSQL", "CPU µs service", "CPU µs generator", "worker MiB", "all MiB"),
)


def details(result: Result) -> list[str]:
    """Return a table with a row for each service in each scenario."""
    lines = ["## All figures", "", table_row(HEADINGS), "|---|---" + "|--:" * (len(HEADINGS) - 2) + "|"]
    for scenario, cells in result.scenarios.items():
        medians = medians_by_service(cells)
        lines += [row(scenario, cell, medians.get(SUBJECT), medians.get("pgbench")) for cell in cells]
    requests = [f"- {each.name}: `{each.method} {each.path}`" for each in result.scenarios]
    return [*lines, "", *requests, ""]


def row(scenario: Scenario, cell: Cell, ours: Figures | None, limit: Figures | None) -> str:
    figures = cell.median
    if figures is None:
        reason = f"failed: {one_line(cell.failure)}"
        return table_row([scenario.name, cell.service, reason, *[""] * (len(HEADINGS) - 3)])
    rates = [run.rate for run in cell.runs]
    cpu = (figures.database_cpu, figures.service_cpu, figures.generator_cpu)
    memory = (figures.worker_memory, figures.service_memory)
    return table_row(
        [
            scenario.name,
            cell.service,
            f"{figures.rate:,.0f}",
            f"{min(rates):,.0f}–{max(rates):,.0f}",
            f"{ours.rate / figures.rate:.2f}×" if ours and figures.rate else "–",
            f"{figures.rate / limit.rate:.2f}" if limit and limit.rate else "–",
            f"{figures.p50:.2f}",
            f"{figures.p99:.2f}",
            f"**{figures.errors}** ({cell.error_detail})" if figures.errors else "0",
            *(f"{microseconds:.1f}" for microseconds in cpu),
            *(f"{mebibytes:.0f}" if mebibytes else "–" for mebibytes in memory),
        ]
    )


LOADS = ("peak", *(f"{share:.0%}" for share in SHARES))
LEVEL_HEADINGS = (
    *("scenario", "connections", "service", "peak, requests/s", "rowcall is"),
    *(f"p50 / p99 ms, {load}" for load in LOADS),
    *(f"CPU µs {part}, {', '.join(LOADS)}" for part in ("PostgreSQL", "service")),
    "errors",
)


def by_connections(result: Result) -> list[str]:
    """Return a table with a row for each service with each number of connections."""
    if not result.connections:
        return []
    dashes = "|---|--:|---" + "|--:" * (len(LEVEL_HEADINGS) - 3) + "|"
    lines = ["## By connections", "", table_row(LEVEL_HEADINGS), dashes]
    for scenario, levels_of in result.connections.items():
        for connections, levels in levels_of.items():
            ours = next((level.peak for level in levels if level.service == SUBJECT), None)
            lines += [level_row(scenario, connections, level, ours) for level in levels]
    notes = [
        f"- {scenario.name}, {connections} connections, {level.service}: {level.completed(share):.0%} of the rate at "
        f"{share:.0%} of the peak was completed"
        for scenario, levels_of in result.connections.items()
        for connections, levels in levels_of.items()
        for level in levels
        for share in level.shares
        if level.completed(share) < COMPLETE
    ]
    return [*lines, "", *notes, *([""] if notes else [])]


def level_row(scenario: Scenario, connections: int, level: Level, ours: Figures | None) -> str:
    start = [scenario.name, str(connections), level.service]
    peak = level.peak
    if level.failure or peak is None:
        return table_row([*start, f"failed: {one_line(level.failure)}", *[""] * (len(LEVEL_HEADINGS) - 4)])
    loads = [peak, *level.shares.values()]
    return table_row(
        [
            *start,
            f"{peak.rate:,.0f}",
            f"{ours.rate / peak.rate:.2f}×" if ours and peak.rate else "–",
            *(f"{item.p50:.2f} / {item.p99:.2f}" for item in loads),
            *[""] * (len(LOADS) - len(loads)),
            " / ".join(f"{item.database_cpu:.1f}" for item in loads),
            " / ".join(f"{item.service_cpu:.1f}" for item in loads),
            f"**{level.errors}**" if level.errors else "0",
        ]
    )


def table_row(values: Iterable[str]) -> str:
    return "| " + " | ".join(values) + " |"


def findings(results: Sequence[Finding]) -> list[str]:
    if not results:
        return []
    lines = ["## Checks", "", "| check | measured | limit | |", "|---|---|---|---|"]
    for finding in results:
        note = f": {one_line(finding.note)}" if finding.note else ""
        lines.append(f"| {finding.check} | {finding.measured} | {finding.limit} | {VERDICT[finding.met]}{note} |")
    return [*lines, ""]


def one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")[:300]


def as_json(result: Result) -> str:
    document: dict[str, Any] = {
        "setting": result.setting,
        "absent": result.absent,
        "findings": [asdict(finding) for finding in result.findings],
        "scenarios": {
            scenario.name: {
                "targets": [
                    {"against": other, "ratio": ratio, "target": target, "met": met}
                    for other, ratio, target, met in verdicts(scenario, cells)
                ],
                "services": {
                    cell.service: {
                        "median": asdict(cell.median) if cell.median else None,
                        "runs": [asdict(run) for run in cell.runs],
                        "failure": cell.failure,
                        "error_detail": cell.error_detail,
                    }
                    for cell in cells
                },
            }
            for scenario, cells in result.scenarios.items()
        },
        "connections": {
            scenario.name: {
                str(connections): {level.service: level.as_json() for level in levels}
                for connections, levels in levels_of.items()
            }
            for scenario, levels_of in result.connections.items()
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def save(result: Result, folder: Path) -> Path:
    """Write both forms to `folder` and return the markdown file."""
    folder.mkdir(parents=True, exist_ok=True)
    stamp = result.setting["date"][:16].replace(":", "")
    name = f"{stamp}-{result.setting['host']}"
    (folder / f"{name}.json").write_text(as_json(result), "utf-8")
    page = folder / f"{name}.md"
    page.write_text(markdown(result), "utf-8")
    return page
