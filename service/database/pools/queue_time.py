"""For how long the requests of a queue may wait, which depends on whether the queue ever ends.

A queue that empties now and then takes up bursts, and whoever stands in it gets its turn. One that does not is only
delay: as much comes as goes, and everybody waits for nothing, perhaps longer than clients do. So when it has not been
empty for `interval`, only those stay who wait less than `target` (CoDel, RFC 8289, in the form that servers have of
it: B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015). As many requests run as before, and those that do are answered
soon.
"""

from __future__ import annotations

import logging

log = logging.getLogger("rowcall.database")


class QueueTimeBound:
    """Times in seconds. target: None: never less than `longest`."""

    def __init__(self, pool: str, longest: float, target: float | None, interval: float) -> None:
        self._pool = pool
        self._longest = longest
        self._target = longest if target is None else min(target, longest)
        self._interval = interval
        self._empty_at = 0.0
        self.standing = False

    def join(self, now: float, waiting: int) -> None:
        """One more is about to wait, behind `waiting` others."""
        if waiting == 0:
            self._empty_at = now
            self.standing = False

    def outage(self, now: float) -> None:
        """There is no connection at all, so that the queue says nothing of how much comes."""
        self._empty_at = now
        self.standing = False

    def bound(self, now: float) -> float:
        """Asked while somebody waits."""
        if self._target == self._longest or now - self._empty_at <= self._interval:
            return self._longest
        if not self.standing:
            self.standing = True
            log.warning(
                "%s lane: requests have been waiting for %g s without a pause; those that wait longer than %g s are "
                "refused until fewer come",
                self._pool,
                self._interval,
                self._target,
            )
        return self._target
