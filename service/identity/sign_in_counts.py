"""Counters of failed sign-ins: in the shared state of the host, or in Redis for several hosts.

The keys of the counters are keyed hashes, so that the shared state and Redis contain no names of accounts
(`service.identity.sign_in_guard`).
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import lmdb

from rowcall.core.accounts.lockout import (
    Attempt,
    Limit,
    begin,
    give_back,
    is_delayed,
    is_expired,
    state_without_failures,
)
from rowcall.service.shared_state.environment import Environment, Transaction, items_between
from rowcall.service.shared_state.redis_connection import MALFORMED
from rowcall.service.shared_state.redis_link import LateLink, RedisLink, RedisUnavailableError

log = logging.getLogger("rowcall")

T = TypeVar("T")

SIZE = 16_777_216
"""Bytes: about 100,000 accounts and addresses."""
SWEPT = 2
"""Counters that each attempt examines, so that expired ones are deleted."""
SWEPT_WHEN_FULL = 500
"""Counters that are examined if there is no room for another one."""
_FIRST, _END = b"\0", b"\xff" * 64
"""Keys before and behind all others."""


class Counts(Protocol):
    """The interface of the counters of failed sign-ins, by the key of an account or an address."""

    async def begin(self, key: bytes, limit: Limit) -> Attempt:
        """Count an attempt if it is permitted. If it is not, the result has the seconds to wait."""

    async def give_back(self, key: bytes, limit: Limit) -> None:
        """Remove an attempt from the counter of this key, because it has neither failed nor succeeded."""

    async def forget(self, key: bytes) -> None:
        """Reset the counter of this key: its failures no longer count."""

    async def remember(self, key: bytes, seconds: float) -> None:
        """Let `knows` return True for the key for these seconds."""

    async def knows(self, key: bytes) -> bool:
        """Return whether the key was remembered and its time has not passed."""


class HostCounts:
    """Counters that the workers of a host share. If there is no room for another one, some are deleted, those without
    a delay first. If there is still no room, attempts are permitted and not counted.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._swept = _FIRST
        self._warned = False

    async def begin(self, key: bytes, limit: Limit) -> Attempt:
        def change(transaction: Transaction) -> Attempt:
            now = time.monotonic()
            self._sweep(transaction, SWEPT, lambda state: is_expired(state, now))
            attempt, state = begin(limit, transaction.get(key), now)
            if state is not None:
                transaction.put(key, state)
            return attempt

        return self._write(change) or Attempt(0.0, 0)

    async def give_back(self, key: bytes, limit: Limit) -> None:
        def change(transaction: Transaction) -> None:
            state = give_back(limit, transaction.get(key))
            if state is not None:
                transaction.put(key, state)

        self._write(change)

    async def forget(self, key: bytes) -> None:
        self._write(lambda transaction: transaction.delete(key))

    async def remember(self, key: bytes, seconds: float) -> None:
        self._write(lambda transaction: transaction.put(key, state_without_failures(time.monotonic() + seconds)))

    async def knows(self, key: bytes) -> bool:
        state = self._environment.get(key)
        return state is not None and not is_expired(state, time.monotonic())

    def _write(self, change: Callable[[Transaction], T]) -> T | None:
        """Apply a change and return its result. If the environment is full, make room and try once more; None: it is
        still full.
        """
        for force in (False, True):
            try:
                if force:
                    self._make_room()
                with self._environment.write() as transaction:
                    return change(transaction)
            except lmdb.MapFullError:
                continue
        return None

    def _make_room(self) -> None:
        """Delete some counters, those without a delay first."""
        if not self._warned:
            self._warned = True
            log.warning("more sign-ins fail than the shared state of the host has room for; some counters are reset")
        self._environment.forget_readers()
        now = time.monotonic()
        for disposable in (lambda state: not is_delayed(state, now), lambda _state: True):
            with self._environment.write() as transaction:
                if self._sweep(transaction, SWEPT_WHEN_FULL, disposable):
                    return

    def _sweep(self, transaction: Transaction, most: int, disposable: Callable[[bytes], bool]) -> int:
        """Delete those of the next `most` counters that are disposable; return their number. disposable: decides by the
        stored state.
        """
        entries = list(itertools.islice(items_between(transaction, self._swept, _END), most))
        keys = [key for key, state in entries if disposable(state)]
        for key in keys:
            transaction.delete(key)
        self._swept = entries[-1][0] + b"\0" if len(entries) == most else _FIRST
        return len(keys)


_BEGIN = """
local failures, delay = tonumber(ARGV[1]), tonumber(ARGV[2])
local longest, reset = tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count = tonumber(redis.call('HGET', KEYS[1], 'n') or 0)
local ends = tonumber(redis.call('HGET', KEYS[1], 'u') or 0)
if now < ends then return {ends - now, count} end
count = count + 1
ends = 0
if count >= failures then
  ends = now + math.floor(math.min(longest, delay * 2 ^ math.min(count - failures, 40)))
end
redis.call('HSET', KEYS[1], 'n', count, 'u', string.format('%.0f', ends))
redis.call('PEXPIRE', KEYS[1], reset)
return {0, count}
"""
"""Script of `begin`. Arguments: the members of `Limit`, times in milliseconds. Returns milliseconds to wait, and
failures."""
_GIVE_BACK = """
local count = tonumber(redis.call('HGET', KEYS[1], 'n') or 0)
if count < 1 then return 0 end
redis.call('HSET', KEYS[1], 'n', count - 1)
if count <= tonumber(ARGV[1]) then redis.call('HSET', KEYS[1], 'u', 0) end
return 1
"""
"""Script of `give_back`. Argument: `Limit.failures`. Returns 0 if there is nothing to remove."""
_FORGET = "return redis.call('DEL', KEYS[1])"
_REMEMBER = "return redis.call('SET', KEYS[1], 1, 'PX', ARGV[1])"
_KNOWS = "return redis.call('EXISTS', KEYS[1])"


class RedisCounts:
    """Counters in Redis, by its clock. While Redis is unavailable, the counters of this host are used.

    address: of Redis. host: the counters of this host.
    """

    def __init__(self, address: str, host: HostCounts) -> None:
        self._host = host
        self._redis = LateLink(address, "Auth:Lockout:RedisConfiguration", "each host counts for itself")

    async def begin(self, key: bytes, limit: Limit) -> Attempt:
        values: list[bytes | int] = [limit.failures, *map(_milliseconds, (limit.delay, limit.longest, limit.reset))]
        link = await self._redis.link()
        if link is not None:
            try:
                wait, failures = await link.run(_BEGIN, [_name(key)], values)
                return Attempt(wait / 1000, failures)
            except (RedisUnavailableError, *MALFORMED):
                pass
        return await self._host.begin(key, limit)

    async def give_back(self, key: bytes, limit: Limit) -> None:
        if not await self._run_script(_GIVE_BACK, key, limit.failures):
            await self._host.give_back(key, limit)

    async def forget(self, key: bytes) -> None:
        await self._run_script(_FORGET, key)
        await self._host.forget(key)

    async def remember(self, key: bytes, seconds: float) -> None:
        if not await self._run_script(_REMEMBER, key, _milliseconds(seconds)):
            await self._host.remember(key, seconds)

    async def knows(self, key: bytes) -> bool:
        return bool(await self._run_script(_KNOWS, key)) or await self._host.knows(key)

    async def _run_script(self, script: str, key: bytes, *values: int) -> object:
        """Return the result of a script for the counter of this key, or None if Redis is unavailable. values: its other
        arguments.
        """
        link: RedisLink | None = await self._redis.link()
        if link is None:
            return None
        try:
            return await link.run(script, [_name(key)], list(values))
        except (RedisUnavailableError, *MALFORMED):
            return None


def _milliseconds(seconds: float) -> int:
    """Return the time in milliseconds, rounded down to a whole number of at least 1."""
    return max(1, int(seconds * 1000))


def _name(key: bytes) -> bytes:
    return b"rowcall:sign-ins:" + key.hex().encode()
