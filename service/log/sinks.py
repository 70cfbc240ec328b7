"""Sinks of log entries. Each has its own thread and bounded queue, so that a sink that hangs does not delay the
others."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TextIO

from rowcall.service.log.entry import Entry

QUEUE_LIMIT = 50_000
"""Most entries that wait for a sink; further ones are counted and lost."""
BATCH = 500
"""Most entries that a sink gets at a time."""
FLUSH_WITHIN = 5.0
"""Seconds for which the end of the process waits for a sink."""

Format = Callable[[Entry], str]
"""Returns the text of an entry, with a line break at its end."""


class LostEntriesError(Exception):
    """Some entries of a batch are lost, the others are written. count: number of those that are lost. reason: message
    of the last error."""

    def __init__(self, count: int, reason: str) -> None:
        super().__init__(reason)
        self.count = count


class Sink(Protocol):
    """The interface of sinks."""

    name: str

    def write(self, entries: Sequence[Entry]) -> None:
        """Write entries. Called by one thread only. An exception is reported on the console, and the entries
        are lost; of a `LostEntriesError`, as many as it says."""

    def give_up(self) -> None:
        """Make the present and every later `write` end without further waiting, because the process ends. Called by
        another thread."""

    def close(self) -> None:
        """Close what the sink has opened. Called after the last `write`, by the same thread."""


class SinkThread:
    """A sink with its queue and thread."""

    def __init__(self, sink: Sink, floor: int, on_trouble: Callable[[str], None]) -> None:
        """floor: the lowest level that the sink gets. on_trouble: reports failures and lost entries."""
        self._sink = sink
        self._floor = floor
        self._on_trouble = on_trouble
        self._waiting: deque[Entry] = deque()
        self._lost = 0
        self._in_trouble = False
        self._changed = threading.Condition()
        self._busy = False
        self._closing = False
        self._given_up = False
        self._thread = threading.Thread(target=self._run, name=f"log-{sink.name}", daemon=True)
        self._thread.start()

    def submit(self, entries: Iterable[Entry]) -> None:
        """Add entries from the lowest level on to the queue, without waiting for the sink. If the queue is full, they
        are counted as lost.
        """
        accepted = [entry for entry in entries if entry.level >= self._floor]
        if not accepted:
            return
        with self._changed:
            room = max(0, QUEUE_LIMIT - len(self._waiting))
            self._waiting.extend(accepted[:room])
            self._lost += max(0, len(accepted) - room)
            self._changed.notify_all()

    def flush(self, seconds: float = FLUSH_WITHIN) -> bool:
        """Wait until everything is written, for at most `seconds`. Return False if the time was too short."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)

    def give_up(self) -> None:
        """Make the sink not wait any more, because the process ends. The first call then waits, for at most
        `FLUSH_WITHIN` seconds, until the queue is written.
        """
        self._sink.give_up()
        if not self._given_up:
            self._given_up = True
            self.flush()

    def close(self) -> None:
        """Write the waiting entries, as far as that is quick, and end the thread."""
        self.give_up()
        self.flush(0.2)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(1.0)

    def _run(self) -> None:
        """Pass batches to the sink until `close`, in the thread of the sink."""
        while (batch := self._next_batch()) is not None:
            try:
                self._sink.write(batch)
            except Exception as error:
                self._fail(error.count if isinstance(error, LostEntriesError) else len(batch), error)
            else:
                self._in_trouble = False
                self._report_lost()
            with self._changed:
                self._busy = False
                self._changed.notify_all()
        self._sink.close()

    def _next_batch(self) -> list[Entry] | None:
        """Wait for entries, and return the next batch; None: the sink is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            if not self._waiting:
                return None
            self._busy = True
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _fail(self, entries: int, error: Exception) -> None:
        """Count entries as lost, and report the error if it is the first of successive ones. entries: their number."""
        with self._changed:
            self._lost += entries
        if not self._in_trouble:
            self._in_trouble = True
            reason = " ".join(str(error).split()) or type(error).__name__
            self._on_trouble(f"the log sink {self._sink.name} does not take entries: {reason}")

    def _report_lost(self) -> None:
        """Report how many entries were lost since the last report, if any."""
        with self._changed:
            lost, self._lost = self._lost, 0
        if lost:
            self._on_trouble(f"the log sink {self._sink.name} has lost {lost} entries")


class ConsoleSink:
    """Writes to `stream`, or if that is None, to the present standard output, which a progress display may have
    replaced. form: returns the line of an entry.
    """

    name = "console"

    def __init__(self, stream: TextIO | None, form: Format) -> None:
        self._stream = stream
        self._form = form

    def write(self, entries: Sequence[Entry]) -> None:
        stream: TextIO = self._stream or sys.stdout
        text = "".join(map(self._form, entries))
        plain: TextIO | None = sys.__stdout__
        if plain is None or stream is not plain:
            stream.write(text)
            stream.flush()
            return
        # Bypasses Python's buffer: a thread that hangs while it holds the buffer's lock would abort the end of the
        # process.
        plain.flush()
        data = memoryview(text.encode(plain.encoding, errors="replace"))
        while data:
            data = data[os.write(plain.fileno(), data) :]

    def give_up(self) -> None:
        """Do nothing: writing to the console does not wait."""

    def close(self) -> None:
        """Do nothing: standard output stays open."""


def say_on_stderr(message: str) -> None:
    """Write a message with the time of day to standard error: a failure of the log itself, if there is no console
    sink. If standard error is closed too, the message is dropped.
    """
    stream: TextIO | None = sys.stderr  # None: the process was started without
    # ValueError: the file object is closed.
    with contextlib.suppress(OSError, ValueError):
        if stream is not None:
            # One write, because several processes may report at the same time.
            stream.write(f"{time.strftime('%H:%M:%S')} rowcall: {message}\n")
            stream.flush()
