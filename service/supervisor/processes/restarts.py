"""Restart back-off: the delay before a worker that has exited is replaced.

A single exit is an accident, and the worker is replaced at once. A worker that exits repeatedly soon after its start
must not keep the machine busy with starting it: each start in such a series waits longer than the one before, up to a
few seconds. The attempts never end: the cause may disappear (memory use of another process, a request that a client
repeats), and the connections of its socket wait meanwhile.
"""

from __future__ import annotations

import signal

from rowcall.service.background import pause
from rowcall.service.log.entry import escape_unprintable

QUICK = 5.0
"""Seconds that a worker must have lived for its exit to count as an accident."""
MANY = 5
"""Number of quick exits in a row after which the log reports a systematic cause."""


class RestartDelay:
    """The restart back-off of one worker number."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def pause_after(self, lived: float) -> float:
        """Record the exit of a worker, and return the seconds to wait before its replacement. lived: its lifetime in
        seconds.
        """
        if lived >= QUICK:
            self._in_a_row = 0
            return 0.0
        self._in_a_row += 1
        return pause(self._in_a_row) if self._in_a_row > 1 else 0.0

    @property
    def look_systematic(self) -> bool:
        """Whether the exits look systematic: True for the one that is the `MANY`th quick exit in a row, and not for
        those that follow.
        """
        return self._in_a_row == MANY


def cause(code: int, last_error: str | None) -> str:
    """Return why a worker has ended, as far as known, for the log. code: its exit code, negative for a signal.
    last_error: the last error that it logged; None: there was none.
    """
    result = (
        escape_unprintable(last_error.strip().splitlines()[0])[:_LONGEST] if last_error and last_error.strip() else None
    )
    parts = (_signal(-code) if code < 0 else None, result and f"its last error: {result}")
    return "; ".join(filter(None, parts)) or "it has logged no error"


_LONGEST = 300


def _signal(number: int) -> str:
    """Return the name of a signal, with the probable sender of a SIGKILL."""
    if number == signal.SIGKILL:
        return "SIGKILL; unless an operator has sent it, the system was out of memory (see dmesg)"
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
