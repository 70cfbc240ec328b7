"""`python -m bench.observing`: cost of metrics and traces. One worker each with neither, with metrics, and with traces
of
which none or a twentieth is sampled. They take turns under the same load, many times, so that other work of the machine
affects all alike.

The result is the worker's own processor time for a request, which a busy machine changes less than the rate: the median
over all turns, and its ratio to that of the service with neither. The target of issue 22 is 0.98.
"""

import argparse
import statistics

from bench.load import Target, generate, raw_request
from bench.one_worker import SMALL, OneWorker
from bench.postgres import throw_away
from bench.services import free_port

TRACING = ("Tracing:Enabled=true", "Tracing:Endpoint=http://127.0.0.1:9")
KINDS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "metrics": ("Metrics:Enabled=true", "Admin:Url=http://127.0.0.1:0"),
    "traces, none sampled": (*TRACING, "Tracing:SampleRatio=0"),
    "traces, 5 % sampled": (*TRACING, "Tracing:SampleRatio=0.05"),
}


def cpu_of(service: OneWorker) -> float:
    """Return the processor time in seconds, including system time."""
    times = service.worker.cpu_times()
    return float(times.user + times.system)


def turn(service: OneWorker, port: int, connections: int, seconds: float) -> float:
    """Return the processor time of the worker for a request in microseconds."""
    request = raw_request("GET", "/api/small", f"127.0.0.1:{port}", b"")
    before = cpu_of(service)
    tally = generate(Target("127.0.0.1", port, request, b"1"), connections, seconds)
    if tally.wrong or tally.lost:
        raise SystemExit(f"{tally.wrong} wrong answers, {tally.lost} lost")
    return (cpu_of(service) - before) / tally.answered * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--connections", type=int, default=16)
    arguments = parser.parse_args()
    with throw_away("auto") as server:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SMALL)
        ports = {kind: free_port() for kind in KINDS}
        services = {kind: OneWorker(server, ports[kind], *settings) for kind, settings in KINDS.items()}
        costs_by_kind: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for number in range(arguments.turns + 1):
            for kind, service in services.items():
                cost = turn(service, ports[kind], arguments.connections, arguments.seconds)
                if number:  # The first turn is a warm-up.
                    costs_by_kind[kind].append(cost)
        for service in services.values():
            service.stop()
    plain = statistics.median(costs_by_kind["nothing"])
    for kind, costs in costs_by_kind.items():
        median = statistics.median(costs)
        ratio = statistics.median(bare / cost for bare, cost in zip(costs_by_kind["nothing"], costs, strict=True))
        print(f"{kind:22} {median:7.2f} µs a request   {median - plain:+6.2f} µs   {ratio:.3f} of nothing's requests")


if __name__ == "__main__":
    main()
