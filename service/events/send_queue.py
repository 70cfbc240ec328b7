"""The queue of events for a reader that does not keep up: bounded, and sent at the pace of the reader."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from rowcall.core.events.wire import named_text

PIECE = 65_536
"""Bytes that are passed to the HTTP server at once, which copies them."""
MOST_BYTES = 67_108_864
"""Maximum number of bytes that wait for one reader. Readers share the texts, so all of them together need
hardly more.
"""


class SendQueue:
    """The events that wait for one slow reader, and the rest of an event that is partly sent."""

    def __init__(self, most: int) -> None:
        """most: maximum number of events."""
        self._most = most
        self._texts: deque[bytes] = deque()
        self._size = 0
        self._begun: memoryview = memoryview(b"")
        """Rest of the event that is partly sent, which cannot be dropped."""
        self.dropped = 0
        """Number of events dropped since `take` last reported some."""

    def add(self, texts: Iterable[bytes], *, bounded: bool) -> int:
        """Add the texts of events, and return how many of the oldest events were dropped to keep within the limits.

        bounded: whether the maximum number applies. False for a burst, which the reader had no time to read yet; then
        only `MOST_BYTES` applies.
        """
        for text in texts:
            self._texts.append(text)
            self._size += len(text)
        dropped = 0
        while (bounded and len(self._texts) > self._most) or (self._size > MOST_BYTES and len(self._texts) > 1):
            self._size -= len(self._texts.popleft())
            dropped += 1
        self.dropped += dropped
        return dropped

    def __bool__(self) -> bool:
        return bool(self._begun or self._texts)

    def __len__(self) -> int:
        return len(self._texts) + bool(self._begun)

    def take(self) -> bytes:
        """Remove and return the next chunk to send, of at most `PIECE` bytes. If events were dropped, an event `gap`
        with their number comes first. The queue must not be empty.
        """
        if not self._begun:
            text = self._texts.popleft()
            self._size -= len(text)
            if self.dropped:
                text = named_text("gap", f'{{"missed":{self.dropped}}}') + text
                self.dropped = 0
            self._begun = memoryview(text)
        piece = bytes(self._begun[:PIECE])
        self._begun = self._begun[PIECE:]
        return piece
