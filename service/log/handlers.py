"""Handlers of `logging`: in the supervisor they pass entries to the sinks, in a worker to the supervisor."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from rowcall.service.log.entry import NOTHING, Entry, escape_message
from rowcall.service.log.request_line import RequestRecord
from rowcall.service.log.sinks import SinkThread

DELAY = 0.05
"""Seconds for which a worker collects entries of requests."""
BACKLOG_LIMIT = 8_388_608
"""Most bytes on the way to the supervisor; further entries are counted and lost."""

_format_exception = logging.Formatter().formatException


def entry_of(record: logging.LogRecord, client_name: str | None = None) -> Entry:
    """Return the entry of a record. client_name: shown instead of `rowcall.client`; None: that name is shown."""
    exception = escape_message(_format_exception(record.exc_info)) if record.exc_info and record.exc_info[0] else None
    source = client_name if client_name and record.name == "rowcall.client" else record.name
    properties = getattr(record, "properties", NOTHING)
    return Entry(record.created, record.levelno, source, escape_message(record.getMessage()), exception, properties)


class SinkHandler(logging.Handler):
    """Passes records of the supervisor and entries of its workers to every sink. client_name: as for `entry_of`."""

    def __init__(self, sinks: Sequence[SinkThread], client_name: str | None) -> None:
        super().__init__()
        self._sinks = sinks
        self._client_name = client_name

    def add(self, sink: SinkThread) -> None:
        """Add a sink, which gets the entries from now on."""
        self._sinks = (sink, *self._sinks)

    def emit(self, record: logging.LogRecord) -> None:
        self.submit((entry_of(record, self._client_name),))

    def submit(self, entries: Iterable[Entry]) -> None:
        """Pass entries to every sink, without waiting for them. entries: a list or tuple, because it is iterated once
        for each sink."""
        for sink in self._sinks:
            sink.submit(entries)

    def flush(self) -> None:
        """Wait until everything is written; for each sink at most 5 seconds."""
        for sink in self._sinks:
            sink.flush()

    def give_up(self) -> None:
        """Write the waiting entries at the end of the process. From now on, no sink waits for a target that is
        unavailable.

        The first call waits until the queues are written; for each sink at most 5 seconds.
        """
        for sink in reversed(self._sinks):
            sink.give_up()

    def close(self) -> None:
        """Write the waiting entries and end all sinks. This takes at most 6.2 seconds for each sink, or 1.2 if
        `give_up` was called before; entries that are not written then may be lost."""
        # The console is last, because the other sinks report their failures there.
        for sink in reversed(self._sinks):
            sink.close()
        super().close()


Send = Callable[[list[Entry | RequestRecord]], None]


class Forwarder(logging.Handler):
    """Collects records and requests of a worker and sends them to the supervisor.

    send: sends a batch. backlog: returns the bytes that were sent and not received yet.
    """

    def __init__(self, send: Send, backlog: Callable[[], int], client_name: str | None) -> None:
        """To be created in the running event loop. client_name: as for `entry_of`."""
        super().__init__()
        self._send = send
        self._backlog = backlog
        self._client_name = client_name
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._gathered: list[Entry | RequestRecord] = []
        self._flushes_soon = False
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        entry = entry_of(record, self._client_name)
        if threading.get_ident() == self._thread:
            self._add(entry)
        else:
            self._loop.call_soon_threadsafe(self._add, entry)

    def _add(self, entry: Entry) -> None:
        """Add an entry to the batch.

        Entries of one turn of the event loop are sent together, because each batch wakes the supervisor. Errors are
        sent at once, because the process may exit.
        """
        self._gathered.append(entry)
        if entry.level >= logging.ERROR or not self._loop.is_running():
            self.flush()
        elif not self._flushes_soon:
            self._flushes_soon = True
            self._loop.call_soon(self.flush)

    def add_request(self, seen: RequestRecord) -> None:
        """Add a request to the batch. From the event loop's thread only."""
        gathered = self._gathered
        gathered.append(seen)
        if len(gathered) == 1:
            self._loop.call_later(DELAY, self.flush)

    def flush(self) -> None:
        """Send the batch, unless too many bytes are on their way; then its entries are counted as lost, which the next
        batch reports. From another thread than that of the event loop, nothing happens.
        """
        if not self._gathered or threading.get_ident() != self._thread:
            return
        batch, self._gathered = self._gathered, []
        self._flushes_soon = False
        if self._backlog() > BACKLOG_LIMIT:
            self._lost += len(batch)
            return
        if self._lost:
            text = f"{self._lost} log entries of a worker were lost: the supervisor did not take them in time"
            batch.append(Entry(time.time(), logging.WARNING, "rowcall", text))
            self._lost = 0
        self._send(batch)
