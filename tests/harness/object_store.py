"""A real S3-compatible server for a test module: nanio, which checks signatures and supports multipart uploads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.harness.postgres import free_port
from tests.harness.waiting import wait_until

KEY_ID = "the-key-id"
SECRET = "the-secret-of-the-store"


class ObjectStore:
    """Buckets are folders, and objects are files."""

    def __init__(self, folder: Path, *buckets: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        for bucket in buckets:
            (folder / bucket).mkdir(parents=True)
        self.start()

    def start(self) -> None:
        options = ["--data-dir", str(self._folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "nanio", "serve", *options, "--no-access-log", "--log-level", "error"],
            env={**os.environ, "NANIO_ACCESS_KEY": KEY_ID, "NANIO_SECRET_KEY": SECRET},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, "the object store answers", 60)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def object(self, bucket: str, key: str) -> bytes:
        return (self._folder / bucket / key).read_bytes()

    def objects(self, bucket: str) -> list[str]:
        base = self._folder / bucket
        paths = (path.relative_to(base) for path in base.rglob("*") if path.is_file())
        return sorted(str(path) for path in paths if not any(part.startswith(".") for part in path.parts))

    def unfinished(self) -> list[Path]:
        """Return the multipart uploads that are neither complete nor aborted."""
        base = self._folder / ".nanio" / "multipart"
        return list(base.iterdir()) if base.is_dir() else []

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
