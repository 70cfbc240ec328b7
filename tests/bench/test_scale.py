"""The arithmetic of larger loads, for a saved run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.scale import MIXES, RATES, RESULTS, Assumptions, Run, need, page

SAVED = RESULTS / "2026-11-22T1836-vm.json"
MANUAL = Path(__file__).parents[2] / "docs" / "scale.md"


def test_the_manual_shows_the_output_of_the_script() -> None:
    assert "\n".join(page(Run(SAVED), Assumptions())) in MANUAL.read_text()


@pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)
def test_cores_and_connections_are_derived_from_measurements(mix: dict[str, float]) -> None:
    run = Run(SAVED)
    assert sum(mix.values()) == pytest.approx(1)
    assert run.lacks(mix) == []
    cost, assumed = run.cost(mix), Assumptions(busy=0.5, pool=10)
    small, large = (need(run, mix, rate, assumed) for rate in (RATES[0], RATES[-1]))
    assert large.service_cores == pytest.approx(RATES[-1] * cost.service / 1e6 / 0.5)
    assert large.primary_cores + large.replica_cores == pytest.approx(RATES[-1] * (cost.primary + cost.reading) / 5e5)
    assert small.service_cores * 100 == pytest.approx(large.service_cores)
    assert (large.connections, small.workers >= 1) == (10 * large.workers, True)


def test_writes_need_a_primary_with_sufficient_capacity() -> None:
    run = Run(SAVED)
    large, few = MIXES["shop"], Assumptions(server_cores=8)
    assert need(run, large, 10_000, few).servers == "1"
    assert need(run, large, 300_000, few).servers == "1 and 1 replica"
    assert need(run, large, 1_000_000, few).servers.endswith(" sharded")


def test_a_run_without_a_scenario_reports_it() -> None:
    lines = list(page(Run(RESULTS / "2026-11-21T2051-vm.json"), Assumptions()))
    assert "**reads**: the run has not measured one-stable, table, search." in lines
