"""The cache backends of one worker: one for each `Type`, created when an endpoint first needs it (caching-27)."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.options import TAGGED, CacheOptions, Place
from rowcall.core.cache.redis_address import BadAddressError, parse_redis
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem, unavailable
from rowcall.service.shared_state.host_state import INVALIDATE_TAGGED, INVALIDATE_TAGS, HostState
from rowcall.service.shared_state.memory_cache import LARGEST, MemoryCache
from rowcall.service.shared_state.message_bus import WORKER_GONE
from rowcall.service.shared_state.single_flight import (
    NOT_SHARED,
    CacheBackend,
    LookupResult,
    StaleLookupResult,
    invalidation_failed,
)

if TYPE_CHECKING:
    from rowcall.service.shared_state.redis_cache import RedisCache
    from rowcall.service.shared_state.redis_link import RedisLink

log = logging.getLogger("rowcall.cache")

Result = TypeVar("Result")
AGAIN_SECONDS = 1.0
"""Seconds between two attempts to connect to Redis, or to repeat an invalidation."""

MOST_BUFFERED = 33_554_432
"""Largest response, in bytes, that a worker buffers to store it."""


class CacheBackends:
    """Creates and holds the cache backends of a worker. Construct it in the running event loop."""

    def __init__(self, options: CacheOptions, host: HostState) -> None:
        self.options = options
        self._host = host
        self._stores: dict[Place, CacheBackend] = {}
        self._memory: MemoryCache | None = None
        self._redis: asyncio.Task[RedisCache | None] | None = None
        self._absent = asyncio.Event()
        """Set while Redis is unreachable here although this host's first worker reached it; connecting is retried."""
        self._pruning: asyncio.TimerHandle | None = None
        self._invalidating: set[asyncio.Future[None]] = set()
        self._retired = False
        self._fallen_back = False
        self._common: set[Place] = set()
        """Backends whose invalidations also reach other hosts."""

    def open(self) -> None:
        """Connect to Redis if a configured backend uses it, so that the start reports whether it is reachable.
        Subscribe to invalidations by tag.
        """
        uses_redis = {Place.REDIS, Place.HYBRID} if self.options.hybrid.uses_redis else {Place.REDIS}
        if uses_redis & self.options.places:
            self._connect()
        if self.options.enabled:
            bus = self._host.message_bus
            bus.subscribe(INVALIDATE_TAGS, self._hear_tags, self._invalidate_tagged)
            bus.subscribe(INVALIDATE_TAGGED, lambda _message: self._invalidate_tagged())

    def of(self, place: Place) -> CacheBackend:
        """Return the backend for a `Type`, which is created at the first call."""
        store = self._stores.get(place)
        if store is None:
            store = self._stores[place] = self._create_backend(place)
        return store

    def every(self) -> tuple[CacheBackend, ...]:
        """Return all configured backends. An invalidation must reach each of them, as other workers may have stored
        entries there.
        """
        return tuple(self.of(place) for place in self.options.places)

    def retire(self) -> None:
        """Stop using the memory backend, because another process serves in place of this one.

        That process has a memory of its own, and its invalidations do not reach this one. Redis is common to both.
        """
        self._retired = True
        if self._memory is not None:
            self._memory.retire()

    def fallen_back(self) -> str | None:
        """Return why responses are cached in memory although Redis is configured, if Redis was not reached at the
        start; else None. An invalid address of Redis is no such reason."""
        if self._fallen_back:
            return (
                "responses are cached in memory until the service is restarted, as Redis was not reached at the start"
            )
        return None

    def require_shared_or_serving(self, place: Place) -> None:
        """Raise `Problem` 503 if an invalidation in this process would not reach the process that serves now: another
        process has taken over, and the backend of this `Type` is a memory of its own."""
        retired = self._retired or (self._memory is not None and self._memory.retired)
        if retired and place not in self._common:
            raise unavailable(
                "another process has replaced this one and has a cache of its own; "
                "repeat the request on a new connection"
            )

    async def invalidate_tags(self, tags: Sequence[str]) -> int:
        """Invalidate all responses with one of these tags, and return their number. Raises `Problem` 503 if that is not
        confirmed everywhere.
        """
        for place in self.options.places:
            self.require_shared_or_serving(place)
        count = 0
        for store in self.every():
            for tag in tags:
                result = store.invalidate_tag(tag)
                count += await result if isinstance(result, Awaitable) else result
        return count

    def _hear_tags(self, message: bytes) -> None:
        """Invalidate tags that the supervisor has received (`NOTIFY rowcall, 'forget orders, customer:5'`). message:
        the tags, separated by commas or blanks.
        """
        self._invalidate_later(message.decode().replace(",", " ").split())

    def _invalidate_tagged(self) -> None:
        """Invalidate all responses with tags, because invalidations of tags may have been lost."""
        self._invalidate_later((TAGGED,))

    def _invalidate_later(self, tags: Sequence[str]) -> None:
        """Invalidate these tags in all backends; in Redis in the background, and again until it has confirmed that."""
        for tag in tags:
            for store in self.every():
                result = store.invalidate_tag(tag)
                if isinstance(result, Awaitable):
                    task = asyncio.ensure_future(_invalidate_until_done(store, tag, result))
                    self._invalidating.add(task)
                    task.add_done_callback(self._invalidating.discard)

    def _create_backend(self, place: Place) -> CacheBackend:
        """Create the backend for a `Type`."""
        if place is Place.MEMORY or (place is Place.HYBRID and not self.options.hybrid.uses_redis):
            return self._create_memory_backend()
        return _ConnectingBackend(self._backend_with_redis(place), self._absent)

    async def _backend_with_redis(self, place: Place) -> CacheBackend:
        """Wait until it is known whether Redis is used, and return the backend for a `Type` that is configured with
        Redis: the memory backend if Redis is not used (`_connect_to_redis`)."""
        redis = await self._connect()
        if redis is None:
            return self._create_memory_backend()
        self._common.add(place)
        if place is Place.REDIS:
            return redis
        from rowcall.service.shared_state.hybrid_cache import HybridCache

        return HybridCache(redis, self._create_memory_backend(), self.options.hybrid)

    def _connect(self) -> asyncio.Task[RedisCache | None]:
        """Return the task that connects to Redis. All backends share this connection."""
        if self._redis is None:
            self._redis = asyncio.get_running_loop().create_task(self._connect_to_redis())
        return self._redis

    async def _connect_to_redis(self) -> RedisCache | None:
        """Connect to Redis. Return None if the memory backend of the host is used instead (caching-28 to caching-30).

        The first worker of a host decides, and all its workers do the same: if one worker cached in memory and another
        in Redis, an invalidation would not reach both. If Redis was chosen and is not reached here, set `_absent`, and
        try again until it is.
        """
        # Imported here, so that only services with Redis load its client.
        from rowcall.service.shared_state.redis_link import RedisLink

        try:
            address = parse_redis(self.options.redis)
        except BadAddressError as error:
            log.error("CacheOptions:RedisConfiguration: %s; responses are cached in memory instead", error)
            return None
        link = RedisLink(address)
        reason = await _try_to_connect(link, address.attempts)
        stored = self._host.first_proposal("answers-in", "redis" if reason is None else "memory")
        if stored != "redis":
            if reason is None:
                await link.close()
            why = reason or "the first worker could not reach it"
            log.error("Redis at %s cannot be reached: %s; responses are cached in memory instead", address, why)
            self._fallen_back = True
            return None
        if reason is not None:
            log.warning("Redis at %s is gone, requests go on without it: %s", address, reason)
            self._absent.set()
            while reason is not None:
                await asyncio.sleep(AGAIN_SECONDS)
                reason = await _try_to_connect(link, 1)
            log.warning("Redis at %s is back", address)
        return self._create_redis_backend(link)

    def _create_redis_backend(self, link: RedisLink) -> RedisCache:
        """Create the Redis backend, and let it release the leases of workers that exit."""
        from rowcall.service.shared_state.redis_cache import RedisCache

        cache = RedisCache(link, self._host.name, os.getpid())
        self._host.message_bus.subscribe(WORKER_GONE, lambda message: cache.worker_gone(int(message)))
        return cache

    def largest(self, place: Place) -> int:
        """Return the size in bytes from which a response is not stored."""
        most = min(self.options.memory // LARGEST, MOST_BUFFERED)
        return min(most, self.options.hybrid.largest_answer + 1) if place is Place.HYBRID else most

    def _create_memory_backend(self) -> MemoryCache:
        """Return the memory backend, which is created once."""
        if self._memory is None:
            self._memory = MemoryCache(
                self._host.cached_responses("answers", self.options.memory), self._host.message_bus
            )
            self._prune_later(self._memory)
            if self._retired:
                self._memory.retire()
        return self._memory

    def _prune_later(self, memory: MemoryCache) -> None:
        """Remove expired entries of the memory backend every `prune_seconds` from now on."""

        def prune() -> None:
            memory.prune()
            self._prune_later(memory)

        self._pruning = asyncio.get_running_loop().call_later(self.options.prune_seconds, prune)

    async def close(self) -> None:
        if self._pruning is not None:
            self._pruning.cancel()
        if self._redis is not None:
            if self._redis.done() and not self._redis.cancelled() and (redis := self._redis.result()) is not None:
                await redis.link.close()
            self._redis.cancel()
        if self._memory is not None:
            self._memory.close()


class _UnreachableBackend:
    """Backend while Redis is unreachable: every request computes its response, and every invalidation fails."""

    def begin(self, _key: bytes, _time_limit: float) -> LookupResult:
        return NOT_SHARED

    def begin_stale(self, _key: bytes, _time_limit: float, _stale: Stale) -> StaleLookupResult:
        return NOT_SHARED

    def last(self, _key: bytes, _stale: Stale) -> Entry | None:
        return None

    async def invalidate(self, _key: bytes) -> bool:
        raise invalidation_failed()

    async def invalidate_tag(self, _tag: str) -> int:
        raise invalidation_failed()

    def close(self) -> None: ...


class _ConnectingBackend:
    """Stands for a backend that is still connecting. absent: set while the backend is known to be unreachable."""

    def __init__(self, coming: Awaitable[CacheBackend], absent: asyncio.Event) -> None:
        self._coming = asyncio.ensure_future(coming)
        self._absent = absent
        self._nothing: CacheBackend = _UnreachableBackend()

    def _call_backend(self, call: Callable[[CacheBackend], Result | Awaitable[Result]]) -> Result | Awaitable[Result]:
        """Run `call` with the backend if it has connected, or with one that caches nothing if it is known to be
        unreachable. Return the result, or an awaitable of it while neither is known yet."""
        if self._coming.done():
            return call(self._coming.result())
        return call(self._nothing) if self._absent.is_set() else self._call_later(call)

    async def _call_later(self, call: Callable[[CacheBackend], Result | Awaitable[Result]]) -> Result:
        """Wait until the backend has connected, or is known to be unreachable, and return the result of `call` as
        `_call_backend` does.
        """
        absent = asyncio.ensure_future(self._absent.wait())
        try:
            await asyncio.wait((self._coming, absent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            absent.cancel()
        result = call(self._coming.result() if self._coming.done() else self._nothing)
        return await result if isinstance(result, Awaitable) else result

    def begin(self, key: bytes, time_limit: float) -> LookupResult | Awaitable[LookupResult]:
        if self._coming.done():
            return self._coming.result().begin(key, time_limit)
        return self._call_backend(lambda store: store.begin(key, time_limit))

    def begin_stale(
        self, key: bytes, time_limit: float, stale: Stale
    ) -> StaleLookupResult | Awaitable[StaleLookupResult]:
        return self._call_backend(lambda store: store.begin_stale(key, time_limit, stale))

    def last(self, key: bytes, stale: Stale) -> Entry | Awaitable[Entry | None] | None:
        return self._call_backend(lambda store: store.last(key, stale))

    def invalidate(self, key: bytes) -> bool | Awaitable[bool]:
        return self._call_backend(lambda store: store.invalidate(key))

    def invalidate_tag(self, tag: str) -> int | Awaitable[int]:
        return self._call_backend(lambda store: store.invalidate_tag(tag))

    def close(self) -> None:
        self._coming.cancel()


async def _try_to_connect(link: RedisLink, attempts: int) -> str | None:
    """Try to connect. Return why it failed, or None if it succeeded. attempts: at least one is made."""
    from rowcall.service.shared_state.redis_connection import FAILURES

    reason = ""
    for attempt in range(max(1, attempts)):
        try:
            await link.connect()
        except FAILURES as error:
            reason = str(error).strip() or "no answer"
            await asyncio.sleep(0.1 * attempt)
        else:
            return None
    return reason


async def _invalidate_until_done(store: CacheBackend, tag: str, invalidation: Awaitable[int]) -> None:
    """Repeat an invalidation by tag until it succeeds: no client waits for it that could repeat a failed one.
    invalidation: the first attempt, which has begun.
    """
    while True:
        try:
            await invalidation
        except Problem as problem:
            log.error("the tag %s is not invalidated yet, tried again: %s", tag, problem.detail)
        else:
            return
        await asyncio.sleep(AGAIN_SECONDS)
        retry = store.invalidate_tag(tag)
        if not isinstance(retry, Awaitable):
            return
        invalidation = retry
