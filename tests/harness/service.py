"""The real command, started as a user starts it, on a port of its own.

`Service` is what a client sees (`get`, `post`, `request`, `raw`) and what an operator sees (`log`, `pids`,
`signal`, `stop`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import httpx
import psutil  # type: ignore[import-untyped]

from tests.harness.launcher import Launched, launcher, service_environment
from tests.harness.postgres import free_port
from tests.harness.raw_http import RawResponse, read_response
from tests.harness.waiting import wait_until

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain HTTP: without it each client of httpx reads all the authorities of the world, which takes 27 ms."""
START_SECONDS = 90.0
STOP_SECONDS = 90.0
SILENCING = ("StartupMessage", "Log:ToConsole", "Log:ConsoleMinimumLevel")
"""Settings that may keep "Started in" from the console."""


class Service:
    """A running rowcall with its workers."""

    def __init__(
        self, folder: Path, settings: Mapping[str, str], port: int | None = None, open_files: int | None = None
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.https = 0
        """Port of the https address, where a test gives it one."""
        self.folder = folder
        self._settings = dict(settings)
        self._checked = 0
        self.client = self.new_client()
        folder.mkdir(parents=True, exist_ok=True)
        self._log_path = folder / "service.log"
        with self._log_path.open("wb") as log:
            self.process = _start(self.arguments(), folder, log, open_files)

    def arguments(self) -> list[str]:
        settings = {"Urls": self.url, **self._settings}
        return [f"--{key}={value}" for key, value in settings.items()]

    # What a client sees

    def new_client(self, *, timeout: float = 60, **options: Any) -> httpx.Client:
        """With connections and cookies of its own."""
        return httpx.Client(base_url=self.url, timeout=timeout, trust_env=False, verify=NO_TLS, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.client.request(method, path, **options)

    def request_once(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Over a connection of its own, which the system gives to any worker."""
        with self.new_client() as client:
            return client.request(method, path, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        """A plain TCP connection. A small receive buffer makes a client that reads slowly felt at once."""
        connection = socket.socket()
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(30)
        try:
            connection.connect(("127.0.0.1", self.port))
        except OSError:
            connection.close()
            raise
        return connection

    def raw(self, data: bytes) -> RawResponse | None:
        """Send bytes as they are and read one response; None when the service just closes the connection."""
        with self.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            return read_response(connection, bodiless=data.startswith(b"HEAD "))

    # What an operator sees

    @property
    def log(self) -> str:
        """Up to the end of the last line that is complete: somebody may be writing."""
        text = self._log_path.read_text(errors="replace")
        return text[: text.rfind("\n") + 1]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def pids(self) -> list[int]:
        """Process ids of the workers: those below the supervisor that share its listening port."""
        try:
            below = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return sorted(process.pid for process in below if _is_worker(process))

    def processes(self) -> list[psutil.Process]:
        """The supervisor and all below it."""
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def connections_to(self, port: int) -> int:
        """TCP connections that its processes hold to a port of this machine, such as the database's."""
        found = 0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                found += sum(1 for one in process.net_connections("tcp") if one.raddr and one.raddr.port == port)
        return found

    def signal(self, number: signal.Signals) -> None:
        """To the supervisor alone."""
        self.process.send_signal(number)

    def wait_for_log(self, text: str, seconds: float = 15.0) -> str:
        """The first log line that contains `text`."""
        return wait_until(
            lambda: next((line for line in self.log.splitlines() if text in line), ""),
            f"the log says {text!r}; it says:\n{self.log[-3000:]}",
            seconds,
        )

    def wait_until_ready(self) -> None:
        wait_until(self._answers, f"rowcall answers on {self.url}", START_SECONDS)
        if not any(key.startswith(SILENCING) for key in self._settings):
            # What the supervisor has to say about the start may be written after the workers serve.
            self.wait_for_log("Started in")

    def _answers(self) -> bool:
        if not self.running:
            raise AssertionError(f"rowcall ended with {self.process.returncode} at start:\n{self.log}")
        try:
            return self.raw(b"GET /readiness-of-the-test-service HTTP/1.1\r\nHost: localhost\r\n\r\n") is not None
        except OSError:
            return False

    def stop(self) -> int:
        """End it gracefully and give the exit status; what is left after the deadline is killed and fails the test."""
        self.client.close()
        if self.running:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"rowcall did not stop within {STOP_SECONDS:g} s:\n{self.log[-3000:]}") from None
        finally:
            self._kill_group()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def expect_traceback(self, error: str) -> None:
        """The log has tracebacks, and they end like this; `check_log` looks at what comes behind them."""
        assert f"\n{error}" in self.log[self._checked :]
        self._checked = len(self.log)

    def check_log(self) -> None:
        """Fail when the log got a traceback since the last look: the service met something it had not thought of."""
        fresh = self.log[self._checked :]
        self._checked += len(fresh)
        assert "Traceback (most recent call last)" not in fresh, f"the service logged a traceback:\n{fresh}"


def _start(
    arguments: list[str], folder: Path, log: IO[bytes], open_files: int | None
) -> subprocess.Popen[bytes] | Launched:
    environment = service_environment()
    ready = launcher()
    if ready is not None and open_files is None and "LD_PRELOAD" not in environment:
        return ready.start(arguments, folder, environment, log)
    return subprocess.Popen(
        [*_limited(open_files), sys.executable, "-m", "rowcall.service.cli", *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def _limited(open_files: int | None) -> list[str]:
    """What to write in front of a command that may have only so many."""
    return [] if open_files is None else ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh"]


def _is_worker(process: psutil.Process) -> bool:
    """Beside the workers there are the template they are copied from, and a `resource_tracker`: these serve nobody."""
    try:
        return bool(process.cmdline()) and process.name() == "rowcall-worker"
    except psutil.Error:
        return False
