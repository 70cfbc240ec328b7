"""The Redis backend: cached responses common to all workers of all hosts.

For each key, Redis has three entries in the same slot of a Cluster (the part in braces is equal):

    rowcall:{KEY}:a   the response, with its lifetime
    rowcall:{KEY}:l   the lease: the number of the request that computes, for LEASE seconds unless it is renewed
    rowcall:{KEY}:w   set if requests wait

    rowcall:tag:{TAG}:names   names of the responses that have a tag, or are being computed with it
    rowcall:tag:{TAG}:ends    of names of responses with a lifetime: when they leave the tag
    rowcall:tag:{TAG}:going   names that are being invalidated by the tag, with the number of the latest invalidation
    rowcall:tag:{TAG}:turns   number of invalidations of the tag

To acquire or release a lease, and to write or invalidate a response, one script each is run, so each is atomic. As in
the memory backend, an invalidation deletes the lease too, and a response whose lease is gone is not written. The name
of a response is added to its tags before it is computed, so an invalidation of a tag deletes its lease as well. A name
leaves a tag when its response has certainly expired, and by an invalidation: this moves all names of the tag aside in
one step, so that a computation that begins later adds its name again, and moved names are processed by the next
invalidation if Redis is lost meanwhile.

All times are those of Redis, so that setting the clock of a host changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
import secrets
import time
from typing import Any

from rowcall.core.cache.entry import Entry, pack_entry, unpack_entry
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.shared_state import entry_sealer
from rowcall.service.shared_state.redis_connection import MALFORMED
from rowcall.service.shared_state.redis_link import RedisLink, RedisUnavailableError
from rowcall.service.shared_state.single_flight import (
    NOT_SHARED,
    PROBLEM,
    RETRY_LOOKUP,
    LookupResult,
    NotShareable,
    Outcome,
    RetryLookup,
    SingleFlightWaiters,
    StaleEntry,
    StaleLookupResult,
    invalidation_failed,
    problem_of,
    problem_text,
)

# The name is part of the protocol between hosts, which may run different versions.
CHANNEL = b"rowcall:answers"
LEASE = 3.0
"""Seconds after which the lease of a dead host expires."""
RENEW = 1.0
"""Seconds between two renewals of a lease."""
COMPUTING = 3600
"""Seconds for which a tag has the name of a response beyond its lifetime: longer than any computation takes."""
MOST_EXPIRED = 10
"""Number of names of expired responses that a tag loses when it gets a name."""
MOST_REFUSALS = 3
"""Number of corrupt entries of one key after which a request computes without the cache."""
AT_ONCE = 100
"""Number of responses of a tag that are invalidated at the same time."""

log = logging.getLogger("rowcall.cache")

_BEGIN = """
local answer = redis.call('GET', KEYS[1])
if answer then return {1, answer} end
local held = redis.call('GET', KEYS[2])
if held then
  redis.call('SET', KEYS[3], '1', 'PX', 60000)
  return {2, held}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {3, ''}
"""
_BEGIN_STALE = """
local answer = redis.call('GET', KEYS[1])
local outdated = false
if answer then
  local over = tonumber(ARGV[3]) - redis.call('PTTL', KEYS[1])
  if over <= 0 or redis.call('PTTL', KEYS[1]) < 0 then return {1, answer} end
  outdated = over < tonumber(ARGV[4])
end
local held = redis.call('GET', KEYS[2])
if held then
  if outdated then return {4, answer} end
  redis.call('SET', KEYS[3], '1', 'PX', 60000)
  return {2, held}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
if outdated then return {5, answer} end
return {3, ''}
"""
_LAND = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
elseif tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
if redis.call('DEL', KEYS[3]) == 1 then redis.call('PUBLISH', ARGV[4], ARGV[5]) end
return 1
"""
_END = """
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[2])
if redis.call('DEL', KEYS[3]) == 1 then redis.call('PUBLISH', ARGV[2], ARGV[3]) end
return 1
"""
_INVALIDATE = """
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
if redis.call('DEL', KEYS[3]) == 1 then redis.call('PUBLISH', ARGV[1], ARGV[2]) end
return found
"""
_RENEW = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
_LEFT = "return redis.call('PTTL', KEYS[1])"
_BREAK = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
_ANNOUNCE = """
local left = redis.call('PTTL', KEYS[1])
redis.call('SADD', KEYS[1], ARGV[1])
if ARGV[2] == '' then
  redis.call('PERSIST', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[1])
  return
end
local life = tonumber(ARGV[2])
if left == -2 or (left >= 0 and left < life) then redis.call('PEXPIRE', KEYS[1], life) end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
redis.call('ZADD', KEYS[2], math.max(ends, now + life), ARGV[1])
if redis.call('PTTL', KEYS[2]) < life then redis.call('PEXPIRE', KEYS[2], life) end
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, ARGV[3])) do
  redis.call('SREM', KEYS[1], name)
  redis.call('ZREM', KEYS[2], name)
end
"""
_MOVE_ASIDE = """
local turn = redis.call('INCR', KEYS[3])
redis.call('PEXPIRE', KEYS[3], ARGV[1])
local names = redis.call('SMEMBERS', KEYS[1])
local life = redis.call('PTTL', KEYS[1])
local before = redis.call('PTTL', KEYS[2])
for _, name in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do names[#names + 1] = name end
for _, name in ipairs(names) do redis.call('ZADD', KEYS[2], turn, name) end
redis.call('DEL', KEYS[1], KEYS[4])
if life == -1 or before == -1 then redis.call('PERSIST', KEYS[2])
elseif #names > 0 then redis.call('PEXPIRE', KEYS[2], math.max(life, before)) end
return {turn, names}
"""
_GONE = """
for index = 2, #ARGV do
  local turn = redis.call('ZSCORE', KEYS[1], ARGV[index])
  if turn and tonumber(turn) <= tonumber(ARGV[1]) then redis.call('ZREM', KEYS[1], ARGV[index]) end
end
"""
_LAST = """
local answer = redis.call('GET', KEYS[1])
if not answer then return false end
local left = redis.call('PTTL', KEYS[1])
if left >= 0 and tonumber(ARGV[1]) - left >= tonumber(ARGV[2]) then return false end
return answer
"""


def stored_name(key: bytes) -> bytes:
    """Return the name of a key in Redis: its hash, because keys contain values that clients send."""
    return hashlib.sha256(key).hexdigest().encode()


def _keys(name: bytes) -> list[bytes]:
    """Return the keys in Redis of the response, its lease and its waiting requests. name: from `stored_name`."""
    return [b"rowcall:{%b}:%b" % (name, kind) for kind in (b"a", b"l", b"w")]


def tag_keys(tag: str) -> list[bytes]:
    """Return the keys in Redis of the names of a tag, of those being invalidated, of its number of `turns`, and of the
    times at which names leave it."""
    name = hashlib.sha256(tag.encode()).hexdigest().encode()
    return [b"rowcall:tag:{%b}:%b" % (name, kind) for kind in (b"names", b"going", b"turns", b"ends")]


def _milliseconds(seconds: float) -> int:
    return max(0, int(seconds * 1000))


class RedisLease:
    """A lease of the Redis backend. name: of the key in Redis. number: of the lease, unique among all hosts."""

    __slots__ = ("_cache", "_name", "_shared", "number", "tags")

    def __init__(self, cache: RedisCache, name: bytes, number: bytes) -> None:
        self._cache = cache
        self._name = name
        self._shared = True
        """The response may be stored: Redis knows its tags."""
        self.tags: tuple[str, ...] = ()
        self.number = number

    async def announce(self, tags: tuple[str, ...], seconds: float | None) -> None:
        self.tags = tags
        # If it cannot be invalidated by its tags, the response must not be stored.
        self._shared = await self._cache.announce(self._name, tags, seconds)

    async def last(self, stale: Stale) -> Entry | None:
        return await self._cache.last_named(self._name, stale)

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        if not self._shared:
            self.release_unshared()
            return
        lifetime = None if seconds is None else seconds + stale
        # The lifetime is a duration and not a point in time, because hosts may have different clocks.
        entry = entry._replace(written=0.0, ends=lifetime or 0.0)
        self._cache.link.background(self._cache.complete(self._name, self.number, entry, lifetime))

    def release_unshared(self) -> None:
        self._cache.end(self._name, self.number, NOT_SHARED)

    def give_up(self, problem: Problem | None) -> None:
        self._cache.end(self._name, self.number, RETRY_LOOKUP if problem is None else problem)


class RedisCache:
    """Cache backend in Redis. Construct it in the running event loop, with a connected link.

    worker: unique among the workers of this host (see `worker_gone`). host: unique among the hosts.
    """

    def __init__(self, link: RedisLink, host: str, worker: int) -> None:
        self.link = link
        self._waiters = SingleFlightWaiters()
        self._open: dict[bytes, tuple[bytes, float]] = {}
        """Leases of this worker by name: number, and when it was acquired."""
        self._host = host.encode()
        self._mark = b"%b-%d-%b-" % (self._host, worker, secrets.token_hex(4).encode())
        self._numbers = 0
        self.awaited: dict[bytes, bytes] = {}
        """Number of the lease that this worker waits for, by name."""
        link.on_back.append(self._waiters.resolve_all)
        link.background(self._renew())
        # Messages published while it was not listening are lost.
        link.background(link.listen(CHANNEL, self._hear, self._waiters.resolve_all))

    # --- lookup ----------------------------------------------------------------------------------------------------

    async def begin(self, key: bytes, time_limit: float) -> LookupResult:
        name = stored_name(key)
        try:
            data = await self.link.get(b"rowcall:{%b}:a" % name)
            entry = None if data is None else self._parse_entry(name, data)
            return entry or await self._acquire(name, time_limit)
        except RedisUnavailableError:
            return NOT_SHARED

    async def begin_stale(self, key: bytes, time_limit: float, stale: Stale) -> StaleLookupResult:
        try:
            return await self._acquire_stale(stored_name(key), time_limit, stale)
        except RedisUnavailableError:
            return NOT_SHARED

    async def last(self, key: bytes, stale: Stale) -> Entry | None:
        return await self.last_named(stored_name(key), stale)

    async def last_named(self, name: bytes, stale: Stale) -> Entry | None:
        """Return the entry that may be used because a new one could not be computed; None if there is none, or Redis
        does not answer. name: of the key in Redis. stale: for how long a stale entry may be used.
        """
        times: list[bytes | int] = [_milliseconds(stale.longest), _milliseconds(stale.error)]
        try:
            data = await self.link.run(_LAST, _keys(name)[:1], times)
        except RedisUnavailableError:
            return None
        return self._parse_entry(name, data) if data else None

    async def remaining_lifetime(self, key: bytes) -> float | None:
        """Return the remaining lifetime in seconds; None: unlimited; 0: no such response. Raises
        `RedisUnavailableError` if Redis does not answer.
        """
        left = await self.link.run(_LEFT, _keys(stored_name(key))[:1], [])
        if not isinstance(left, int):
            raise RedisUnavailableError
        return None if left == -1 else max(0.0, left / 1000)

    async def _acquire(self, name: bytes, time_limit: float) -> LookupResult:
        """Look up a name (of a key in Redis) as `CacheBackend.begin` does. Raises `RedisUnavailableError` if there is
        no answer.
        """
        result = await self._wait_or_begin(name, time_limit, _BEGIN, [])
        return result.entry if isinstance(result, StaleEntry) else result

    async def _acquire_stale(self, name: bytes, time_limit: float, stale: Stale) -> StaleLookupResult:
        """Look up a name (of a key in Redis) as `CacheBackend.begin_stale` does. Raises `RedisUnavailableError` if
        Redis does not answer.
        """
        times = [_milliseconds(stale.longest), _milliseconds(stale.revalidate)]
        return await self._wait_or_begin(name, time_limit, _BEGIN_STALE, times)

    async def _wait_or_begin(self, name: bytes, time_limit: float, script: str, times: list[int]) -> StaleLookupResult:
        """Run a lookup script, and wait while another request computes. name: of the key in Redis. time_limit: as for
        `begin`. times: further arguments of the script. Raises `RedisUnavailableError` if Redis does not answer, and
        `Problem` as `begin` does.
        """
        until = time.monotonic() + time_limit
        refusals = 0
        while True:
            # Join before the command is sent: the result may be published before its reply has been read.
            future = self._waiters.join(name)
            try:
                self._numbers += 1
                number = self._mark + str(self._numbers).encode()
                kind, value = await self.link.run(script, _keys(name), [number, _milliseconds(LEASE), *times])
                refused = kind in (1, 4, 5) and self._parse_entry(name, value) is None
                if refused:
                    refusals += 1
                    await self._remove_refused(name, value)
            except MALFORMED:
                self._waiters.leave(name, future)
                self._forget_awaited(name)
                raise RedisUnavailableError from None
            except BaseException:
                self._waiters.leave(name, future)
                self._forget_awaited(name)
                raise
            if refused and kind != 5 and refusals < MOST_REFUSALS:
                self._waiters.leave(name, future)
                continue
            if kind != 2 or not isinstance(value, bytes):
                self._waiters.leave(name, future)
                return self._parse_lookup_reply(kind, value, name, number)
            self.awaited[name] = value
            self._waiters.record_lease_number(name, future, value)
            # The time limit may have passed already, while the script ran.
            left = max(0.001, until - time.monotonic()) if time_limit > 0 else math.inf
            outcome = await self._await(name, future, left)
            if not isinstance(outcome, RetryLookup):
                self.awaited.pop(name, None)
                return outcome

    def _parse_lookup_reply(self, kind: int, value: bytes, name: bytes, number: bytes) -> StaleLookupResult:
        """Return the result for the reply of a lookup script; a corrupt entry counts as none.

        kind: 1 entry, 3 lease, 5 lease with a stale entry; others: stale entry. value: the entry as Redis stores it.
        name: of the key in Redis. number: of the lease that was requested.
        """
        self.awaited.pop(name, None)
        lease = None
        if kind in (3, 5):
            self._open[name] = (number, time.monotonic())
            lease = RedisLease(self, name, number)
        entry = self._parse_entry(name, value) if kind != 3 else None
        if entry is None:
            return lease or NOT_SHARED
        return entry if kind == 1 else StaleEntry(entry, lease)

    async def _await(
        self, name: bytes, future: asyncio.Future[Outcome], left: float
    ) -> Entry | RetryLookup | NotShareable:
        """Wait for the outcome. Return `RETRY_LOOKUP` after the lifetime of a lease, as a host that has died reports
        nothing. future: as `SingleFlightWaiters.join` has returned it. left: seconds until the time limit of the
        request. Raises `Problem` as `begin` does.
        """
        try:
            if left > LEASE:
                return await self._waiters.wait(name, future, LEASE, late=RETRY_LOOKUP)
            return await self._waiters.wait(name, future, left)
        except BaseException:
            self._forget_awaited(name)
            raise

    def _parse_entry(self, name: bytes, data: Any) -> Entry | None:
        """Return the entry, or None if it is corrupt or belongs to another key. name: of the key in Redis. data: the
        entry as Redis stores it.
        """
        content = entry_sealer.without_digest(name, data) if isinstance(data, bytes) else None
        return None if content is None else unpack_entry(content)

    async def _remove_refused(self, name: bytes, data: bytes) -> None:
        """Delete a corrupt entry, so that it is computed anew, unless it has been replaced. name: of the key in Redis.
        data: the entry as it was read. Raises `RedisUnavailableError` if Redis does not answer.
        """
        log.warning("a cached response in Redis is corrupt; it is removed and computed anew")
        await self.link.run(_BREAK, _keys(name)[:1], [data])

    def _forget_awaited(self, name: bytes) -> None:
        """Remove the name from `awaited` if no request of this worker waits for it any more."""
        if not self._waiters.has(name):
            self.awaited.pop(name, None)

    # --- completion ------------------------------------------------------------------------------------------------

    async def announce(self, name: bytes, tags: tuple[str, ...], seconds: float | None) -> bool:
        """Add the name of a response to its tags, before it is computed. Return False if Redis does not answer. Names
        of expired responses are removed from the tags, `MOST_EXPIRED` at a time.

        seconds: lifetime of the response; None: unlimited.
        """
        life: bytes | int = b"" if seconds is None else _milliseconds(seconds + COMPUTING)
        try:
            for tag in tags:
                names, *_, ends = tag_keys(tag)
                await self.link.run(_ANNOUNCE, [names, ends], [name, life, MOST_EXPIRED])
        except RedisUnavailableError:
            return False
        return True

    async def complete(self, name: bytes, number: bytes, entry: Entry, seconds: float | None) -> bool:
        """Write a computed response, and report the outcome to the requests that wait for it. Return whether the lease
        was still held; False if the response was invalidated meanwhile, or if Redis does not answer.

        name: of the key in Redis. number: of the lease. seconds: lifetime; None: until invalidated; 0: the response is
        only delivered to the requests of this worker that wait for it.
        """
        self._open.pop(name, None)
        life: bytes | int = b"" if seconds is None else _milliseconds(seconds)
        try:
            sealed = entry_sealer.with_digest(name, pack_entry(entry))
            output = await self.link.run(_LAND, _keys(name), [number, sealed, life, CHANNEL, name + b"r"])
        except RedisUnavailableError:
            # It may have been invalidated while it was computed, and Redis cannot confirm that it was not.
            self._waiters.resolve(name, NOT_SHARED)
            return False
        self._waiters.resolve(name, entry if output else RETRY_LOOKUP, number)
        return bool(output)

    def end(self, name: bytes, number: bytes, outcome: Problem | RetryLookup | NotShareable) -> None:
        """End a lease without a stored response, in the background, and report the outcome to the waiting requests.
        name: of the key in Redis. number: of the lease.
        """
        self._open.pop(name, None)
        self.link.background(self._end(name, number, outcome))

    async def _end(self, name: bytes, number: bytes, outcome: Problem | RetryLookup | NotShareable) -> None:
        """Do what `end` does. If the lease has ended already, requests of this worker look up again instead."""
        word = name + (b"a" if isinstance(outcome, NotShareable) else b"r")
        if isinstance(outcome, Problem):
            word = name + PROBLEM + problem_text(outcome)
        with contextlib.suppress(RedisUnavailableError):
            if not await self.link.run(_END, _keys(name), [number, CHANNEL, word]):
                outcome = RETRY_LOOKUP
        self._waiters.resolve(name, outcome)

    # --- invalidation ----------------------------------------------------------------------------------------------

    async def invalidate(self, key: bytes) -> bool:
        """Invalidate a key on all hosts. Return whether there was an entry.

        Raises:
            Problem: Redis does not confirm that the entry is removed.
        """
        try:
            return await self._invalidate(stored_name(key))
        except RedisUnavailableError:
            raise invalidation_failed() from None

    async def _invalidate(self, name: bytes) -> bool:
        """Invalidate the key with this name in Redis, and return whether there was an entry. Raises
        `RedisUnavailableError` if Redis does not answer.
        """
        return bool(await self.link.run(_INVALIDATE, _keys(name), [CHANNEL, name + b"r"]))

    async def invalidate_tag(self, tag: str) -> int:
        """Invalidate a tag on all hosts; return the number of removed entries. Raises `Problem` like `invalidate`."""
        try:
            keys = tag_keys(tag)
            turn, names = await self.link.run(_MOVE_ASIDE, keys, [_milliseconds(COMPUTING)])
            names = list(dict.fromkeys(names))
            count = 0
            for first in range(0, len(names), AT_ONCE):
                some = names[first : first + AT_ONCE]
                count += sum(await asyncio.gather(*map(self._invalidate, some)))
                await self.link.run(_GONE, keys[1:2], [turn, *some])
        except (RedisUnavailableError, *MALFORMED):
            raise invalidation_failed() from None
        return count

    def close(self) -> None:
        """Do nothing: the link is closed by its creator."""

    # --- in the background -----------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew the leases of this worker regularly, without end."""
        while True:
            await asyncio.sleep(RENEW)
            before = time.monotonic() - RENEW
            for name, (number, began) in tuple(self._open.items()):
                if began < before:
                    with contextlib.suppress(RedisUnavailableError):
                        await self.link.run(_RENEW, [_keys(name)[1]], [number, _milliseconds(LEASE)])

    def worker_gone(self, worker: int) -> None:
        """Release the leases of a worker of this host that has died, here and on other hosts. worker: as for the
        construction.
        """
        gone = b"%b-%d-" % (self._host, worker)
        self._break_leases(gone)
        self.link.background(self._publish_gone(gone))

    async def _publish_gone(self, gone: bytes) -> None:
        """Publish to all hosts that a worker has exited. gone: beginning of the numbers of its leases."""
        with contextlib.suppress(RedisUnavailableError):
            await self.link.ask(self.link.client.publish, CHANNEL, b"-" * 64 + b"g" + gone)

    def _break_leases(self, gone: bytes) -> None:
        """End the leases of a worker that has exited, if requests of this worker wait for them. gone: beginning of
        their numbers.
        """
        for name, number in tuple(self.awaited.items()):
            if number.startswith(gone):
                self.link.background(self._break(name, number))

    async def _break(self, name: bytes, number: bytes) -> None:
        """End the lease with this number, if it is still held, and let the waiting requests look up again. name: of its
        key in Redis.
        """
        with contextlib.suppress(RedisUnavailableError):
            await self.link.run(_BREAK, [_keys(name)[1]], [number])
        self._waiters.resolve(name, RETRY_LOOKUP)

    def _hear(self, data: Any) -> None:
        """Receive the outcome of a lease, or the exit of a worker. data: the name of the key in Redis (64 bytes), a
        letter for the kind, and the rest.
        """
        name, kind, rest = data[:64], data[64:65], data[65:]
        outcome: Outcome = RETRY_LOOKUP
        if kind == b"g":
            self._break_leases(rest)
            return
        if kind == PROBLEM:
            outcome = problem_of(rest)
        elif kind == b"a":
            outcome = NOT_SHARED
        self._waiters.resolve(name, outcome)
