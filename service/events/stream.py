"""The event stream of one subscriber: open until the client disconnects, its session expires, or the service ends it.

A reader that keeps up gets every event at once. Otherwise events wait in a bounded queue, which is sent at the pace of
the reader; the configuration decides what happens when it is full.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rowcall.core.events.event import Viewer
from rowcall.core.events.options import EventOptions
from rowcall.ext.http1.connection import RequestProtocol, StreamWriter
from rowcall.service.events.reading_progress import Connections, Progress
from rowcall.service.events.send_queue import PIECE, SendQueue
from rowcall.service.request_context.protocols import Headers

LOOK_AFTER = 65_536
"""Bytes that are sent before the progress of the reader is checked again."""
WINDOW = 524_288
"""Bytes in flight to a reader from which further events wait."""

_CLOSED = "PyErrAwaitable"
"""Type that the HTTP server returns for data to a disconnected client. It has no importable name."""
LENIENT = 1.0
"""Seconds in which a reader may catch up with a burst, before the number of waiting events is limited."""


class Stream:
    """An open event stream.

    on_end(stream): called once, when nothing can be sent any more. on_slow(stream): called when events begin to wait
    for the reader; `push` has to be called repeatedly from then on. on_dropped(count): called when events of a full
    queue are dropped.
    """

    __slots__ = (
        "_backlog",
        "_connections",
        "_gone",
        "_held",
        "_on_dropped",
        "_on_end",
        "_on_slow",
        "_options",
        "_pieces",
        "_progress",
        "_shares",
        "_taken",
        "_transport",
        "_unseen",
        "began",
        "client",
        "dropped",
        "group",
        "number",
        "path",
        "terms",
        "viewer",
    )

    def __init__(
        self,
        protocol: Any,
        headers: Headers,
        client: str,
        path: str,
        terms: object,
        viewer: Viewer,
        connections: Connections,
        options: EventOptions,
        on_end: Callable[[Stream], None],
        on_slow: Callable[[Stream], None],
        on_dropped: Callable[[int], None],
        *,
        shares: bool = False,
    ) -> None:
        """Begin the response. protocol: of the request. client: address of the client, as `host:port`. path: of the
        stream, for operators and metrics. terms: access rules and filters; the stream ends if a reload of the schema
        changes them. shares: whether the connection may have other streams, as in HTTP/2."""
        self.path = path
        self.terms = terms
        self.viewer = viewer
        self.number = 0
        self.group: Any = None
        """Group of the stream, set by its sender (`service.events.broadcaster`)."""
        self.client = client
        self.began = time.time()
        """When it was opened, in seconds since 1970."""
        self.dropped = 0
        """Number of events that its reader has missed, because the queue was full."""
        self._connections = connections
        self._options = options
        self._on_end = on_end
        self._on_slow = on_slow
        self._on_dropped = on_dropped
        self._backlog: SendQueue | None = None
        self._held = self._taken = 0.0
        self._progress: Progress | None = None
        self._shares = shares
        self._unseen = self._pieces = 0
        """Bytes sent since the progress of the reader was checked, and the number of chunks."""
        self._gone: Any = None
        self._transport = protocol.response_stream(200, headers)
        innermost = _innermost(protocol)
        if options.heartbeat is None or isinstance(innermost, RequestProtocol):
            # Otherwise the next heartbeat notices the disconnect, and 2 KiB for each of thousands of streams are saved.
            # In this event loop, a future is all that the observation costs.
            self._gone = innermost.client_disconnect()
            self._gone.add_done_callback(self._on_disconnect)

    @property
    def open(self) -> bool:
        return self._transport is not None

    @property
    def waiting(self) -> int:
        """Number of events that wait for the reader."""
        return 0 if self._backlog is None else len(self._backlog)

    def send(self, texts: Sequence[bytes], joined: bytes) -> None:
        """Send events. If the reader is slow, or they have more than `WINDOW` bytes, they wait. After the end of the
        stream, nothing happens. joined: the concatenation of `texts`."""
        if self._transport is None:
            return
        if self._backlog is not None:
            self._queue(texts)
        elif len(joined) > WINDOW:
            # Sent in chunks: the HTTP server copies what it gets, for every reader.
            self._begin_queue(texts)
        else:
            self._send_now(joined)
            if self._unseen > LOOK_AFTER and self._transport is not None:
                progress = self._update_progress()
                if progress.outstanding > WINDOW or progress.crowded:
                    self._begin_queue(())

    def beat(self, text: bytes) -> None:
        """Send the text of a heartbeat, unless events wait."""
        if self._transport is not None and self._backlog is None:
            self._send_now(text)

    def _send_now(self, data: bytes) -> None:
        """Send data; if the client is gone, end the stream."""
        sent = self._transport.send_bytes(data)
        if sent is False or type(sent).__name__ == _CLOSED:
            self.end()
        self._unseen += len(data)
        self._pieces += 1

    def _update_progress(self) -> Progress:
        """Return the progress of the reader, updated."""
        progress = self._progress
        if progress is None:
            progress = self._progress = Progress(
                self._connections, self.client, shares=self._shares, unsent=self._unsent
            )
        progress.update(self._unseen, self._pieces)
        self._unseen = self._pieces = 0
        return progress

    def _unsent(self) -> int:
        """Return the bytes that the transport has not handed to the system; 0 where it does not report that."""
        return self._transport.unsent() if isinstance(self._transport, StreamWriter) else 0

    # --- slow readers ----------------------------------------------------------------------------------------------

    def _begin_queue(self, texts: Sequence[bytes]) -> None:
        """Let events wait from now on, beginning with `texts`, and report the stream as slow."""
        self._backlog = SendQueue(self._options.queue)
        self._taken = self._held = time.monotonic()
        self._queue(texts)
        self._on_slow(self)

    def _queue(self, texts: Sequence[bytes]) -> None:
        """Add events to the queue of those that wait; does nothing if the stream has no queue. If the queue is full,
        drop the oldest events, count them, and end the stream if the options say so. In the first `LENIENT` seconds,
        only the limit of bytes applies."""
        if self._backlog is None:
            return
        bounded = time.monotonic() > self._held + LENIENT
        dropped = self._backlog.add(texts, bounded=bounded)
        if not dropped:
            return
        self.dropped += dropped
        self._on_dropped(dropped)
        if self._options.ends_slow:
            self.reset()

    def push(self) -> bool:
        """Send waiting events as far as the reader has room, and end the stream if the reader has taken nothing for the
        time limit of the options. Return False if the stream is not slow any more or has ended; then further calls are
        not needed.
        """
        backlog = self._backlog
        if backlog is None or self._transport is None:
            return False
        progress = self._update_progress()
        now = time.monotonic()
        if progress.taken:
            self._taken = now
        elif now - self._taken > self._options.time_limit:
            self.reset()
            return False
        room = 0 if progress.crowded else WINDOW - progress.outstanding
        while backlog and room > 0 and self._transport is not None:
            self._send_now(backlog.take())
            room -= PIECE
        if not backlog and progress.outstanding < WINDOW // 2 and not progress.crowded:
            self._backlog = None
            return False
        return True

    def reset(self) -> None:
        """End the stream by a reset of the connection. An orderly end would wait behind the data that the reader does
        not take.
        """
        if self._transport is not None:
            self.end()
            self._connections.reset_connection(self.client)

    # --- the end ---------------------------------------------------------------------------------------------------

    def end(self, last: bytes = b"") -> None:
        """End the response, if it is open, and drop the events that wait. last: text to send before the end, unless
        events wait.
        """
        if self._transport is None:
            return
        if last and self._backlog is None:
            self._transport.send_bytes(last)
        # The loop server ends the body with `close`, granian when the transport object is released.
        close = getattr(self._transport, "close", None)
        self._transport = None
        if close is not None:
            close()
        self._backlog = None
        if self._progress is not None:
            self._progress.end()
        if self._gone is not None:
            self._gone.cancel()
        self._on_end(self)

    def _on_disconnect(self, _gone: Any) -> None:
        self.end()


def _innermost(protocol: Any) -> Any:
    """Return the protocol of the HTTP server, which others may wrap."""
    while (inner := getattr(protocol, "inner", None)) is not None:
        protocol = inner
    return protocol
