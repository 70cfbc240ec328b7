"""From `logging` to entries: in the supervisor straight to the sinks, in a worker on their way to the supervisor."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from rowcall.service.log.entry import NOTHING, Entry, harmless
from rowcall.service.log.request_line import Seen
from rowcall.service.log.sinks import SinkThread

DELAY = 0.05
"""Seconds for which a worker gathers entries that are in no hurry."""
BACKLOG_LIMIT = 8_388_608
"""Bytes that may be on their way to the supervisor; what comes on top is counted and lost."""

_format_exception = logging.Formatter().formatException


def entry_of(record: logging.LogRecord, client_name: str | None = None) -> Entry:
    exception = harmless(_format_exception(record.exc_info)) if record.exc_info and record.exc_info[0] else None
    source = client_name if client_name and record.name == "rowcall.client" else record.name
    properties = getattr(record, "properties", NOTHING)
    return Entry(record.created, record.levelno, source, harmless(record.getMessage()), exception, properties)


class SinkHandler(logging.Handler):
    """The supervisor's own records, and the entries of its workers, to every sink."""

    def __init__(self, sinks: Sequence[SinkThread], client_name: str | None) -> None:
        super().__init__()
        self._sinks = sinks
        self._client_name = client_name

    def emit(self, record: logging.LogRecord) -> None:
        self.submit((entry_of(record, self._client_name),))

    def submit(self, entries: Iterable[Entry]) -> None:
        for sink in self._sinks:
            sink.submit(entries)

    def flush(self) -> None:
        for sink in self._sinks:
            sink.flush()

    def give_up(self) -> None:
        """The process ends: what waits is written, but nobody waits for a sink that hangs."""
        for sink in reversed(self._sinks):
            sink.give_up()

    def close(self) -> None:
        # The console comes last: it is where the others tell their troubles.
        for sink in reversed(self._sinks):
            sink.close()
        super().close()


Send = Callable[[list[Entry | Seen]], None]


class Forwarder(logging.Handler):
    """A worker's records and requests, gathered and sent to the supervisor.

    send: takes a batch. backlog: bytes that have been sent and not taken yet.
    """

    def __init__(self, send: Send, backlog: Callable[[], int], client_name: str | None) -> None:
        """To be made in the running event loop."""
        super().__init__()
        self._send = send
        self._backlog = backlog
        self._client_name = client_name
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._gathered: list[Entry | Seen] = []
        self._flushes_soon = False
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        entry = entry_of(record, self._client_name)
        if threading.get_ident() == self._thread:
            self._take(entry)
        else:
            self._loop.call_soon_threadsafe(self._take, entry)

    def _take(self, entry: Entry) -> None:
        """Entries of one turn of the event loop go together, as each wakes the supervisor; errors go at once, as they
        may be the last words of this process.
        """
        self._gathered.append(entry)
        if entry.level >= logging.ERROR or not self._loop.is_running():
            self.flush()
        elif not self._flushes_soon:
            self._flushes_soon = True
            self._loop.call_soon(self.flush)

    def add_request(self, seen: Seen) -> None:
        """From the event loop's thread only."""
        gathered = self._gathered
        gathered.append(seen)
        if len(gathered) == 1:
            self._loop.call_later(DELAY, self.flush)

    def flush(self) -> None:
        batch, self._gathered = self._gathered, []
        if not batch or threading.get_ident() != self._thread:
            self._gathered = batch
            return
        self._flushes_soon = False
        if self._backlog() > BACKLOG_LIMIT:
            self._lost += len(batch)
            return
        if self._lost:
            text = f"{self._lost} log entries of a worker were lost: the supervisor did not take them in time"
            batch.append(Entry(time.time(), logging.WARNING, "rowcall", text))
            self._lost = 0
        self._send(batch)
