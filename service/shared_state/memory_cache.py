"""Answers in the store of the host: what one worker has computed or forgotten, all of them know at once.

They stand in a table in shared memory (`ext.response_cache.table`), together with the leases: somebody is computing the
answer, and whether other processes wait. A lease is what makes forgetting final: it ends together with the answer, and
an answer whose lease is gone is not kept any more. So nothing that was read before the invalidation outlives it.
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
from rowcall.ext.response_cache.table import AWAITED, FORGOTTEN, FULL, GONE, HELD, ResponseTable
from rowcall.service.request_context.request_context import RequestContext, Step
from rowcall.service.shared_state.message_bus import WORKER_GONE, MessageBus
from rowcall.service.shared_state.single_flight import (
    NOT_SHARED,
    RETRY_LOOKUP,
    Found,
    FoundStale,
    NotShared,
    Outcome,
    RetryLookup,
    SingleFlightWaiters,
    StaleEntry,
    ending,
    problem_of,
    problem_text,
)

GRACE = 5.0
"""Seconds after its deadline for which whoever computes is still waited for."""
LARGEST = 16
"""An answer larger than this part of the room is not kept: half of a shard of the table."""
UNSHARED = 10.0
"""Seconds for which an answer that turned out to be too large is not waited for again."""
MOST_UNSHARED = 4096
TOPIC = "answers"
FORGOTTEN_AT_ONCE = 256
"""Answers of a tag; whoever else asks waits for so long."""
LONGEST_NAME = 1024
_BEGINNING = 16

now = time.monotonic
"""The same for all processes of the host, and no change of the wall clock moves it."""


def stored_name(key: bytes) -> bytes:
    """Long keys are hashed behind their beginning. No key that is not has the length of such a name."""
    if len(key) <= LONGEST_NAME:
        return key
    name = key[:_BEGINNING] + hashlib.sha256(key).digest()
    return name + bytes(LONGEST_NAME + 1 - len(name))


class MemoryLease(Lease):
    __slots__ = ()

    answers: MemoryCache

    def announce(self, tags: tuple[str, ...], seconds: float | None) -> None:
        """Forgetting a tag notes when, and this ticket knows since when it is out."""
        self.tags = tags

    def last(self, stale: Stale) -> Entry | None:
        return self.answers.last_named(self.name, stale)

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        at = now()
        if seconds is not None:
            body, rows, is_null, _written, _ends, _fresh, head, tags = entry
            fresh = at + seconds
            entry = Entry(body, rows, is_null, at, fresh + stale, fresh if stale else 0.0, head, tags)
        self.answers.complete(self, entry, at)

    def pass_on(self) -> None:
        self.answers.pass_on(self)

    def give_up(self, problem: Problem | None) -> None:
        self.answers.end(self, RETRY_LOOKUP if problem is None else problem)


class MemoryCache:
    """To be made in the running event loop. table: of all processes of the host."""

    def __init__(self, table: ResponseTable[Entry], message_bus: MessageBus) -> None:
        self._table = table
        self._largest = table.size // LARGEST
        self._message_bus = message_bus
        self._waiters = SingleFlightWaiters()
        self._unshared: dict[bytes, float] = {}
        self._ends = (
            message_bus.subscribe(TOPIC, self._hear, self._waiters.tell_all),
            message_bus.subscribe(WORKER_GONE, lambda message: self._release_process(int(message))),
        )

    # --- asking ----------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> Entry | None:
        return self._table.find(stored_name(key), now())

    def begin(self, key: bytes, time_limit: float) -> Found | Awaitable[Found]:
        name = key if len(key) <= LONGEST_NAME else stored_name(key)
        if self._unshared and self._is_unshared(name):
            return self._table.find(name, now()) or NOT_SHARED
        result = self._acquire(name, time_limit, fresh=False)
        return self._wait(name, time_limit, fresh=False) if result is None else result

    def begin_stale(self, key: bytes, time_limit: float, stale: Stale) -> FoundStale | Awaitable[FoundStale]:
        name = stored_name(key)
        at = now()
        entry = self._table.find(name, at)
        if entry is not None and (not entry.fresh or at < entry.fresh):
            return entry
        if self._unshared and self._is_unshared(name):
            return NOT_SHARED
        result = self._acquire(name, time_limit, fresh=True)
        if entry is not None and now() < entry.fresh + stale.revalidate:
            if result is None or isinstance(result, NotShared):
                return StaleEntry(entry, None)
            return result if isinstance(result, Entry) else StaleEntry(entry, result)
        return self._wait(name, time_limit, fresh=True) if result is None else result

    def last(self, key: bytes, stale: Stale) -> Entry | None:
        return self.last_named(stored_name(key), stale)

    def last_named(self, name: bytes, stale: Stale) -> Entry | None:
        entry = self._table.find(name, now())
        return None if entry is None or (entry.fresh and now() >= entry.fresh + stale.error) else entry

    def _acquire(self, name: bytes, time_limit: float, *, fresh: bool) -> Found | None:
        """None: somebody else is at it, and will tell. fresh: no other answer is good enough."""
        at = now()
        result = self._table.begin(name, at + time_limit + GRACE if time_limit > 0 else 0.0, at, fresh)
        if type(result) is Entry:
            return result
        if result == HELD:
            return None
        return NOT_SHARED if result == FULL else MemoryLease(self, name, result, at)  # type: ignore[arg-type]

    def _wait(self, name: bytes, time_limit: float, *, fresh: bool) -> Awaitable[Found]:
        # It listens from now on, whenever it is awaited.
        return self._waited(name, self._waiters.join(name), time_limit, fresh=fresh)

    async def _waited(self, name: bytes, future: asyncio.Future[Outcome], time_limit: float, *, fresh: bool) -> Found:
        until = now() + time_limit
        while True:
            outcome = await self._waiters.wait(name, future, max(0.001, until - now()) if time_limit > 0 else 0)
            if not isinstance(outcome, RetryLookup):
                return outcome
            result = self._acquire(name, time_limit, fresh=fresh)
            if result is not None:
                return result
            # In the same turn of the loop, or the word could come before somebody listens.
            future = self._waiters.join(name)

    def _is_unshared(self, name: bytes) -> bool:
        until = self._unshared.get(name)
        if until is None:
            return False
        if now() < until:
            return True
        del self._unshared[name]
        return False

    # --- as steps --------------------------------------------------------------------------------------------------

    def lookup(
        self,
        prefix: bytes,
        wanted: int,
        time_limit: float,
        steps_to_skip: int,
        on_hit: Step | None,
        tell: Callable[[RequestContext, str], None] | None,
        otherwise: Step,
    ) -> Step:
        """`begin` as the step in front of a run, with as little as there is to do for a hit or a miss that nobody else
        computes. prefix, wanted: of the keys. needless: how many steps a hit leaves out. on_hit, tell: called for the
        log and for the answer's header. otherwise: the same step for all cases."""
        seconds = time_limit + GRACE if time_limit > 0 else 0.0
        key = (prefix, wanted, self._table, seconds, LONGEST_NAME, self._unshared)
        return CacheLookup(*key, self, MemoryLease, ending, steps_to_skip, on_hit, tell, otherwise)

    def cache_writer(self, seconds: float | None, largest: int, most: int, otherwise: Step, *, needs_row: bool) -> Step:
        """`MemoryTicket.keep` as the step behind it. largest: bytes from which an answer is not kept. most: rows; 0:
        however many."""
        lifetime = -1.0 if seconds is None else seconds
        most_bytes = min(largest, self._largest + 1)
        completed = self._completed
        waiting = self._waiters.futures
        return CacheWriter(
            self._table.keep, waiting, completed, ending, lifetime, most_bytes, needs_row, most, otherwise
        )

    def _completed(self, lease: Lease, values: tuple[Any, ...], flags: int) -> None:
        self._report_cached(lease, Entry._make(values), flags)

    # --- ending ----------------------------------------------------------------------------------------------------

    def complete(self, lease: MemoryLease, entry: Entry, at: float) -> None:
        """Keeps the answer, unless it was forgotten while it was computed, and tells it to those who wait."""
        if len(entry.body) > self._largest:
            self.pass_on(lease)
            return
        flags = self._table.keep(lease.name, lease.number, lease.began, entry, at)
        self._report_cached(lease, entry, flags)

    def _report_cached(self, lease: Lease, entry: Entry, flags: int) -> None:
        self._tell(lease.name, RETRY_LOOKUP if flags != GONE and flags & FORGOTTEN else entry, flags)

    def pass_on(self, lease: MemoryLease) -> None:
        if len(self._unshared) >= MOST_UNSHARED:
            self._unshared.clear()
        self._unshared[lease.name] = now() + UNSHARED
        self.end(lease, NOT_SHARED)

    def end(self, lease: MemoryLease, outcome: Outcome) -> None:
        """Those who wait are told what has come of it."""
        self._tell(lease.name, outcome, self._table.drop(lease.name, lease.number))

    def _tell(self, name: bytes, outcome: Outcome, flags: int) -> None:
        """flags: what the end of the lease has said."""
        if self._waiters.has(name):
            # Forgotten in the meantime: others wait for another one now.
            self._waiters.tell(name, RETRY_LOOKUP if flags == GONE else outcome)
        if flags != GONE and flags & AWAITED:
            # An answer they find for themselves.
            self._message_bus.publish(TOPIC, _told(name, RETRY_LOOKUP if isinstance(outcome, Entry) else outcome))

    def _hear(self, message: bytes) -> None:
        length = int.from_bytes(message[:2], "big")
        name, kind, rest = message[2 : 2 + length], message[2 + length : 3 + length], message[3 + length :]
        outcome: Outcome = RETRY_LOOKUP
        if kind == b"p":
            outcome = problem_of(rest)
        elif kind == b"a":
            outcome = NOT_SHARED
        self._waiters.tell(name, outcome)

    def _release_process(self, process: int) -> None:
        """Its leases end with it."""
        self._table.release_process(process)
        self._waiters.tell_all()

    # --- forgetting ------------------------------------------------------------------------------------------------

    def forget(self, key: bytes, *, noted: bool = False) -> bool:
        """noted: `put` shall know of it too."""
        name = stored_name(key)
        result, awaited = self._table.forget(name, now(), noted)
        # Those who wait in this process were there before; they ask again, and the next one computes.
        self._waiters.tell(name, RETRY_LOOKUP)
        if awaited:
            self._message_bus.publish(TOPIC, _told(name, RETRY_LOOKUP))
        return result

    def invalidate_tag(self, tag: str) -> int:
        """At once for everybody: what is found afterwards was computed afterwards."""
        name, at, count, more = tag.encode(), now(), 0, True
        while more:
            result, more = self._table.invalidate_tag(name, at, FORGOTTEN_AT_ONCE)
            count += result
        return count

    def put(self, key: bytes, entry: Entry, seconds: float | None, began: float) -> None:
        """A copy of an answer that somebody else has computed, as it was `began`: unless it was forgotten since, which
        another worker may have heard already."""
        at = now()
        if len(entry.body) <= self._largest:
            entry = entry._replace(written=at, ends=0.0 if seconds is None else at + seconds)
            self._table.put(stored_name(key), entry, began, at)

    def invalidate_all(self, prefix: bytes) -> None:
        """All answers whose key begins so. prefix: no longer than what is left of a long key."""
        self._table.invalidate_all(prefix)

    def retire(self) -> None:
        """Nothing is given or kept from now on: every request is answered for itself."""
        self._table.retire()
        self._waiters.tell_all()

    @property
    def retired(self) -> bool:
        """For all processes of the host."""
        return self._table.retired

    def count(self) -> int:
        """How many answers there are, those that have ended and were not removed yet among them."""
        return self._table.count

    def prune(self) -> int:
        """Removes what has ended; gives how many answers that were."""
        return self._table.prune(now())

    def close(self) -> None:
        for end in self._ends:
            end()


def _told(name: bytes, outcome: Outcome) -> bytes:
    head = len(name).to_bytes(2, "big") + name
    if isinstance(outcome, Problem):
        return head + b"p" + problem_text(outcome)
    return head + (b"a" if isinstance(outcome, NotShared) else b"r")
