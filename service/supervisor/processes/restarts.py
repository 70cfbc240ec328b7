"""How long to wait before a worker that has died is replaced.

One death is an accident, and its worker is replaced at once. A worker that dies again and again as soon as it runs
must not keep the machine busy with starting it: each start in such a row waits longer than the one before, up to a few
seconds. It never ends: what kills workers may go away (memory of a neighbour, a request that someone repeats), and the
connections of its socket wait meanwhile.
"""

from __future__ import annotations

import signal

from rowcall.service.background import pause
from rowcall.service.log.entry import one_line

QUICK = 5.0
"""Seconds that a worker has to live for its death to count as an accident."""
MANY = 5
"""Quick deaths in a row after which the log says that it looks like a rule."""


class RestartDelay:
    """Of the workers in one place."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def pause_after(self, lived: float) -> float:
        """Seconds to wait after the death of a worker that has lived for so long."""
        if lived >= QUICK:
            self._in_a_row = 0
            return 0.0
        self._in_a_row += 1
        return pause(self._in_a_row) if self._in_a_row > 1 else 0.0

    @property
    def look_systematic(self) -> bool:
        """True for the death that makes it so, and not for those that follow."""
        return self._in_a_row == MANY


def cause(code: int, last_error: str | None) -> str:
    """Why a worker has ended, as far as that can be told. code: negative for a signal. last_error: what it has logged
    as its last."""
    result = one_line(last_error.strip().splitlines()[0])[:_LONGEST] if last_error and last_error.strip() else None
    parts = (_signal(-code) if code < 0 else None, result and f"its last error: {result}")
    return "; ".join(filter(None, parts)) or "it has logged no error"


_LONGEST = 300


def _signal(number: int) -> str:
    if number == signal.SIGKILL:
        return "SIGKILL; when nobody has sent it, the system was out of memory (dmesg tells)"
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
