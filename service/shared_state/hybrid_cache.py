"""The hybrid cache: responses in Redis with copies in the shared state of each host (caching-31, `Hybrid`).

A copy is used only while this worker receives invalidations: it listens to Redis, and Redis answers it continuously.
All listeners are registered in Redis. An invalidation is published to them and waits until each has confirmed that its
copies are removed, or until a listener that has fallen silent must have stopped using its copies. So when an
invalidation is answered, no host has the old response.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from functools import lru_cache
from typing import Any

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.options import HybridOptions
from rowcall.core.endpoint.capabilities import Stale
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.redis_cache import RedisCache, stored_name
from rowcall.service.shared_state.redis_connection import FAILURES, MALFORMED
from rowcall.service.shared_state.redis_link import PING, RedisUnavailableError
from rowcall.service.shared_state.single_flight import LookupResult, StaleLookupResult, invalidation_failed

CHANNEL = b"rowcall:forget"
LISTENERS = b"rowcall:listeners"
SILENT = 1.0
"""Seconds without an answer of Redis after which copies are not used any more."""
REPLY_TIMEOUT = 1.3
"""Seconds for which an invalidation waits for workers with copies; longer than `SILENT`."""
SHORTEST = 0.01
"""Shortest time limit in seconds for a blocking command of Redis. It counts in milliseconds, and 0 means no limit."""
REGISTRATION_SECONDS = 2.5
"""Seconds for which a registration of a listener is valid: `SILENT`, and the time that registering may take."""
_COPY = b"copy\0"
_REGISTER = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - 60000)
redis.call('PEXPIRE', KEYS[1], 60000)
"""
_REGISTERED = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[1], '+inf')
"""


@lru_cache(1024)
def _copy_name(key: bytes) -> bytes:
    """Return the name in the memory backend of the copy of the response for a key.

    The results are cached: keys of `Hybrid` have a bounded length, and few keys are requested often.
    """
    return _COPY + stored_name(key)


class HybridCache:
    """Cache backend with Redis and copies in memory. Construct it in the running event loop."""

    def __init__(self, redis: RedisCache, memory: MemoryCache, options: HybridOptions) -> None:
        self._redis = redis
        self._memory = memory
        self._local = options.seconds if options.local_seconds is None else options.local_seconds
        self._default = options.seconds
        self._listener_name = secrets.token_hex(8).encode()
        self._last_reply = 0.0
        """The latest time, by the monotonic clock, up to which this worker has certainly received all invalidations."""
        self._registered_at = -REGISTRATION_SECONDS
        """Time of the last successful registration as a listener."""
        self._since = time.monotonic()
        """Time since which this worker has listened without interruption."""
        self._invalidations = 0
        """Number of invalidations that this worker has sent or received, and of interruptions in which it may have
        missed some.
        """
        redis.link.background(redis.link.listen(CHANNEL, self._hear, self._began, self._record_reply))
        redis.link.background(self._register_forever())

    # --- lookup ----------------------------------------------------------------------------------------------------

    def begin(self, key: bytes, time_limit: float) -> Any:
        return self._get_copy(key) or self._begin(key, time_limit)

    def begin_stale(self, key: bytes, time_limit: float, stale: Stale) -> Any:
        """Look up a key as `CacheBackend.begin_stale` does: return the copy of the response, or the awaitable of a
        lookup in Redis. Copies are always fresh; stale responses are only in Redis."""
        return self._get_copy(key) or self._begin_stale(key, time_limit, stale)

    def _get_copy(self, key: bytes) -> Entry | None:
        """Return the copy of a response; None: there is none, or copies may not be used now."""
        return self._memory.get(_copy_name(key)) if self._hears() else None

    def _hears(self) -> bool:
        """Return whether this worker certainly receives invalidations."""
        return time.monotonic() - self._last_reply < SILENT

    async def _begin(self, key: bytes, time_limit: float) -> LookupResult:
        """Look up a key in Redis as `CacheBackend.begin` does, and copy a response that is stored there to memory."""
        began, invalidations = time.monotonic(), self._invalidations
        result = await self._redis.begin(key, time_limit)
        # Only a response that Redis has stored is copied. One that is computed now is copied at its next lookup.
        if type(result) is Entry:
            await self._copy(key, result, began, invalidations, 0.0)
        return result

    async def _begin_stale(self, key: bytes, time_limit: float, stale: Stale) -> StaleLookupResult:
        """Look up a key in Redis as `CacheBackend.begin_stale` does, and copy a fresh response that is stored there to
        memory.
        """
        began, invalidations = time.monotonic(), self._invalidations
        result = await self._redis.begin_stale(key, time_limit, stale)
        if type(result) is Entry:
            await self._copy(key, result, began, invalidations, stale.longest)
        return result

    async def last(self, key: bytes, stale: Stale) -> Entry | None:
        return await self._redis.last(key, stale)

    async def _copy(self, key: bytes, entry: Entry, began: float, seen: int, stale: float) -> None:
        """Copy a response to memory for the rest of the time for which it is fresh. If anything was invalidated since
        its lookup began, do nothing, because that may have been this response; nor if Redis does not answer.

        began: when the lookup began, by the monotonic clock. seen: value of `_invalidations` at that time. stale:
        seconds at the end of the lifetime in Redis for which the response is stale.
        """
        requested = time.monotonic()
        try:
            remaining = await self._redis.remaining_lifetime(key)
        except RedisUnavailableError:
            return
        whole = entry.ends - stale if entry.ends else None
        seconds = self._lifetime(whole, None if remaining is None else remaining - stale)
        if seen == self._invalidations and self._hears() and (seconds is None or seconds > 0):
            elapsed = time.monotonic() - requested
            self._memory.store_copy(_copy_name(key), entry, None if seconds is None else seconds - elapsed, began)

    def _lifetime(self, whole: float | None, left: float | None) -> float | None:
        """Return for how many seconds the copy of a response is used; None: without limit.

        That is the remaining time for which the response is fresh (`left`, in seconds; None: unlimited). If it is fresh
        for the default lifetime or without limit, the configured lifetime of copies is an upper limit. whole: seconds
        for which it was fresh when it was stored; None: unlimited.
        """
        is_default = whole is None or (self._default is not None and abs(whole - self._default) < 0.01)
        if self._local is None or not is_default:
            return left
        return self._local if left is None else min(left, self._local)

    # --- invalidation ----------------------------------------------------------------------------------------------

    async def invalidate(self, key: bytes) -> bool:
        """Invalidate a key on all hosts. Return whether there was an entry.

        Raises:
            Problem: it is not confirmed that the entry is removed everywhere.
        """
        name = stored_name(key)
        held = self._forget(name)
        result = await self._redis.invalidate(key)
        # A lookup that Redis has answered before may have copied the response since.
        held |= self._forget(name)
        await self._publish(b"n" + name)
        return result or held

    async def invalidate_tag(self, tag: str) -> int:
        """Invalidate a tag on all hosts; return the number of removed entries. Raises `Problem` like `invalidate`."""
        self._forget_tag(tag)
        count = await self._redis.invalidate_tag(tag)
        # As in `invalidate`.
        self._forget_tag(tag)
        await self._publish(b"t" + tag.encode())
        return count

    def _forget(self, name: bytes) -> bool:
        """Remove the copy of a response, also one that a lookup is about to store. Return whether there was one. name:
        from `stored_name`."""
        self._invalidations += 1
        return self._memory.invalidate(_COPY + name, noted=True)

    def _forget_tag(self, tag: str) -> None:
        """Remove the copies with this tag, also those that lookups are about to store."""
        self._invalidations += 1
        self._memory.invalidate_tag(tag)

    async def _publish(self, word: bytes) -> None:
        """Send an invalidation to the workers with copies, and wait until all have confirmed it or cannot use copies
        any more.

        word: `n` and the stored name of a key, or `t` and a tag. Raises `Problem` if Redis does not answer.
        """
        link = self._redis.link
        reply = b"rowcall:reply:" + secrets.token_hex(8).encode()
        try:
            await link.ask(link.client.publish, CHANNEL, reply + word)
            until = time.monotonic() + REPLY_TIMEOUT
            missing = set(await link.run(_REGISTERED, [LISTENERS], [int(REGISTRATION_SECONDS * 1000)])) - {
                self._listener_name
            }
        except RedisUnavailableError:
            raise invalidation_failed() from None
        # A Redis that has just restarted does not know all listeners yet.
        if not self._hears() or time.monotonic() - self._since < REGISTRATION_SECONDS:
            missing.add(b"unknown")
        while missing and (remaining := until - time.monotonic()) > SHORTEST:
            missing.discard(await self._next_reply(reply, remaining))
        if missing:
            await asyncio.sleep(max(0.0, until - time.monotonic()))

    async def _next_reply(self, reply: bytes, seconds: float) -> bytes:
        """Wait for a confirmation. Return the name of the worker; empty if none arrives within `seconds`, or Redis does
        not answer. reply: key of the list in Redis to which workers add their names.
        """
        began = time.monotonic()
        with contextlib.suppress(*FAILURES, *MALFORMED):
            async with asyncio.timeout(seconds):
                answer = await self._redis.link.client.blpop([reply], timeout=seconds)
                if answer is not None:
                    return bytes(answer[1])
        await asyncio.sleep(max(0.0, seconds - (time.monotonic() - began)))
        return b""

    # --- listening -------------------------------------------------------------------------------------------------

    async def _register_forever(self) -> None:
        """Register this worker as a listener in Redis every `PING` seconds. Without a registration it uses no copies,
        as no invalidation would wait for it.
        """
        while True:
            began = time.monotonic()
            with contextlib.suppress(RedisUnavailableError):
                await self._redis.link.run(_REGISTER, [LISTENERS], [self._listener_name])
                self._registered_at = began
            await asyncio.sleep(PING)

    def _began(self) -> None:
        """Discard all copies, because listening begins again."""
        # Invalidations during the interruption were not received.
        self._invalidations += 1
        self._since = time.monotonic()
        self._memory.invalidate_all(_COPY)

    def _record_reply(self, requested_at: float) -> None:
        """Record that Redis has answered a request that was sent at `requested_at`, by the monotonic clock. If this
        worker has not registered as a listener within `SILENT` seconds before that, nothing is recorded.

        All invalidations published before that time have been received, so copies are as current as they were then.
        """
        if requested_at - self._registered_at < SILENT:
            self._last_reply = requested_at

    async def _hear(self, data: bytes) -> None:
        """Remove the copies that an invalidation names, and confirm this to the worker that has sent it. data: as
        `_publish` sends it, the key for confirmations followed by the word.
        """
        reply, kind, rest = data[:30], data[30:31], data[31:]
        if kind == b"t":
            self._forget_tag(rest.decode())
        else:
            self._forget(rest)
        client = self._redis.link.client
        with contextlib.suppress(*FAILURES):
            async with asyncio.timeout(SILENT):
                await client.rpush(reply, self._listener_name)
                await client.expire(reply, 10)

    def close(self) -> None:
        """Do nothing: the creator of the two backends, Redis and memory, closes them."""
