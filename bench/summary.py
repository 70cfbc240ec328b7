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
    "constant": "granian, constant answer",
}
PLANS = ("pgbench", "pgbench-generic")
ABOUT = {
    "minimal": "one row, two columns",
    "types-1": "23 types, 1 row",
    "types-10": "23 types, 10 rows",
    "types-100": "23 types, 100 rows",
    "params-20": "20 parameters",
    "post-10": "POST body, 10 rows",
    "composites-nested-100": "100 rows with arrays of composites, nested",
    "composites-levels-1000": "1,000 rows, composites three levels deep",
    "one": "a row by its key, SQL function without volatility",
    "one-stable": "the same, declared STABLE",
    "statement": "an account with its last lines as array of composites",
    "pay": "a transfer in plpgsql, JSON body",
    "search": "plpgsql with optional parameters",
    "table": "a table's row by its key",
    "insert": "a row into a table, given back",
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.summary", description=__doc__)
    parser.add_argument("result", type=Path)
    result = json.loads(parser.parse_args().result.read_text("utf-8"))
    print("\n".join(table(result["scenarios"])))


if __name__ == "__main__":
    main()
