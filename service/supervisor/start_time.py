"""When this process started, on the clock of `time.monotonic`.

Loading Python and the modules takes longer than the rest of a small start, and "Started in" has to include it.
"""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

from rowcall.service import IMPORTED_AT

_START_TIME = 22
"""Field of /proc/PID/stat, counted from 1: clock ticks since boot (proc_pid_stat(5))."""
_starts = itertools.count()


def begin_start() -> float:
    """Return when the current start began: the first one with the process, those after a changed configuration now."""
    return process_start() if next(_starts) == 0 else time.monotonic()


def process_start() -> float:
    """Return when the process started. Without Linux's /proc: when the package was imported."""
    try:
        stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
        # The second field is the name of the program in parentheses, and may contain blanks and parentheses.
        ticks = int(stat.rpartition(")")[2].split()[_START_TIME - 3])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return IMPORTED_AT
    return time.monotonic() - age
