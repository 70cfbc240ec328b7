"""`python -m bench.summary RESULT.json`: the tables of the README, from a saved run."""

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

SERVICES = {
    "fastapi": "FastAPI + asyncpg",
    "fastify": "Fastify + pg",
    "pgbench": "pgbench -M prepared",
    "constant": "granian, constant response",
    "constant-loop": "own HTTP server, constant response",
}
PLANS = ("pgbench", "pgbench-generic")
ORDINARY = "8"
"""Connections of a service at ordinary load."""
SHARE = "0.5"
"""Of the peak, at which latencies are shown."""
ABOUT = {
    "minimal": "one row, two columns",
    "types-1": "23 types, 1 row",
    "types-10": "23 types, 10 rows",
    "types-100": "23 types, 100 rows",
    "params-20": "20 parameters",
    "post-10": "POST body, 10 rows",
    "composites-nested-100": "100 rows with arrays of composites, nested",
    "composites-levels-1000": "1,000 rows, composites three levels deep",
    "one": "a row by its key, VOLATILE SQL function",
    "one-stable": "the same, STABLE",
    "statement": "an account with its last lines as array of composites",
    "pay": "a transfer in plpgsql, JSON body",
    "search": "plpgsql with optional parameters",
    "table": "a table's row by its key",
    "insert": "an insert into a table that returns the row",
    "file": "a `.sql` file, row by its key",
}


def rates(services: Mapping[str, Any]) -> dict[str, float]:
    """Return requests a second; for pgbench, those of the faster plan mode."""
    rates_by_name = {name: cell["median"]["rate"] for name, cell in services.items() if cell.get("median")}
    plans = [rates_by_name[name] for name in PLANS if name in rates_by_name]
    return {**rates_by_name, **({"pgbench": max(plans)} if plans else {})}


def table(scenarios: Mapping[str, Any]) -> Iterator[str]:
    measured = {name: rates(scenarios[name]["services"]) for name in ABOUT if name in scenarios}
    columns = [name for name in SERVICES if any(name in rates_of_scenario for rates_of_scenario in measured.values())]
    yield "| requests/s | rowcall | " + " | ".join(SERVICES[name] for name in columns) + " |"
    yield "|---|--:|" + "--:|" * len(columns)
    for name, rates_of_scenario in measured.items():
        own = rates_of_scenario["rowcall"]
        others = (
            f"{rates_of_scenario[peer]:,.0f} (×{own / rates_of_scenario[peer]:.2g})"
            if peer in rates_of_scenario
            else "–"
            for peer in columns
        )
        yield f"| {ABOUT[name]} | **{own:,.0f}** | {' | '.join(others)} |"


def ordinary(connections: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of rates with few connections, each with p50 and p99 in milliseconds at half of the rate."""
    measured = {name: connections[name][ORDINARY] for name in ABOUT if ORDINARY in connections.get(name, {})}
    names = {"rowcall": "rowcall", **SERVICES}
    columns = [name for name in names if any(_has_peak(levels, name) for levels in measured.values())]
    if not columns:
        return
    yield (
        f"| requests/s, {ORDINARY} connections (p50, p99 at half) | "
        + " | ".join(names[column] for column in columns)
        + " |"
    )
    yield "|---|" + "--:|" * len(columns)
    for name, levels in measured.items():
        cells = (_level(levels[column]) if _has_peak(levels, column) else "–" for column in columns)
        yield f"| {ABOUT[name]} | {' | '.join(cells)} |"


def _has_peak(levels: Mapping[str, Any], name: str) -> bool:
    return bool(levels.get(name, {}).get("peak"))


def _level(level: Mapping[str, Any]) -> str:
    half = level["shares"].get(SHARE)
    latencies = f" ({half['p50']:.2f}, {half['p99']:.2f})" if half else ""
    return f"{level['peak']['rate']:,.0f}{latencies}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.summary", description=__doc__)
    parser.add_argument("result", type=Path)
    result = json.loads(parser.parse_args().result.read_text("utf-8"))
    print("\n".join(table(result["scenarios"])))
    lines = [*ordinary(result.get("connections", {}))]
    if lines:
        print("\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
