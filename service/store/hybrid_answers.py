"""Answers in Redis with copies in the store of each host (spec 2.1, `Hybrid`).

A copy is given only while this worker hears what is forgotten: it listens to Redis and is answered by it all the time.
Whoever forgets an answer tells all listeners and waits until each has said that its copies are gone, or until one
that has fallen silent must have stopped giving copies by itself. So when an invalidation is answered, no host has the
old one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from typing import Any

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.options import HybridOptions
from rowcall.service.store.flights import Found
from rowcall.service.store.memory_answers import MemoryAnswers
from rowcall.service.store.redis_answers import RedisAnswers, stored_name
from rowcall.service.store.redis_link import FAILURES, GoneError

log = logging.getLogger("rowcall.cache")

CHANNEL = b"rowcall:forget"
PING = 0.3
"""Seconds between questions whether Redis still answers this listener."""
SILENT = 1.0
"""Seconds without an answer after which copies are not given any more."""
PATIENCE = 1.3
"""Seconds for which those who have copies are waited for; longer than `SILENT`."""
_COPY = b"copy\0"


class HybridAnswers:
    """To be made in the running event loop."""

    def __init__(self, redis: RedisAnswers, memory: MemoryAnswers, options: HybridOptions) -> None:
        self._redis = redis
        self._memory = memory
        self._local = options.seconds if options.local_seconds is None else options.local_seconds
        self._default = options.seconds
        self._heard = 0.0
        self._forgotten = 0
        redis.link.background(self._listen())

    # --- asking ----------------------------------------------------------------------------------------------------

    def begin(self, key: bytes, patience: float) -> Any:
        if time.monotonic() - self._heard < SILENT:
            copy = self._memory.get(_COPY + stored_name(key))
            if copy is not None:
                return copy
        return self._begin(key, patience)

    async def _begin(self, key: bytes, patience: float) -> Found:
        seen = self._forgotten
        found = await self._redis.begin(key, patience)
        # What is computed now is copied when it is asked for again: only an answer that Redis has taken is one.
        if type(found) is Entry:
            self._copy(key, found, seen, self._lifetime(found))
        return found

    def _lifetime(self, entry: Entry) -> float | None:
        """Of the copy: what is left of the answer's; where that is the default one, no more than that of copies."""
        left = entry.ends - time.time() if entry.ends else None
        whole = entry.ends - entry.written if entry.ends else None
        if self._local is None or not (whole is None or (self._default and abs(whole - self._default) < 0.01)):
            return left
        return self._local if left is None else min(left, self._local)

    def _copy(self, key: bytes, entry: Entry, seen: int, seconds: float | None) -> None:
        """Unless anything has been forgotten since the answer was asked for: it might have been this one."""
        if seen == self._forgotten and time.monotonic() - self._heard < SILENT and (seconds is None or seconds > 0):
            self._memory.put(_COPY + stored_name(key), entry, seconds)

    # --- forgetting ------------------------------------------------------------------------------------------------

    async def forget(self, key: bytes) -> bool:
        name = stored_name(key)
        self._forgotten += 1
        held = self._memory.forget(_COPY + name)
        found = await self._redis.forget(key)
        await self._tell_all(name)
        return found or held

    async def forget_tag(self, tag: str) -> int:
        self._forgotten += 1
        self._memory.forget_tag(tag)
        names = await self._redis.forget_names(tag)
        for name in names:
            self._memory.forget(_COPY + name)
            await self._tell_all(name)
        return len(names)

    async def _tell_all(self, name: bytes) -> None:
        link = self._redis.link
        reply = b"rowcall:heard:" + secrets.token_hex(8).encode()
        try:
            listeners = await link.ask(link.client.publish, CHANNEL, name + reply)
            until = time.monotonic() + PATIENCE
            for _ in range(listeners):
                left = until - time.monotonic()
                if left <= 0 or not await self._heard_by_one(reply, left):
                    break
        except GoneError:
            # Whoever has copies hears nothing either, and stops giving them.
            await asyncio.sleep(PATIENCE)

    async def _heard_by_one(self, reply: bytes, seconds: float) -> bool:
        link = self._redis.link
        try:
            async with asyncio.timeout(seconds):
                return bool(await link.client.blpop([reply], timeout=seconds))
        except FAILURES:
            return False

    # --- listening -------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear_all()
            except FAILURES as error:
                log.debug("not listening to Redis: %s", error)
            self._heard = 0.0
            await asyncio.sleep(PING)

    async def _hear_all(self) -> None:
        async with self._redis.link.client.pubsub() as channel:
            await channel.subscribe(CHANNEL)
            asked = 0.0
            while True:
                if time.monotonic() - asked > PING:
                    asked = time.monotonic()
                    await channel.ping()
                message = await channel.get_message(timeout=PING)
                if message is None:
                    continue
                # What has been sent before this has been heard, so copies are as good as they were then.
                if message["type"] in ("pong", "subscribe"):
                    if message["type"] == "subscribe":
                        # Whatever was forgotten meanwhile, nobody has told us.
                        self._forgotten += 1
                        self._memory.forget_all(_COPY)
                        asked = time.monotonic()
                    self._heard = asked
                elif message["type"] == "message":
                    await self._forget_copy(message["data"])

    async def _forget_copy(self, data: bytes) -> None:
        self._forgotten += 1
        self._memory.forget(_COPY + data[:64])
        client = self._redis.link.client
        with contextlib.suppress(*FAILURES):
            async with asyncio.timeout(SILENT):
                await client.rpush(data[64:], b"1")
                await client.expire(data[64:], 10)

    def close(self) -> None:
        """The stores behind are closed by whoever made them."""
