"""Profiles of running workers, made without stopping them: with py-spy if it is allowed, else by the workers
themselves.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rowcall.core.errors.problems import Problem
from rowcall.core.operations.metrics import ProfilingOptions

log = logging.getLogger("rowcall")

SECONDS = 10.0
"""Duration of a profile if none is requested."""
LONGEST = 120.0
"""Longest duration of a profile that can be requested, in seconds."""
_GRACE = 20.0
"""Additional seconds that making a profile may take."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile in a file, as collapsed stacks. worker: its number. by: the tool that made it, `py-spy` or `itself` for
    the worker. file: its path.
    """

    worker: int
    pid: int
    by: str
    file: str


@dataclass(frozen=True, slots=True)
class ProfileTarget:
    """A worker to profile."""

    pid: int
    profile_itself: Callable[[float], Awaitable[str | None]]
    """Asks the worker to profile itself for a number of seconds. Returns the profile, or None if it does not reply."""


class Profiler:
    """Makes profiles of the workers, of all requested ones at the same time. While one request for profiles runs,
    others are refused."""

    def __init__(self, options: ProfilingOptions, workers: Callable[[], Mapping[int, ProfileTarget]]) -> None:
        """workers: the running ones, by number."""
        self._options = options
        self._workers = workers
        self._busy = False

    async def profile(self, seconds: float = SECONDS, only: int | None = None) -> Sequence[Profile]:
        """Profile all workers, or with `only` the one with this number. seconds: duration. Return the profiles; workers
        that have returned none are left out. Raises `Problem`: 404 for a worker that does not exist, 409 while another
        profile is being made, 500 if a file cannot be written.
        """
        workers = self._workers()
        if only is not None:
            if only not in workers:
                raise Problem(404, f"there is no worker {only}; there are {', '.join(map(str, workers)) or 'none'}")
            workers = {only: workers[only]}
        if self._busy:
            raise Problem(409, "a profile is being made already; ask again when it is done")
        self._busy = True
        try:
            folder = self._folder()
            log.info("profiling %d workers for %g s, into %s", len(workers), seconds, folder)
            pending = [self._of(number, worker, seconds, folder) for number, worker in workers.items()]
            values = [item for item in await asyncio.gather(*pending) if item is not None]
        except OSError as error:
            raise Problem(500, f"the profile cannot be written: {error.strerror or error}") from None
        finally:
            self._busy = False
        for item in values:
            log.info("the profile of worker %d (pid %d, %s) is %s", item.worker, item.pid, item.by, item.file)
        return values

    async def profile_on_signal(self, only: int | None = None) -> None:
        """Profile all workers, or with `only` the one with this number, after a signal. Errors are logged."""
        try:
            await self.profile(only=only)
        except Problem as problem:
            log.warning("SIGUSR1: %s", problem.detail)

    def _folder(self) -> Path:
        """Return the folder of profiles, which is created if it is missing; without a configured one, a new private
        one. Raises `OSError`.
        """
        if self._options.folder is None:
            # Readable for the owner only, as it contains names of routines.
            return Path(tempfile.mkdtemp(prefix="rowcall-profile-"))
        folder = Path(self._options.folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    async def _of(self, number: int, worker: ProfileTarget, seconds: float, folder: Path) -> Profile | None:
        """Make the profile of one worker in a file of the folder, and return it; None if the worker returned none.
        number: of the worker. seconds: duration. Raises `OSError`.
        """
        file = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-worker{number}-{worker.pid}.collapsed"
        py_spy = find_py_spy() if self._options.py_spy else None
        if py_spy is not None and await asyncio.to_thread(_run_py_spy, py_spy, worker.pid, seconds, file):
            return Profile(number, worker.pid, "py-spy", str(file))
        text = await worker.profile_itself(seconds)
        if text is None:
            log.warning("worker %d has returned no profile: it has ended or is too busy", number)
            return None
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8")
        return Profile(number, worker.pid, "itself", str(file))


def find_py_spy() -> str | None:
    """Return the path of py-spy, found on the path or beside the interpreter, as in a virtual environment that is not
    activated; None: it is not installed.
    """
    return shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))


def _run_py_spy(py_spy: str, pid: int, seconds: float, file: Path) -> bool:
    """Profile the process `pid` with py-spy for this number of seconds, rounded and at least 1, into a file that only
    its owner can read. Returns False if it failed, which is logged. py-spy samples without pausing the process, so now
    and then a stack is missing.

    py_spy: path of the program.
    """
    arguments = ("record", "--pid", str(pid), "--duration", str(max(1, round(seconds))), "--nonblocking", "--idle")
    try:
        completed = subprocess.run(  # noqa: S603 (a program of the operator's, with numbers and a path of ours)
            [py_spy, *arguments, "--format", "raw", "--output", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=seconds + _GRACE,
            check=False,
        )
    except (subprocess.TimeoutExpired, OSError) as error:
        log.info("py-spy has not profiled pid %d: %s", pid, error)
        return False
    if completed.returncode != 0 or not file.is_file():
        reason = " ".join(completed.stderr.decode(errors="replace").split())[:300]
        log.info("py-spy cannot profile pid %d, so the worker profiles itself: %s", pid, reason)
        return False
    file.chmod(0o600)
    return True
