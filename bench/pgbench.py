"""The limit of the database: pgbench -M prepared with the SQL and the parameters of the scenario.

It runs twice: with the plans that PostgreSQL chooses, and with generic plans, because planning can cost more than the
call, and a service may choose either. The faster result is the limit.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path
from types import MappingProxyType

from bench.load import Load, children_cpu
from bench.postgres import Server, library_path
from bench.scenarios import KEYS, Scenario

CLIENTS = 8
THREADS = min(2, os.cpu_count() or 1)
PLANS = MappingProxyType({"pgbench": "auto", "pgbench-generic": "force_generic_plan"})
SAMPLED = 0.05
CONNECTED_A_SECOND = 100


def run(
    server: Server,
    scenario: Scenario,
    plan_cache_mode: str,
    seconds: float,
    rate: float = 0.0,
    clients: int = CLIENTS,
) -> Load:
    """Run pgbench. rate: calls per second at random moments, 0 for the maximum; a latency runs from its moment."""
    with tempfile.TemporaryDirectory(prefix="rowcall-bench-pgbench-") as folder:
        script = Path(folder, "call.sql")
        keys = "".join(f"\\set {key} random({KEYS[0]}, {KEYS[1]})\n" for key in scenario.keys)
        script.write_text(f"{keys}{scenario.sql};\n", "utf-8")
        command = [str(server.programs / "pgbench"), "-n", "-M", "prepared", "-c", str(clients)]
        # The time runs from before the clients connect, each to a new process; the rate does not count that.
        duration = max(1, round(seconds)) + clients // CONNECTED_A_SECOND
        command += ["-j", str(min(THREADS, clients)), "-T", str(duration), "-f", str(script)]
        command += ["--log", f"--sampling-rate={1.0 if rate else SAMPLED}", f"--log-prefix={folder}/log"]
        command += [f"--rate={rate:g}"] if rate else []
        command += [part for pair in scenario.variables.items() for part in ("-D", "=".join(pair))]
        environment = os.environ | library_path(server.programs) | server.environment()
        environment["PGOPTIONS"] = f"-c plan_cache_mode={plan_cache_mode}"
        before = children_cpu()
        done = subprocess.run(command, env=environment, check=False, text=True, capture_output=True)
        cpu = children_cpu() - before
        latencies = sampled_latencies(Path(folder))
    if done.returncode:
        raise RuntimeError(f"pgbench: {done.stderr.strip()}")
    return read_report(done.stdout, latencies, cpu)


def read_report(report: str, latencies: list[float], cpu: float) -> Load:
    requests = number(report, r"number of transactions actually processed: (\d+)")
    rate = number(report, r"tps = ([\d.]+)")
    failed = number(report, r"number of failed transactions: (\d+)") if "failed transactions" in report else 0.0
    middle, late = (latencies[int(len(latencies) * share)] if latencies else 0.0 for share in (0.5, 0.99))
    detail = f"{failed:.0f} failed" if failed else ""
    return Load(int(requests), requests / rate if rate else 0.0, middle, late, int(failed), detail, cpu)


def number(report: str, pattern: str) -> float:
    match = re.search(pattern, report)
    if match is None:
        raise RuntimeError(f"unexpected output of pgbench:\n{report}")
    return float(match[1])


def sampled_latencies(folder: Path) -> list[float]:
    """Return the latencies in milliseconds, in order. They are the third column of pgbench's transaction log, in
    microseconds."""
    lines = (line for log in folder.glob("log.*") for line in log.read_text("utf-8").splitlines())
    return sorted(int(line.split()[2]) / 1000 for line in lines)
