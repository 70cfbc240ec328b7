"""The memory backend: cached responses in the shared state of the host, where all workers see every change at once.

Responses are in a table in shared memory (`ext.response_cache.table`), together with the leases, which record that a
response is being computed and whether other processes wait for it. The lease makes an invalidation final: the
invalidation ends it together with the response, and a response whose lease has ended is not stored. So no response that
was read before an invalidation outlives it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

from rowcall.core.cache.entry import Entry
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.ext.driver.cache_fast_path import CacheLookup, CacheWriter, Lease
from rowcall.ext.response_cache.table import AWAITED, FULL, GONE, HELD, INVALIDATED, ResponseTable
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.shared_state.message_bus import WORKER_GONE, MessageBus
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
    problem_of,
    problem_text,
    release_unused_lease,
)

GRACE = 5.0
"""Seconds after the deadline of a lease holder for which other requests still wait for it."""
LARGEST = 16
"""A response larger than this fraction of the table is not stored: half of a shard of the table."""
UNSHARED = 10.0
"""Seconds for which requests do not wait again for a response that turned out to be too large."""
MOST_UNSHARED = 4096
"""Maximum number of names for which `UNSHARED` applies; beyond it, all of them are forgotten."""
TOPIC = "answers"
"""Topic of the message bus for outcomes of leases."""
INVALIDATED_AT_ONCE = 256
"""Entries of a tag that are removed under one lock; other lookups wait for that long."""
LONGEST_NAME = 1024
"""Maximum length of a key in bytes that is stored as it is."""
_BEGINNING = 16

now = time.monotonic
"""Monotonic clock: the same for all processes of the host, and unaffected by changes of the wall clock."""


def stored_name(key: bytes) -> bytes:
    """Return the name under which a key is stored: the key, or if it is long, its beginning and its hash.

    No unhashed key has the length of a hashed name.
    """
    if len(key) <= LONGEST_NAME:
        return key
    name = key[:_BEGINNING] + hashlib.sha256(key).digest()
    return name + bytes(LONGEST_NAME + 1 - len(name))


class MemoryLease(Lease):
    """A lease of the memory backend."""

    __slots__ = ()

    cache: MemoryCache

    def announce(self, tags: tuple[str, ...], seconds: float | None) -> None:
        """Set the tags of the response, which `keep` compares with invalidations since the lease was acquired. Other
        backends store tags and lifetime here; this one does not need `seconds`."""
        self.tags = tags

    def last(self, stale: Stale) -> Entry | None:
        return self.cache.last_named(self.name, stale)

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        at = now()
        if seconds is not None:
            body, rows, is_null, _written, _ends, _fresh, head, tags = entry
            fresh = at + seconds
            entry = Entry(body, rows, is_null, at, fresh + stale, fresh if stale else 0.0, head, tags)
        self.cache.complete(self, entry, at)

    def release_unshared(self) -> None:
        self.cache.release_unshared(self)

    def give_up(self, problem: Problem | None) -> None:
        self.cache.end(self, RETRY_LOOKUP if problem is None else problem)


class MemoryCache:
    """Cache backend in shared memory. Construct it in the running event loop. table: shared by all processes of the
    host.
    """

    def __init__(self, table: ResponseTable[Entry], message_bus: MessageBus) -> None:
        self._table = table
        self._largest = table.size // LARGEST
        self._message_bus = message_bus
        self._waiters = SingleFlightWaiters()
        self._unshared: dict[bytes, float] = {}
        self._ends = (
            message_bus.subscribe(TOPIC, self._hear, self._waiters.resolve_all),
            message_bus.subscribe(WORKER_GONE, lambda message: self._release_process(int(message))),
        )

    # --- lookup ----------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> Entry | None:
        """Return the stored entry of a key, also a stale one; None if there is none."""
        return self._table.find(stored_name(key), now())

    def begin(self, key: bytes, time_limit: float) -> LookupResult | Awaitable[LookupResult]:
        name = key if len(key) <= LONGEST_NAME else stored_name(key)
        if self._unshared and self._is_unshared(name):
            return self._table.find(name, now()) or NOT_SHARED
        result = self._acquire(name, time_limit, fresh=False)
        return self._wait(name, time_limit, fresh=False) if result is None else result

    def begin_stale(
        self, key: bytes, time_limit: float, stale: Stale
    ) -> StaleLookupResult | Awaitable[StaleLookupResult]:
        name = stored_name(key)
        at = now()
        entry = self._table.find(name, at)
        if entry is not None and (not entry.fresh or at < entry.fresh):
            return entry
        if self._unshared and self._is_unshared(name):
            return NOT_SHARED
        result = self._acquire(name, time_limit, fresh=True)
        if entry is not None and now() < entry.fresh + stale.revalidate:
            if result is None or isinstance(result, NotShareable):
                return StaleEntry(entry, None)
            return result if isinstance(result, Entry) else StaleEntry(entry, result)
        return self._wait(name, time_limit, fresh=True) if result is None else result

    def last(self, key: bytes, stale: Stale) -> Entry | None:
        return self.last_named(stored_name(key), stale)

    def last_named(self, name: bytes, stale: Stale) -> Entry | None:
        """Return the entry that may be used because a new one could not be computed, or None. name: under which the key
        is stored. stale: for how long a stale entry may be used.
        """
        entry = self._table.find(name, now())
        return None if entry is None or (entry.fresh and now() >= entry.fresh + stale.error) else entry

    def _acquire(self, name: bytes, time_limit: float, *, fresh: bool) -> LookupResult | None:
        """Return the entry, a new lease, or `NOT_SHARED`; None if another request holds the lease and will report the
        result.

        name: under which the key is stored. time_limit: of this request in seconds; a new lease expires `GRACE` seconds
        after it; 0: no limit. fresh: do not accept a stale entry.
        """
        at = now()
        result = self._table.begin(name, at + time_limit + GRACE if time_limit > 0 else 0.0, at, fresh)
        if isinstance(result, Entry):
            return result
        if result == HELD:
            return None
        return NOT_SHARED if result == FULL else MemoryLease(self, name, result, at)

    def _wait(self, name: bytes, time_limit: float, *, fresh: bool) -> Awaitable[LookupResult]:
        """Register a waiting request now, and return the awaitable of its result. Parameters, result and errors: as for
        `_wait_for_outcome`."""
        # Join now, not when it is first awaited: a result reported in between must not be missed.
        return self._wait_for_outcome(name, self._waiters.join(name), time_limit, fresh=fresh)

    async def _wait_for_outcome(
        self, name: bytes, future: asyncio.Future[Outcome], time_limit: float, *, fresh: bool
    ) -> LookupResult:
        """Wait for the outcome of the request that computes; look up again if it ends without a response. Raises
        `Problem` as `begin` does.

        name: under which the key is stored. future: as `SingleFlightWaiters.join` has returned it. time_limit: as for
        `begin`. fresh: as for `_acquire`.
        """
        until = now() + time_limit
        while True:
            outcome = await self._waiters.wait(name, future, max(0.001, until - now()) if time_limit > 0 else 0)
            if not isinstance(outcome, RetryLookup):
                return outcome
            result = self._acquire(name, time_limit, fresh=fresh)
            if result is not None:
                return result
            # Join without an await in between: otherwise the result could be reported before this request waits for it.
            future = self._waiters.join(name)

    def _is_unshared(self, name: bytes) -> bool:
        """Return whether requests for this name do not wait for each other at present."""
        until = self._unshared.get(name)
        if until is None:
            return False
        if now() < until:
            return True
        del self._unshared[name]
        return False

    # --- steps -----------------------------------------------------------------------------------------------------

    def lookup(
        self,
        prefix: bytes,
        key_mask: int,
        time_limit: float,
        compute: tuple[Step, ...],
        on_hit: Step | None,
        report: Callable[[RequestContext, str], None] | None,
        otherwise: Step,
    ) -> Step:
        """Return the step that looks up the response of a request before the routine runs.

        Hits, and misses that no other request computes, are handled in Cython (`ext.driver.cache_fast_path`). prefix,
        key_mask: of the keys (`encode_key`). time_limit: as for `begin`. compute: the steps that compute and store the
        response. on_hit: called for a hit, for the log; None: no call. report: called with the outcome, for the cache
        status header; None: no call. otherwise: the step in Python that handles all other requests, such as those that
        have to wait.
        """
        seconds = time_limit + GRACE if time_limit > 0 else 0.0
        key = (prefix, key_mask, self._table, seconds, LONGEST_NAME, self._unshared)
        return CacheLookup(*key, self, MemoryLease, release_unused_lease, compute, on_hit, report, otherwise)

    def cache_writer(self, seconds: float | None, largest: int, most: int, otherwise: Step, *, needs_row: bool) -> Step:
        """Return the step that stores the result, as `MemoryLease.keep` does.

        seconds: lifetime; None: until invalidated. largest: size in bytes from which a response is not stored. most:
        maximum number of rows; 0: no limit. needs_row: a result without a row is not stored. otherwise: the Python step
        for all other cases.
        """
        lifetime = -1.0 if seconds is None else seconds
        most_bytes = min(largest, self._largest + 1)
        completed = self._report_stored
        waiting = self._waiters.futures
        return CacheWriter(
            self._table.store_and_release,
            waiting,
            completed,
            release_unused_lease,
            lifetime,
            most_bytes,
            needs_row,
            most,
            otherwise,
        )

    def _report_stored(self, lease: Lease, values: tuple[Any, ...], flags: int) -> None:
        """Report an entry that the cache writer has stored. values: the members of the entry. flags: as for
        `_report_cached`.
        """
        self._report_cached(lease, Entry._make(values), flags)

    # --- completion ------------------------------------------------------------------------------------------------

    def complete(self, lease: MemoryLease, entry: Entry, at: float) -> None:
        """Store the response, unless it was invalidated while it was computed, and deliver it to the waiting requests.
        If it is too large for the table, it is neither stored nor delivered, and the lease ends as by
        `release_unshared`.

        at: the time now, by the monotonic clock.
        """
        if len(entry.body) > self._largest:
            self.release_unshared(lease)
            return
        flags = self._table.store_and_release(lease.name, lease.number, lease.began, entry, at)
        self._report_cached(lease, entry, flags)

    def _report_cached(self, lease: Lease, entry: Entry, flags: int) -> None:
        """Report to waiting requests that a response is stored, or that it was invalidated meanwhile. flags: result of
        ending the lease in the table.
        """
        self._report_outcome(lease.name, RETRY_LOOKUP if flags != GONE and flags & INVALIDATED else entry, flags)

    def release_unshared(self, lease: MemoryLease) -> None:
        """End a lease whose response is not stored: each waiting request computes its own. For `UNSHARED` seconds,
        requests of this process for the same key do not wait for each other."""
        if len(self._unshared) >= MOST_UNSHARED:
            self._unshared.clear()
        self._unshared[lease.name] = now() + UNSHARED
        self.end(lease, NOT_SHARED)

    def end(self, lease: MemoryLease, outcome: Outcome) -> None:
        """End a lease without a stored response, and report the outcome to the waiting requests."""
        self._report_outcome(lease.name, outcome, self._table.release(lease.name, lease.number))

    def _report_outcome(self, name: bytes, outcome: Outcome, flags: int) -> None:
        """Report the outcome to the waiting requests, in other processes too if some wait there. name: under which the
        key is stored. flags: result of ending the lease in the table.
        """
        if self._waiters.has(name):
            # If it was invalidated meanwhile, requests that wait now wait for another lease.
            self._waiters.resolve(name, RETRY_LOOKUP if flags == GONE else outcome)
        if flags != GONE and flags & AWAITED:
            # Other processes find a stored response by another lookup.
            self._message_bus.publish(TOPIC, _message(name, RETRY_LOOKUP if isinstance(outcome, Entry) else outcome))

    def _hear(self, message: bytes) -> None:
        """Receive the outcome of a lease of another process. message: from `_message`."""
        length = int.from_bytes(message[:2], "big")
        name, kind, rest = message[2 : 2 + length], message[2 + length : 3 + length], message[3 + length :]
        outcome: Outcome = RETRY_LOOKUP
        if kind == PROBLEM:
            outcome = problem_of(rest)
        elif kind == b"a":
            outcome = NOT_SHARED
        self._waiters.resolve(name, outcome)

    def _release_process(self, process: int) -> None:
        """Release the leases of a worker that has ended, and let all waiting requests of this process look up again.
        process: process id of the worker."""
        self._table.release_process(process)
        self._waiters.resolve_all()

    # --- invalidation ----------------------------------------------------------------------------------------------

    def invalidate(self, key: bytes, *, noted: bool = False) -> bool:
        """Invalidate a key. Return whether there was an entry. noted: record it for later calls of `store_copy` as
        well.
        """
        name = stored_name(key)
        result, awaited = self._table.invalidate(name, now(), noted)
        # Requests of this process that wait have begun before the invalidation; they look up again, and one of them
        # computes.
        self._waiters.resolve(name, RETRY_LOOKUP)
        if awaited:
            self._message_bus.publish(TOPIC, _message(name, RETRY_LOOKUP))
        return result

    def invalidate_tag(self, tag: str) -> int:
        """Invalidate all entries of a tag for all processes, and return their number. When this returns, lookups no
        longer find a response that was computed before the call."""
        name, at, count, more = tag.encode(), now(), 0, True
        while more:
            result, more = self._table.invalidate_tag(name, at, INVALIDATED_AT_ONCE)
            count += result
        return count

    def store_copy(self, key: bytes, entry: Entry, seconds: float | None, began: float) -> None:
        """Store a copy of a response that another backend has stored, unless it is too large.

        It is not stored if it was invalidated since `began` (by the monotonic clock), which another worker may have
        noticed earlier. seconds: lifetime; None: until invalidated.
        """
        at = now()
        if len(entry.body) <= self._largest:
            entry = entry._replace(written=at, ends=0.0 if seconds is None else at + seconds)
            self._table.store(stored_name(key), entry, began, at)

    def invalidate_all(self, prefix: bytes) -> None:
        """Remove all entries whose key has this prefix. Leases stay valid: responses that are being computed now are
        stored when they are complete.

        prefix: at most 16 bytes, because a long key is stored as its first 16 bytes and a hash (`stored_name`).
        """
        self._table.invalidate_all(prefix)

    def retire(self) -> None:
        """Remove all entries, and stop using and storing entries in every process of the host: every request computes
        its own response from now on. Waiting requests of this process are woken, those of others are not."""
        self._table.retire()
        self._waiters.resolve_all()

    @property
    def retired(self) -> bool:
        """Whether the table is retired, for all processes of the host."""
        return self._table.retired

    def count(self) -> int:
        """Return the number of entries, including expired ones that are not removed yet."""
        return self._table.count

    def prune(self) -> int:
        """Remove expired entries, and return their number."""
        return self._table.prune(now())

    def close(self) -> None:
        for end in self._ends:
            end()


def _message(name: bytes, outcome: Outcome) -> bytes:
    """Return the message about the outcome of a lease for other processes. name: under which the key is stored."""
    head = len(name).to_bytes(2, "big") + name
    if isinstance(outcome, Problem):
        return head + PROBLEM + problem_text(outcome)
    return head + (b"a" if isinstance(outcome, NotShareable) else b"r")
