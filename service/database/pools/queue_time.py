"""The limit for waiting in the queue of a pool, which depends on whether the queue ever empties.

A queue that empties now and then absorbs bursts, and each request in it gets its turn. A queue that never empties is
only delay: as many requests arrive as leave, and all of them wait without benefit, perhaps longer than clients do. So
if the queue has not been empty for `interval`, only requests that wait less than `target` stay (CoDel, RFC 8289, in the
form for servers: B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015). As many requests run as before, and those that do
are answered soon.
"""

from __future__ import annotations

import logging

log = logging.getLogger("rowcall.database")


class QueueTimeBound:
    """Computes the limit for waiting in one queue. pool: name for the log. longest: limit in seconds while the queue
    empties now and then. target: limit in seconds if it has not been empty for `interval` seconds; None: the limit is
    always `longest`.
    """

    def __init__(self, pool: str, longest: float, target: float | None, interval: float) -> None:
        self._pool = pool
        self._longest = longest
        self._target = longest if target is None else min(target, longest)
        self._interval = interval
        self._empty_at = 0.0
        self.standing = False

    def join(self, now: float, waiting: int) -> None:
        """Record that a request is about to wait, behind `waiting` others. now: by the clock of the event loop, in
        seconds.
        """
        if waiting == 0:
            self._empty_at = now
            self.standing = False

    def outage(self, now: float) -> None:
        """Record that there is no connection at all, so that the length of the queue says nothing about the load. now:
        as for `join`.
        """
        self._empty_at = now
        self.standing = False

    def current_limit(self, now: float) -> float:
        """Return the current limit in seconds, and log once when it becomes `target`. Must be called while requests
        wait. now: as for `join`.
        """
        if self._target == self._longest or now - self._empty_at <= self._interval:
            return self._longest
        if not self.standing:
            self.standing = True
            log.warning(
                "connection pool %s: its queue has not been empty for %g s; requests that wait longer than %g s are "
                "refused until it is",
                self._pool,
                self._interval,
                self._target,
            )
        return self._target
