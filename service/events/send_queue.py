"""What waits for a reader that does not keep up: bounded, and given out as fast as it is taken."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from rowcall.core.events.wire import named_text

PIECE = 65_536
"""Bytes that are handed to the HTTP server at once: it copies them."""
MOST_BYTES = 67_108_864
"""That wait for one reader. Readers share the texts, so that all of them together are hardly more."""


class SendQueue:
    def __init__(self, most: int) -> None:
        """most: events."""
        self._most = most
        self._texts: deque[bytes] = deque()
        self._size = 0
        self._begun: memoryview = memoryview(b"")
        """What is left of the event that has begun to be sent. It cannot be dropped."""
        self.dropped = 0
        """Events, since `take` told of some the last time."""

    def add(self, texts: Iterable[bytes], *, bounded: bool) -> bool:
        """False when the oldest had to make room. bounded: false for a burst, which a reader has yet to be given time
        to read."""
        for text in texts:
            self._texts.append(text)
            self._size += len(text)
        complete = True
        while (bounded and len(self._texts) > self._most) or (self._size > MOST_BYTES and len(self._texts) > 1):
            self._size -= len(self._texts.popleft())
            self.dropped += 1
            complete = False
        return complete

    def __bool__(self) -> bool:
        return bool(self._begun or self._texts)

    def take(self) -> bytes:
        """The next piece to send."""
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
