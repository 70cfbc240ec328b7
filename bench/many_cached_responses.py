"""`python -m bench.many_cached_responses`: 100,000 responses of 1 kB, requested at random with equal probability, through a
cache with a memory limit: hit rate, cost of hits and misses for the worker, memory.

`--megabytes` is `CacheOptions:MemoryCacheMaximumMegabytes`. If it is too small for all responses, the oldest are
evicted,
and the hit rate is the share for which there is room. Prints a line of JSON for each size; `--keep FILE` appends them
to
a file.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from bench.load import CONNECTIONS, Target, generate, raw_request
from bench.one_worker import SMALL, OneWorker
from bench.postgres import Server, throw_away
from bench.services import free_port

SQL = (
    SMALL
    + """
create sequence runs;
create function answer(_id int) returns text language sql volatile as
    $$ select lpad(nextval('runs') || ' ' || _id, 1024, '.') $$;
comment on function answer(int) is e'HTTP GET\\nallow_anonymous\\ncached\\ncache_expires 1 hour';
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

    def ask(self, what: str, path: str, seconds: float) -> dict[str, Any]:
        request = raw_request("GET", f"/api/{path}?id={KEY}", "bench", b"")
        runs, spent = self._runs(), self._spent()
        tally = generate(Target("127.0.0.1", self._port, request, b""), CONNECTIONS, seconds)
        if tally.wrong or tally.lost:
            raise SystemExit(f"{tally.wrong} wrong answers, {tally.lost} lost")
        runs, spent = self._runs() - runs, self._spent() - spent
        store, worker = self._store(), self._service.worker.memory_full_info().uss
        return {
            "megabytes": self._megabytes,
            "what": what,
            "requests": tally.answered,
            "given again": round(1 - runs / tally.answered, 3),
            "worker, us a request": round(spent * 1e6 / tally.answered, 1),
            "store, MB": round(store / 2**20, 1),
            "worker without the store, MB": round((worker - store) / 2**20, 1),
            "load of the machine": round(os.getloadavg()[0]),
        }

    def _runs(self) -> int:
        return int(self._server.psql("-c", "select case when is_called then last_value else 0 end from runs"))

    def _spent(self) -> float:
        times = self._service.worker.cpu_times()
        return float(times.user + times.system)

    def _store(self) -> int:
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
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    with throw_away("auto") as server:
        server.psql("-c", "create database bench", database="postgres")
        server.psql(stdin=SQL)
        for megabytes in arguments.megabytes:
            measured = CachingService(server, megabytes)
            phases = (("without a cache", "uncached"), ("while it fills", "answer"), ("when it has", "answer"))
            for phase, path in phases:
                line = json.dumps(measured.ask(phase, path, arguments.seconds))
                print(line, flush=True)
                if arguments.keep:
                    with arguments.keep.open("a") as file:
                        file.write(line + "\n")
            measured.stop()


if __name__ == "__main__":
    main()
