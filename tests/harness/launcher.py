"""Starts the command in copies of a process that has imported it already: imports are half of what a start costs.

A copy differs from `python -m rowcall.service.cli` in nothing else: it has a session, a working folder, an environment
and an output of its own. What changes how Python itself starts (LD_PRELOAD, limits of the shell) needs a new process.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.harness.waiting import wait_until

ROOT = Path(__file__).parents[2]
NAMESPACE = ROOT / "build" / "namespace"


class Launched:
    """A command that runs: of `subprocess.Popen` what tests use."""

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
    """The process that has imported the command, seen from the tests."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.harness.launcher", str(theirs.fileno())],
                cwd=ROOT,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._answers = self._ours.makefile("r")

    def start(
        self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: IO[bytes]
    ) -> Launched:
        asked = {"arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        return Launched(self, self._ask(asked, [output.fileno()]))

    def exit_code(self, pid: int) -> int | None:
        code: int | None = self._ask({"exit_code": pid})
        return code

    def _ask(self, question: object, descriptors: Sequence[int] = ()) -> Any:
        socket.send_fds(self._ours, [json.dumps(question).encode() + b"\n"], list(descriptors))
        return json.loads(self._answers.readline())


@functools.cache
def launcher() -> Launcher | None:
    """That of this process of pytest; None where copies of a process are no safe thing to have."""
    if sys.platform != "linux":
        return None
    return Launcher(service_environment())


def service_environment() -> dict[str, str]:
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    paths = [str(NAMESPACE)] if NAMESPACE.is_dir() else []
    if inherited.get("PYTHONPATH"):
        paths.append(inherited["PYTHONPATH"])
    return inherited | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1", "TZ": "UTC"}


def _serve(channel: socket.socket) -> None:
    """Answers until the tests are over. A copy comes back from here as the command, and ends as that."""
    from rowcall.service import cli
    from rowcall.service.command import serve  # noqa: F401
    from rowcall.service.supervisor import run  # noqa: F401

    assert len(os.listdir("/proc/self/task")) == 1, "a thread would be missing in a copy"
    while True:
        received, descriptors, _, _ = socket.recv_fds(channel, 1_000_000, 1)
        if not received:
            return
        while not received.endswith(b"\n"):
            received += channel.recv(1_000_000)
        question = json.loads(received)
        if "exit_code" in question:
            answer = _exit_code(question["exit_code"])
        else:
            answer = os.fork()
            if not answer:
                channel.close()
                _become(question, descriptors[0])
                sys.exit(cli.main(question["arguments"]))
            os.close(descriptors[0])
        channel.sendall(json.dumps(answer).encode() + b"\n")


def _exit_code(pid: int) -> int | None:
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def _become(question: Mapping[str, Any], output: int) -> None:
    os.setsid()
    os.chdir(question["folder"])
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.environ.clear()
    os.environ.update(question["environment"])
    time.tzset()
    sys.path[0] = question["folder"]
    sys.argv = [sys.modules["rowcall.service.cli"].__file__ or "", *question["arguments"]]


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
