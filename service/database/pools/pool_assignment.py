"""Which lane a routine is fast enough for, decided by measurement (driver-2).

One slow call in a hundred makes a shared connection up to 19 times slower for everybody on it, so a routine starts
alone, is promoted when it has shown that it is fast, and is demoted when it turns out not to be.
"""

from __future__ import annotations

import math
from pathlib import Path

FIRST_LOOK = 8
"""Calls after which a new routine is judged for the first time."""
WINDOW = 64
"""Calls in each later judgement."""
ONE_IN = 20
"""The share of very slow calls that is too many on a shared connection."""
VERY_SLOW = 4
"""Times the threshold. On busy processors the clock runs on while a backend waits for its turn, so a single slow
call says little about the routine; half of them slow, or some very slow, do."""


KEPT_SHARE = 15 / 16
"""Share of the sums of durations that remains after each window, so that they describe some 1,000 recent calls."""
PRIOR_CALLS = 256
"""Calls of an eighth of the threshold that a routine is assumed to have made, so that one late clock reading among
few calls is not taken for a slow routine."""
FORGIVEN = 64
"""Windows on a shared connection after which a demotion counts for half. Once in some thousand calls the clock is late
for anybody: without this, each time would be one more towards the longest way back."""


MOST_CONTENTION = 8.0
"""However busy the processors are, a wait for a lock must be told from it."""
_SCHEDULED = Path("/proc/thread-self/schedstat")
"""Nanoseconds that this thread has run, and waited for a processor (Linux, proc_pid_schedstat(5))."""


class Contention:
    """How many times longer things seem to take because this thread waits for a processor.

    The clock of a call runs on while its answer waits to be read, and where the server is on the same machine its
    backends wait too. Taking that for slowness would have calls run alone, at twice the work, just when there is too
    much of it already.
    """

    __slots__ = ("_ran", "_waited", "factor")

    def __init__(self) -> None:
        self.factor = 1.0
        self._ran = self._waited = 0

    def look(self) -> None:
        """Called now and then, from the thread that is meant."""
        try:
            ran, waited = map(int, _SCHEDULED.read_text().split()[:2])
        except (OSError, ValueError):
            return
        self.note(ran, waited)

    def note(self, ran: int, waited: int) -> None:
        """Totals since the thread began; an idle thread says little, so what was known fades."""
        newly, late = ran - self._ran, waited - self._waited
        self._ran, self._waited = ran, waited
        now = 1.0 + late / newly if newly > 1_000_000 else 1.0
        self.factor = (self.factor + min(MOST_CONTENTION, max(1.0, now))) / 2


class PoolAssignment:
    """Counts slow calls of one routine in windows, and estimates how long a call waits behind a running one.

    The expected waiting time is E[S²] / 2E[S] with the durations S (the mean residual time of renewal theory). It grows
    with the square of a duration: if 1 % of the calls take 300 ms, the others wait 100 ms, although the share of slow
    calls is small.

    threshold: seconds of server time from which a call is slow.
    """

    __slots__ = (
        "_calls",
        "_good_windows",
        "_kept",
        "_needed",
        "_shortest",
        "_slow",
        "_squares",
        "_total",
        "_very_slow",
        "fast",
        "threshold",
    )

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self.fast = False
        self._good_windows = 0
        self._needed = 1
        self._kept = 0
        self._calls = self._slow = self._very_slow = 0
        self._shortest = math.inf
        self._total = self._squares = 0.0

    @property
    def expected_wait(self) -> float:
        """Seconds that a call is expected to wait behind a call of this routine that is running."""
        return self._squares / (2 * (self._total + PRIOR_CALLS * self.threshold / 8))

    def record(self, seconds: float, contention: float = 1.0) -> bool:
        """Notes one call. True when `fast` changed.

        contention: backends at work for each processor. The time of a call that only computes grows with it, that of
        one that waits does not; so the time is divided by it, but the shortest call must be short as it is.
        """
        self._shortest = min(self._shortest, seconds)
        seconds /= contention
        calls = self._calls = self._calls + 1
        if self.fast or self._needed > 1:
            # Not during the first calls ever: these read the catalogue and fill caches of the session.
            self._total += seconds
            self._squares += seconds * seconds
        if seconds <= self.threshold and self.fast and calls < WINDOW:
            return False  # nearly every call of a busy service
        if seconds > self.threshold:
            self._slow += 1
            self._very_slow += seconds > VERY_SLOW * self.threshold
        return self._watch() if self.fast else self._look()

    def _watch(self) -> bool:
        # Judged at once and not at the end of the window: every further slow call holds up others.
        if self._very_slow * ONE_IN > WINDOW or self._slow * 2 > WINDOW or self.expected_wait > self.threshold:
            self.demote()
            return True
        if self._calls >= WINDOW:
            self._start_window()
            self._kept += 1
            if self._kept >= FORGIVEN:
                self._kept = 0
                self._needed = max(1, self._needed // 2)
        return False

    def _look(self) -> bool:
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
        """Back to the exclusive lane; each time it takes twice as many good windows to return, up to 64, and each
        `FORGIVEN` good ones on shared connections make it half as many again."""
        self.fast = False
        self._needed = min(64, self._needed * 2)
        self._kept = 0
        self._good_windows = 0
        self._start_window()

    def _start_window(self) -> None:
        self._total *= KEPT_SHARE
        self._squares *= KEPT_SHARE
        self._calls = self._slow = self._very_slow = 0
        self._shortest = math.inf
