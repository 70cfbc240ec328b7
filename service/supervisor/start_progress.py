"""Shows the progress of a long start in the terminal.

Only in a terminal to which the log is written, and only if the start takes longer than a second: a short start needs no
animation, and a log file none at all.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status

SHOW_AFTER = 1.0
"""Seconds."""


class Progress:
    """Use: `with Progress(watched=…) as progress:`, then `progress.show("reading …")` for each phase."""

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
        from rich.console import Console

        with self._lock:
            if self._watched:
                # While it is shown, rich prints above it what other code writes to sys.stdout.
                self._status = Console(file=sys.stdout).status(self._text)
                self._status.start()
