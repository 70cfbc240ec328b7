"""When the current start began, on the clock of `time.monotonic`, and its progress in the terminal.

Loading Python and the modules takes longer than the rest of a small start, and "Started in" has to include it. Progress
is shown only in a terminal to which the log is written, and only if the start takes longer than a second: a short start
needs no animation, and a log file none at all.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rowcall.service import IMPORTED_AT

if TYPE_CHECKING:
    from rich.status import Status

SHOW_AFTER = 1.0
"""Seconds of a start after which its progress is shown."""


_START_TIME = 22
"""Field of /proc/PID/stat, counted from 1: clock ticks since boot (proc_pid_stat(5))."""
_starts = itertools.count()


class Progress:
    """The progress of one start in the terminal, shown if the start takes longer than `SHOW_AFTER` seconds. Use:
    `with Progress(watched=…) as progress:`, then `progress.show("reading …")` for each phase.

    watched: the log is written to a terminal; otherwise nothing is shown.
    """

    def __init__(self, *, watched: bool) -> None:
        self._watched = watched
        self._lock = threading.Lock()
        self._text = ""
        self._began = time.monotonic()
        self._status: Status | None = None
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if self._watched:
            self._timer = threading.Timer(SHOW_AFTER, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._watched = False
            if self._timer is not None:
                self._timer.cancel()
            if self._status is not None:
                self._status.stop()

    def show(self, text: str) -> None:
        """Set the description of the current phase."""
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(text)

    def _show(self) -> None:
        """Show the progress from now on, unless the start has ended. Called by the timer, in a thread."""
        from rich.console import Console

        with self._lock:
            if self._watched:
                # While it is shown, rich prints above it what other code writes to sys.stdout.
                self._status = Console(file=sys.stdout).status(self._text)
                self._status.start()


def begin_start() -> float:
    """Record that a start begins, and return its time, as `time.monotonic`. The first call returns when the process
    started; each later call, for a start after a changed configuration, returns the current time.
    """
    return process_start() if next(_starts) == 0 else time.monotonic()


def process_start() -> float:
    """Return when the process started, as `time.monotonic`. Without Linux's /proc: when the package was imported."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        # The second field is the name of the program in parentheses, and may contain blanks and parentheses.
        ticks = int(stat.rpartition(")")[2].split()[_START_TIME - 3])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return IMPORTED_AT
    return time.monotonic() - age
