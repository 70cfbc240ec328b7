"""`python -m bench.many_cached_responses`: 100,000 responses of 1 kB, requested at random with equal probability,
through a cache with a memory limit: hit rate, CPU time of the worker for a request, memory.

`--megabytes` is `CacheOptions:MemoryCacheMaximumMegabytes`. If it is too small for all responses, the oldest are
evicted, and the hit rate is the share that fits. Prints a line of JSON for each size and phase; `--output FILE`
appends them to a file.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from bench.load import CONNECTIONS, Target, generate, raw_request
from bench.one_worker import SMALL, OneWorker
from bench.postgres import Server, temporary_server
from bench.services import free_port

SQL = (
    SMALL
    + """
create sequence runs;
create function cached(_id int) returns text language sql volatile as
    $$ select lpad(nextval('runs') || ' ' || _id, 1024, '.') $$;
comment on function cached(int) is e'HTTP GET\\nallow_anonymous\\ncached\\ncache_expires 1 hour';
create function uncached(_id int) returns text language sql volatile as
    $$ select lpad(nextval('runs') || ' ' || _id, 1024, '.') $$;
comment on function uncached(int) is e'HTTP GET\\nallow_anonymous';
"""
)
KEY = "@@@@@@"
"""Placeholder that the generator replaces by one of 100,000 numbers."""


class CachingService:
    """A service with one worker. megabytes: the maximum size of its cache."""

    def __init__(self, server: Server, megabytes: int) -> None:
        self._server = server
        self._megabytes = megabytes
        self._port = free_port()
        self._service = OneWorker(
            server, self._port, "CacheOptions:Enabled=true", f"CacheOptions:MemoryCacheMaximumMegabytes={megabytes}"
        )

    def measure(self, phase: str, path: str, seconds: float) -> dict[str, Any]:
        request = raw_request("GET", f"/api/{path}?id={KEY}", "bench", b"")
        runs, cpu = self._runs(), self._cpu_seconds()
        tally = generate(Target("127.0.0.1", self._port, request, b""), CONNECTIONS, seconds)
        if tally.wrong or tally.lost:
            raise SystemExit(f"{tally.wrong} wrong, {tally.lost} lost")
        runs, cpu = self._runs() - runs, self._cpu_seconds() - cpu
        cache, worker = self._cache_size(), self._service.worker.memory_full_info().uss
        return {
            "megabytes": self._megabytes,
            "phase": phase,
            "requests": tally.answered,
            "hit rate": round(1 - runs / tally.answered, 3),
            "worker, us per request": round(cpu * 1e6 / tally.answered, 1),
            "cache, MB": round(cache / 2**20, 1),
            "worker without the cache, MB": round((worker - cache) / 2**20, 1),
            "load of the machine": round(os.getloadavg()[0]),
        }

    def _runs(self) -> int:
        return int(self._server.psql("-c", "select case when is_called then last_value else 0 end from runs"))

    def _cpu_seconds(self) -> float:
        times = self._service.worker.cpu_times()
        return float(times.user + times.system)

    def _cache_size(self) -> int:
        """Return the bytes of shared memory that the cache uses."""
        maps = self._service.worker.memory_maps(grouped=False)
        files = {Path(memory_map.path) for memory_map in maps if memory_map.path.endswith("answers/memory")}
        return sum(file.stat().st_blocks * 512 for file in files)

    def stop(self) -> None:
        self._service.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, nargs="+", default=[256, 64])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    with temporary_server("auto") as server:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SQL)
        for megabytes in arguments.megabytes:
            service = CachingService(server, megabytes)
            phases = (("without a cache", "uncached"), ("cold cache", "cached"), ("warm cache", "cached"))
            for phase, path in phases:
                line = json.dumps(service.measure(phase, path, arguments.seconds))
                print(line, flush=True)
                if arguments.output:
                    with arguments.output.open("a") as file:
                        file.write(line + "\n")
            service.stop()


if __name__ == "__main__":
    main()
