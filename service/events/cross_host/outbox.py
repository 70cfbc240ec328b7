"""Batches of events that wait to be sent to other hosts: bounded, in case the transport is interrupted."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from rowcall.service.events.batches import Batch, pack

log = logging.getLogger("rowcall.events")

MOST = 10_000
"""Maximum number of batches that wait."""
MOST_BYTES = 67_108_864
"""Maximum size of all batches together; a single larger one waits nevertheless."""


class Outbox:
    """A queue of batches. If it is full, the oldest batches are dropped, and the log reports it."""

    def __init__(self) -> None:
        """Construct it in the running event loop."""
        self._packed: deque[bytes] = deque()
        self._size = 0
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()

    def add(self, batch: Batch) -> None:
        """Add a batch. If the limits are exceeded, drop the oldest ones and log a warning."""
        packed = pack((batch,))
        self._packed.append(packed)
        self._size += len(packed)
        dropped = 0
        while len(self._packed) > MOST or (self._size > MOST_BYTES and len(self._packed) > 1):
            self._size -= len(self._packed.popleft())
            dropped += 1
        if dropped:
            log.warning(
                "%d batches of events were dropped and do not reach other hosts, as too many wait to be sent", dropped
            )
        self._filled.set()

    async def first(self) -> list[bytes]:
        """Wait for batches, and return at most 64 of the oldest, each as `pack` returns it. They stay in the outbox
        until `remove`."""
        while not self._packed:
            self._filled.clear()
            await self._filled.wait()
        return [self._packed[index] for index in range(min(len(self._packed), 64))]

    def remove(self, packed: list[bytes]) -> None:
        """Remove batches that were sent, unless they have been dropped meanwhile. packed: as returned by `first`."""
        for item in packed:
            if self._packed and self._packed[0] is item:
                self._size -= len(self._packed.popleft())
        if not self._packed:
            self._emptied.set()

    async def wait_until_empty(self) -> None:
        """Wait until the outbox is empty."""
        while self._packed:
            self._emptied.clear()
            await self._emptied.wait()
