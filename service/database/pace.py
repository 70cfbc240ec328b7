"""Which lane a routine is fast enough for, decided by measurement (reference 08, rule 2).

One slow call in a hundred makes a shared connection up to 19 times slower for everybody on it, so a routine starts
alone, is promoted when it has shown that it is fast, and is demoted when more than one call in twenty is not.
"""

from __future__ import annotations

import enum


class Lane(enum.Enum):
    EXCLUSIVE = "exclusive"
    SHARED = "shared"
    GENERIC = "generic"


FIRST_LOOK = 8
"""Calls after which a new routine is judged for the first time."""
WINDOW = 64
"""Calls in each later judgement."""
ONE_IN = 20
"""The share of slow calls that is too many: p95 at the threshold."""


class Pace:
    """Counts slow calls of one routine in windows.

    threshold: seconds of server time from which a call is slow.
    """

    __slots__ = ("_calls", "_fast_windows", "_slow", "_wait", "fast", "threshold")

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.fast = False
        self._calls = 0
        self._slow = 0
        self._wait = 1
        self._fast_windows = 0

    def record(self, seconds: float) -> bool:
        """Notes one call. True when `fast` changed."""
        self._calls += 1
        if seconds > self.threshold:
            self._slow += 1
        if self.fast:
            return self._judge_fast()
        return self._calls >= (FIRST_LOOK if self._wait == 1 else WINDOW) and self._judge_slow()

    def _judge_fast(self) -> bool:
        # Judged at once and not at the end of the window: every further slow call holds up others.
        if self._slow > max(1, WINDOW // ONE_IN):
            self.demote()
            return True
        if self._calls >= WINDOW:
            self._start_window()
        return False

    def _judge_slow(self) -> bool:
        good = self._slow * ONE_IN < self._calls
        self._fast_windows = self._fast_windows + 1 if good else 0
        self._start_window()
        if self._fast_windows < self._wait:
            return False
        self.fast = True
        self._fast_windows = 0
        return True

    def demote(self) -> None:
        """Back to the exclusive lane; each time it takes twice as many good windows to return, up to 64."""
        self.fast = False
        self._wait = min(64, self._wait * 2)
        self._fast_windows = 0
        self._start_window()

    def _start_window(self) -> None:
        self._calls = 0
        self._slow = 0
