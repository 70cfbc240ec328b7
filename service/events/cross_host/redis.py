"""Cross-host transport by a stream of Redis: events that were added during an interruption are read after it.

The stream is as long as the replay buffers of hosts, so a host that starts has the same events as the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from rowcall.core.cache.redis_address import RedisAddress
from rowcall.service.background import pause
from rowcall.service.events.batches import Batch, unpack_received
from rowcall.service.events.cross_host.outbox import Outbox
from rowcall.service.shared_state.redis_connection import FAILURES, MALFORMED, Client, open_client

log = logging.getLogger("rowcall.events")

BLOCK = 5.0
"""Seconds after which a blocking read is repeated, so that a dead connection is noticed."""
LAG = 30.0
"""Seconds that other hosts have to read what this host has read; it does not know their positions."""
_START = b"0-0"
_FIELD = b"batches"


class RedisTransport:
    """The transport by a stream in Redis. key: of the stream. stored_events: approximate maximum number of its entries.
    stored_bytes: approximate maximum size.
    """

    def __init__(self, address: RedisAddress, key: str, stored_events: int, stored_bytes: int) -> None:
        self._address = address
        self._key = key.encode()
        self._stored_events = stored_events
        self._stored_bytes = stored_bytes
        self._outbox = Outbox()
        self._sizes: deque[tuple[bytes, int, float]] = deque()
        """Entries of the stream: id, size in bytes, and when it was read, in seconds of the monotonic clock."""
        self._size = 0
        """Sum of these sizes."""
        self._unreachable = False

    def send(self, batch: Batch) -> None:
        self._outbox.add(batch)

    async def wait_until_sent(self) -> None:
        """Wait until all events are in the stream."""
        await self._outbox.wait_until_empty()

    async def catch_up(self, receive: Callable[[Batch], None]) -> None:
        """Pass the events that were published before this start to `receive`, if Redis answers at once."""
        try:
            client = await self._client()
            try:
                async with asyncio.timeout(self._address.connect_timeout + 1):
                    for _, entry in await client.xrange(self._key):
                        _hand_over(entry, receive)
            finally:
                await client.aclose()
        except (*FAILURES, *MALFORMED) as error:
            self._report(error)

    async def write(self) -> None:
        """Add queued events to the stream, forever. After a failure, which is logged, connect again and add them
        again."""
        client: Client = None
        attempt = 0
        while True:
            waiting = await self._outbox.first()
            try:
                client = client or await self._client()
                async with client.pipeline(transaction=False) as pipeline:
                    for packed in waiting:
                        pipeline.xadd(self._key, {_FIELD: packed}, maxlen=self._stored_events, approximate=True)
                    await pipeline.execute()
            except (*FAILURES, *MALFORMED) as error:
                self._report(error)
                await _close(client)
                client = None
                await asyncio.sleep(pause(attempt))
                attempt += 1
            else:
                attempt = 0
                self._outbox.remove(waiting)

    async def read(self, receive: Callable[[Batch], None]) -> None:
        """Pass the events in the stream to `receive`, from its beginning on, forever. After a failure, connect again
        and begin again: the receiver recognises events that it has already. Also removes old entries from the stream
        (`_trim`)."""
        client: Client = None
        attempt = 0
        last = _START
        while True:
            try:
                client = client or await self._client(BLOCK + 5)
                for _, entries in await client.xread({self._key: last}, count=256, block=round(BLOCK * 1000)):
                    for entry_id, entry in entries:
                        last = entry_id
                        self._measure(entry_id, sum(map(len, entry.values())))
                        _hand_over(entry, receive)
                await self._trim(client)
                if self._unreachable:
                    self._unreachable = False
                    log.warning("Redis at %s is back: events go to other hosts again", self._address)
                attempt = 0
            except (*FAILURES, *MALFORMED) as error:
                self._report(error)
                await _close(client)
                client = None
                # Redis may return empty, with new ids for its entries; events that are read twice are recognised.
                last = _START
                self._sizes.clear()
                self._size = 0
                await asyncio.sleep(pause(attempt))
                attempt += 1

    def _measure(self, entry_id: bytes, size: int) -> None:
        """Record id and size in bytes of an entry that was read."""
        self._sizes.append((entry_id, size, time.monotonic()))
        self._size += size
        if len(self._sizes) > 2 * self._stored_events:
            self._size -= self._sizes.popleft()[1]

    async def _trim(self, client: Any) -> None:
        """Remove the oldest entries while the stream is larger than `stored_bytes`, but only those that were read at
        least `LAG` seconds ago, so that other hosts have read them too.

        The number of entries is limited when one is added; their sizes are known here, after reading them.
        """
        oldest = None
        read_by_all = time.monotonic() - LAG
        while self._size > self._stored_bytes and len(self._sizes) > 1 and self._sizes[0][2] < read_by_all:
            self._size -= self._sizes.popleft()[1]
            oldest = self._sizes[0][0]
        if oldest is not None:
            await client.xtrim(self._key, minid=oldest)

    async def _client(self, time_limit: float | None = None) -> Client:
        """Return a new client. time_limit: for a response, in seconds; None: that of the configuration."""
        return await open_client(self._address, "rowcall-events", time_limit or self._address.timeout)

    def _report(self, error: BaseException) -> None:
        """Log that Redis is gone, once for each interruption."""
        if not self._unreachable:
            self._unreachable = True
            reason = str(error).strip() or "no answer"
            log.warning("Redis at %s is gone: events stay on their hosts until it is back: %s", self._address, reason)


async def _close(client: Client) -> None:
    """Close a client after an error: its connection may be out of step, and another server may be the master now."""
    if client is not None:
        with contextlib.suppress(*FAILURES, *MALFORMED):
            await client.aclose()


def _hand_over(entry: dict[bytes, bytes], receive: Callable[[Batch], None]) -> None:
    """Pass the batches of an entry of the stream to `receive`. entry: fields and values. One that cannot be read is
    logged and left out.
    """
    try:
        batches = unpack_received(entry[_FIELD])
    except (LookupError, ValueError):
        log.warning("an entry in the stream of events was not written by this service; it is left out")
        return
    for batch in batches:
        receive(batch)
