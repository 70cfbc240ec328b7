"""`make bench` measures with several numbers of connections, and at shares of the rate that is reached."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bench.by_connections import Level
from bench.measure import Figures
from bench.report import Result, markdown
from bench.run import main
from bench.scenarios import BY_NAME
from bench.summary import ordinary

LOADS = ("0.1", "0.5", "0.8")
PEAK = Figures(
    rate=1000.0,
    p50=0.5,
    p99=1.5,
    errors=0,
    database_cpu=30.0,
    service_cpu=20.0,
    generator_cpu=5.0,
    worker_memory=50.0,
    service_memory=100.0,
)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler for the load generator")
def test_each_service_is_measured_with_each_number_of_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    peers = ("rowcall", "rowcall-granian", "constant", "constant-loop", "pgbench")
    lengths = ("--seconds", "0.2", "--runs", "1", "--connection-seconds", "0.2")
    chosen = ("--scenarios", "minimal", "--by-connections", "minimal", "--connections", "1,2")
    assert main([*lengths, *chosen, "--checks", "none", "--peers", ",".join(peers), "--results", str(tmp_path)]) == 0
    levels = json.loads(next(tmp_path.glob("*.json")).read_text())["connections"]
    assert [*levels] == ["minimal"]
    assert [*levels["minimal"]] == ["1", "2"]
    for number, services in levels["minimal"].items():
        assert {*services} == {*peers}
        for service, level in services.items():
            place = f"{number} connections, {service}: {level}"
            assert level["failure"] == "", place
            assert {*level["shares"]} == {*LOADS}, place
            for figures in (level["peak"], *level["shares"].values()):
                assert figures["errors"] == 0, place
                assert figures["rate"] > 0, place
                assert 0 <= figures["p50"] <= figures["p99"], place
    page = capsys.readouterr().out
    assert "## By connections" in page
    assert "| minimal | 2 | pgbench |" in page


def page(*levels: Level, connections: int = 8) -> list[str]:
    """Return the lines of a report whose only measurement is of the scenario `minimal`."""
    measured = {BY_NAME["minimal"]: {connections: [*levels]}}
    return markdown(Result({"date": "2026"}, {}, [], {}, measured)).splitlines()


def test_an_incomplete_rate_is_reported() -> None:
    shares = {0.5: replace(PEAK, rate=495.0), 0.8: replace(PEAK, rate=600.0)}
    lines = page(Level("rowcall", PEAK, shares))
    assert [line for line in lines if "was completed" in line] == [
        "- minimal, 8 connections, rowcall: 75% of the rate at 80% of the peak was completed"
    ]


def test_a_failing_service_has_a_row_with_the_reason() -> None:
    lines = page(Level("rowcall", PEAK), Level("fastify", failure="node is not installed"))
    assert [line.split(" | ")[2:5] for line in lines if line.startswith("| minimal")] == [
        ["rowcall", "1,000", "1.00×"],
        ["fastify", "failed: node is not installed", ""],
    ]


def test_few_connections_are_compared_by_rate_and_latency() -> None:
    levels = (
        Level("rowcall", PEAK),
        Level("fastify", replace(PEAK, rate=500.0)),
        Level("pgbench", replace(PEAK, p50=0.45)),
    )
    verdicts = [line for line in page(*levels) if "≥" in line or "≤" in line]
    assert verdicts == ["| minimal, 8 connections | fastify | 2.00 | ≥ 2.2 | **missed** |"]
    verdicts = [line for line in page(*levels, connections=1) if "≥" in line or "≤" in line]
    assert verdicts == [
        "| minimal, 1 connection | fastify | 2.00 | ≥ 1.5 | met |",
        "| minimal, 1 connection | pgbench, p50 | +50 µs | ≤ +60 µs | met |",
    ]


def test_the_summary_has_the_rates_of_ordinary_load() -> None:
    levels = [Level("rowcall", PEAK, {0.5: PEAK}), Level("fastify", failure="no node"), Level("pgbench", PEAK)]
    stored = {"minimal": {number: {level.service: level.as_json() for level in levels} for number in ("1", "8")}}
    assert [*ordinary(stored)] == [
        "| requests/s, 8 connections (p50, p99 at half) | rowcall | pgbench -M prepared |",
        "|---|--:|--:|",
        "| one row, two columns | 1,000 (0.50, 1.50) | 1,000 |",
    ]


def test_a_run_without_connection_counts_has_no_table() -> None:
    assert [*ordinary({})] == []
