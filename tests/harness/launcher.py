"""Starts the command in copies of a process that has already imported it: imports take half of the time of a start.

The imports take a second or two, so only the first pytest process of a run that needs them starts a process for them;
each pytest process has a copy of that as its template.

A copy is otherwise equal to `python -m rowcall.service.cli`: it has its own session, working folder, environment and
output. Settings that change the start of Python itself (LD_PRELOAD, limits of the shell) need a new process.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

from rowcall.service.supervisor.processes.prefork import Template, copies, possible, single_threaded
from tests.harness.waiting import wait_until

ROOT = Path(__file__).parents[2]
NAMESPACE = ROOT / "build" / "namespace"


_COMMAND = (
    *("cli", "command.serve", "supervisor.operators.admin", "supervisor.run", "worker.operator", "worker.worker"),
    # The service imports these when a capability is used.
    *("accounts.delivering", "accounts.steps", "auth.external.sign_in", "auth.passkeys.routes"),
    *("auth.passkeys.verification", "auth.second_factor.routes", "batch.routes", "cache.entry_invalidation"),
    *("codegen.database_types", "codegen.documents", "codegen.reference_page", "console.console"),
    *("events.activity", "events.cross_host.postgres", "http_client.bucket", "http_client.circuit_breakers"),
    *("http_client.client", "identity.key_set", "identity.sign_in_guard", "identity.signed_tokens"),
    *("jobs.routes", "jobs.runner", "limits.redis_permits", "mcp.server", "metrics.sampling", "metrics.segments"),
    *("operations.statistics", "postgrest.anonymous_cache", "postgrest.catalogue.reading", "postgrest.interface"),
    *("protection.ciphers", "queryable.pages", "queryable.queries", "response.compression"),
    *("shared_state.hybrid_cache", "shared_state.redis_cache", "shared_state.redis_link", "uploads.orphaned_files"),
    *("uploads.resumable.protocol", "webhooks.delivering"),
)
"""Modules that services of tests import."""


class Launched:
    """A running command, with the part of the interface of `subprocess.Popen` that tests use."""

    def __init__(self, launcher: Launcher, pid: int) -> None:
        self._launcher = launcher
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._launcher.exit_code(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        try:
            wait_until(lambda: self.poll() is not None, "the command ends", 3600 if timeout is None else timeout)
        except AssertionError:
            raise subprocess.TimeoutExpired("rowcall", timeout or 0) from None
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Launcher:
    """The template process of these tests, which has imported the command."""

    def __init__(self, place: Path, environment: Mapping[str, str], *options: str) -> None:
        """place: of the socket of the process that has imported the command; if there is none, it is started. options:
        of Python."""
        self._importer: subprocess.Popen[bytes] | None = None
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            connection = _connection(place) or self._start_importer(place, environment, *options)
        self._template = Template(connection)
        self.exit_code = self._template.exit_code
        atexit.register(self._end)

    def _start_importer(self, place: Path, environment: Mapping[str, str], *options: str) -> socket.socket:
        place.unlink(missing_ok=True)
        end, self._lifeline = os.pipe()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
            listener.listen()
            self._importer = subprocess.Popen(
                [sys.executable, *options, "-m", "tests.harness.launcher", str(listener.fileno()), str(end)],
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                pass_fds=[listener.fileno(), end],
            )
            os.close(end)
            connection = _connection(place)
        assert connection is not None
        return connection

    def _end(self) -> None:
        self._template.close()
        if self._importer is not None:
            os.close(self._lifeline)
            self._importer.wait()

    def start(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        output: IO[bytes],
        errors: IO[bytes] | None = None,
    ) -> Launched:
        """errors: file for error output, if it is not the output."""
        order = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        descriptors = [output.fileno(), (errors or output).fileno()]
        return Launched(self, self._template.copy(json.dumps(order).encode(), descriptors))


@functools.cache
def launcher(*options: str) -> Launcher | None:
    """Return the launcher of this pytest process for these options of Python, or None where processes cannot be copied
    safely."""
    if not possible():
        return None
    folder = Path(os.environ.get("ROWCALL_TEST_RUN_FOLDER") or tempfile.mkdtemp())
    return Launcher(folder / f"launcher{''.join(options)}.socket", service_environment(), *options)


def service_environment() -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    paths = [str(NAMESPACE)] if NAMESPACE.is_dir() else []
    if inherited.get("PYTHONPATH"):
        paths.append(inherited["PYTHONPATH"])
    return inherited | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", "TZ": "UTC"}


def _connection(place: Path) -> socket.socket | None:
    """Return a connection to a process that listens there, or None."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(place))
    except OSError:
        connection.close()
        return None
    return connection


def _be_importer(listener: socket.socket, lifeline: int) -> NoReturn:
    """Import the command, and serve each connection in a copy of this process, until the pipe `lifeline` ends.

    A copy ends like the command, but without the shutdown of the interpreter, which takes a third of a start and stop.
    With options of Python (`-W error`), the interpreter is shut down, because its final messages are part of the test.
    """
    for module in _COMMAND:
        importlib.import_module(f"rowcall.service.{module}")
    assert single_threaded(), "a thread would be missing in a copy"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while lifeline not in select.select([listener.fileno(), lifeline], [], [])[0]:
        channel = listener.accept()[0]
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            os.close(lifeline)
            _be_template(channel)
        channel.close()
    os._exit(0)


def _be_template(channel: socket.socket) -> NoReturn:
    from rowcall.service import cli

    payload, descriptors = copies(channel)
    order = json.loads(payload)
    _become(order, *descriptors)
    code = cli.main(order["arguments"])
    if sys.warnoptions or not all(thread.daemon for thread in threading.enumerate()[1:]):
        sys.exit(code)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _become(order: Mapping[str, Any], output: int, errors: int) -> None:
    os.setsid()
    os.chdir(order["folder"])
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.path[0] = order["folder"]
    sys.argv = [sys.modules["rowcall.service.cli"].__file__ or "", *order["arguments"]]


if __name__ == "__main__":
    _be_importer(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
