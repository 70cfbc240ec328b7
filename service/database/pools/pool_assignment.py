"""Assignment of a routine to pools by measurement: whether it is fast enough for a pipelined pool (driver-2).

One slow call in a hundred makes a pipelined connection up to 19 times slower for all others on it. So a routine starts
in the dedicated pool, is promoted when it has proved to be fast, and is demoted when it proves not to be.
"""

from __future__ import annotations

import math
from pathlib import Path

FIRST_LOOK = 8
"""Calls after which a new routine is evaluated for the first time."""
WINDOW = 64
"""Calls in each later evaluation."""
ONE_IN = 20
"""One very slow call in this many is too many on a pipelined connection."""
VERY_SLOW = 4
"""Multiple of the threshold. On busy processors the clock runs on while a backend waits for its turn, so a single slow
call says little about the routine; half of them slow, or some very slow, do.
"""


REMAINING_SHARE = 15 / 16
"""Share of the sums of durations that remains after each window, so that they describe some 1,000 recent calls."""
PRIOR_CALLS = 256
"""Calls of an eighth of the threshold that a routine is assumed to have made, so that one late clock reading among few
calls does not classify the routine as slow.
"""
FORGIVEN = 64
"""Windows in a pipelined pool after which half of a demotion is forgiven. Once in some thousand calls the clock is late
for any routine: without this, each time would lengthen the way back further.
"""


MOST_CONTENTION = 8.0
"""Largest factor: however busy the processors are, a wait for a lock must remain distinguishable from contention."""
CROWDED = 1.2
"""Factor from which processors are scarce."""
_SCHEDULED = Path("/proc/thread-self/schedstat")
"""Nanoseconds that this thread has run, and waited for a processor (Linux, proc_pid_schedstat(5))."""


class Contention:
    """Estimates by what factor durations are too long because this thread waits for a processor.

    The measured time of a call includes the wait until its result is read; if the server is on the same machine, its
    backends wait for processors too. If this counted as slowness, calls would move to the dedicated pool, which takes
    twice the processor time for each, just when processors are scarce.
    """

    __slots__ = ("_ran", "_waited", "factor")

    def __init__(self) -> None:
        self.factor = 1.0
        self._ran = self._waited = 0

    def update(self) -> None:
        """Read the counters of the thread and update the factor. Must be called regularly, from the thread that is
        measured.
        """
        try:
            ran, waited = map(int, _SCHEDULED.read_text().split()[:2])
        except (OSError, ValueError):
            return
        self.note(ran, waited)

    @property
    def crowded(self) -> bool:
        """Whether processors are scarce: processor time then matters more than waiting behind a brief call."""
        return self.factor > CROWDED

    def note(self, ran: int, waited: int) -> None:
        """Update the factor. ran, waited: nanoseconds that the thread has run, and waited for a processor, since it
        began. If the thread has run for less than 1 ms since the last update, it is too idle for a measurement, and the
        factor moves towards 1."""
        newly, late = ran - self._ran, waited - self._waited
        self._ran, self._waited = ran, waited
        now = 1.0 + late / newly if newly > 1_000_000 else 1.0
        self.factor = (self.factor + min(MOST_CONTENTION, max(1.0, now))) / 2


class PoolAssignment:
    """Decides from measured durations whether the calls of one routine may share connections: `fast`. It counts slow
    calls in windows, and estimates how long a call waits behind a running one.

    The expected waiting time is E[S²] / 2E[S] with the durations S (the mean residual time of renewal theory). It grows
    with the square of a duration: if 1 % of the calls take 300 ms, the others wait 100 ms, although the share of slow
    calls is small.

    threshold: seconds of server time from which a call is slow.
    """

    __slots__ = (
        "_calls",
        "_good_windows",
        "_needed",
        "_shortest",
        "_slow",
        "_squares",
        "_total",
        "_very_slow",
        "_windows_since_promotion",
        "fast",
        "threshold",
    )

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.fast = False
        self._good_windows = 0
        self._needed = 1
        self._windows_since_promotion = 0
        self._calls = self._slow = self._very_slow = 0
        self._shortest = math.inf
        self._total = self._squares = 0.0

    @property
    def expected_wait(self) -> float:
        """Seconds that a call is expected to wait behind a call of this routine that is running."""
        return self._squares / (2 * (self._total + PRIOR_CALLS * self.threshold / 8))

    def record(self, seconds: float, contention: float = 1.0) -> bool:
        """Record one call and its duration in seconds. Return True if `fast` changed.

        contention: factor, 1 or more, by which busy processors lengthen durations (`Contention.factor`, or active
        backends for each processor). The duration is divided by it. This is right for calls that compute, but not for
        calls that wait; so a promotion also requires that the shortest call of the window is fast without the division.
        """
        self._shortest = min(self._shortest, seconds)
        seconds /= contention
        calls = self._calls = self._calls + 1
        if self.fast or self._needed > 1:
            # Not during the first calls of all: these read the catalogue and fill caches of the session.
            self._total += seconds
            self._squares += seconds * seconds
        if seconds <= self.threshold and self.fast and calls < WINDOW:
            return False  # nearly every call of a busy service
        if seconds > self.threshold:
            self._slow += 1
            self._very_slow += seconds > VERY_SLOW * self.threshold
        return self._evaluate_pipelined() if self.fast else self._evaluate_dedicated()

    def _evaluate_pipelined(self) -> bool:
        """Evaluate a routine in a pipelined pool. Return whether it was demoted."""
        # Evaluated at once and not at the end of the window: every further slow call delays others.
        if self._very_slow * ONE_IN > WINDOW or self._slow * 2 > WINDOW or self.expected_wait > self.threshold:
            self.demote()
            return True
        if self._calls >= WINDOW:
            self._start_window()
            self._windows_since_promotion += 1
            if self._windows_since_promotion >= FORGIVEN:
                self._windows_since_promotion = 0
                self._needed = max(1, self._needed // 2)
        return False

    def _evaluate_dedicated(self) -> bool:
        """Evaluate a routine in the dedicated pool at the end of a window. Return whether it was promoted."""
        if self._calls < (FIRST_LOOK if self._needed == 1 else WINDOW):
            return False
        good = self._slow * 2 < self._calls and self._shortest <= self.threshold
        good = good and self.expected_wait <= self.threshold
        self._good_windows = self._good_windows + 1 if good else 0
        self._start_window()
        if self._good_windows < self._needed:
            return False
        self.fast = True
        self._good_windows = 0
        return True

    def demote(self) -> None:
        """Return the routine to the dedicated pool. Each demotion doubles the number of good windows (evaluations that
        find few slow calls) needed for a promotion, up to 64; each `FORGIVEN` windows in a pipelined pool halve it
        again.
        """
        self.fast = False
        self._needed = min(64, self._needed * 2)
        self._windows_since_promotion = 0
        self._good_windows = 0
        self._start_window()

    def _start_window(self) -> None:
        self._total *= REMAINING_SHARE
        self._squares *= REMAINING_SHARE
        self._calls = self._slow = self._very_slow = 0
        self._shortest = math.inf
