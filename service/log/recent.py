"""The last log entries of all processes, in the memory of the supervisor."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Sequence

from rowcall.service.log.entry import Entry

_LIMIT = 2000
"""Number of entries that are stored."""


class RecentEntries:
    """A sink with the last entries, numbered in the order of their arrival. limit: number of entries that it stores."""

    name = "Recent"

    def __init__(self, limit: int = _LIMIT) -> None:
        self._entries: deque[tuple[int, Entry]] = deque(maxlen=limit)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def write(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            self._entries.extend((next(self._numbers), entry) for entry in entries)

    def entries_after(self, number: int) -> list[tuple[int, Entry]]:
        """Return the entries with a larger number than this one, each with its number, oldest first."""
        with self._lock:
            return [item for item in self._entries if item[0] > number]

    def give_up(self) -> None:
        """Do nothing: writing never waits."""

    def close(self) -> None:
        """Do nothing: there is no file."""
