"""The real command, started as a user starts it, on a port of its own.

`Service` has the interface of a client (`get`, `post`, `request`, `raw`) and of an operator (`log`, `pids`, `signal`,
`stop`).
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
import psutil

from tests.harness.launcher import Launched, launcher, service_environment
from tests.harness.postgres import free_port
from tests.harness.raw_http import RawResponse, read_response
from tests.harness.waiting import wait_until

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For plain HTTP: otherwise each client of httpx reads all certificate authorities, which takes 27 ms."""
START_SECONDS = 90.0
STOP_SECONDS = 90.0
ENGINE = {"HttpServer:Engine": os.environ["ROWCALL_TEST_ENGINE"]} if "ROWCALL_TEST_ENGINE" in os.environ else {}
"""The HTTP server of every service that tests start; without the variable the default."""
SILENCING = ("StartupMessage", "Log:ToConsole", "Log:ConsoleMinimumLevel")
"""Settings that may remove "Started in" from the console."""


class Service:
    """A running rowcall with its workers."""

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, str],
        port: int | None = None,
        open_files: int | None = None,
        namespace: Path | None = None,
    ) -> None:
        """namespace: folder with another package `rowcall` than that of this clone."""
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.https = 0
        """Port of the https address, if the test sets one."""
        self.folder = folder
        self._settings = dict(settings)
        self._checked = 0
        """Bytes of the log without an unexpected traceback."""
        self.client = self.new_client()
        folder.mkdir(parents=True, exist_ok=True)
        self._log_path = folder / "service.log"
        with self._log_path.open("wb") as log:
            self.process = _start(self.arguments(), folder, log, open_files, namespace)

    def arguments(self) -> list[str]:
        settings = {"Urls": self.url, **ENGINE, **self._settings}
        return [f"--{key}={value}" for key, value in settings.items()]

    # Interface of a client

    def new_client(self, *, timeout: float = 60, **options: Any) -> httpx.Client:
        """Return a client with its own connections and cookies."""
        return httpx.Client(base_url=self.url, timeout=timeout, trust_env=False, verify=NO_TLS, **options)

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.client.request(method, path, **options)

    def request_once(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request over a new connection, which the system assigns to any worker."""
        with self.new_client() as client:
            return client.request(method, path, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> httpx.Response:
        return self.request("POST", path, **options)

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        """Return a plain TCP connection. With a small receive buffer, a slow reader has an immediate effect."""
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
        """Send bytes unchanged and read a response; None if the service closes the connection without one."""
        with self.connect() as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(data)
            return read_response(connection, bodiless=data.startswith(b"HEAD "))

    # Interface of an operator

    @property
    def log(self) -> str:
        """The log up to the end of the last complete line, because a process may be writing."""
        text = self._log_path.read_text(errors="replace")
        return text[: text.rfind("\n") + 1]

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def pids(self) -> list[int]:
        """Return the process ids of the workers: processes below the supervisor that share its listening port."""
        try:
            below = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return sorted(process.pid for process in below if _is_worker(process))

    def processes(self) -> list[psutil.Process]:
        """Return the supervisor and all processes below it."""
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def connections_to(self, port: int) -> int:
        """Return the number of TCP connections of its processes to a port of this machine, such as that of the
        database."""
        count = 0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                count += sum(
                    1
                    for connection in process.net_connections("tcp")
                    if connection.raddr and connection.raddr.port == port
                )
        return count

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor only."""
        self.process.send_signal(number)

    def wait_for_log(self, text: str, seconds: float = 30.0) -> str:
        """Wait for a log line that contains `text`, and return the first one."""
        return wait_until(
            lambda: next((line for line in self.log.splitlines() if text in line), ""),
            f"the log says {text!r}; it says:\n{self.log[-3000:]}",
            seconds,
        )

    def wait_until_ready(self) -> None:
        wait_until(self._answers, f"rowcall answers on {self.url}", START_SECONDS)
        if not any(key.startswith(SILENCING) for key in self._settings):
            # The supervisor may log messages about the start after the workers serve.
            self.wait_for_log("Started in")

    def _answers(self) -> bool:
        if not self.running:
            raise AssertionError(f"rowcall ended with {self.process.returncode} at start:\n{self.log}")
        try:
            return self.raw(b"GET /readiness-of-the-test-service HTTP/1.1\r\nHost: localhost\r\n\r\n") is not None
        except OSError:
            return False

    def stop(self) -> int:
        """Stop gracefully and return the exit status; processes that remain after the deadline are killed, and the test
        fails."""
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
        """Check that the log has a traceback that ends with this error; `check_log` then checks the rest of the log."""
        assert f"\n{error}".encode() in self._unchecked_log()

    def check_log(self) -> None:
        """Fail if the log has a traceback since the last call, which means an error that the service does not
        handle."""
        new = self._unchecked_log()
        assert b"Traceback (most recent call last)" not in new, f"the service logged a traceback:\n{new.decode()}"

    def _unchecked_log(self) -> bytes:
        """Return the complete lines of the log since the last call."""
        with self._log_path.open("rb") as file:
            file.seek(self._checked)
            new = file.read()
        new = new[: new.rfind(b"\n") + 1]
        self._checked += len(new)
        return new


def _start(
    arguments: list[str], folder: Path, log: IO[bytes], open_files: int | None, namespace: Path | None
) -> subprocess.Popen[bytes] | Launched:
    environment = service_environment()
    if namespace is not None:
        environment["PYTHONPATH"] = str(namespace)
    ready = launcher() if namespace is None else None
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
    """Return the prefix of a command that limits its number of open files."""
    return [] if open_files is None else ["sh", "-c", f'ulimit -n {open_files}; exec "$@"', "sh"]


def _is_worker(process: psutil.Process) -> bool:
    """Return whether the process is a worker. The template process and the `resource_tracker` are not."""
    try:
        return bool(process.cmdline()) and process.name() == "rowcall-worker"
    except psutil.Error:
        return False
