"""Answers in the store of the host: what one worker has computed or forgotten, all of them know at once.

An environment of its own holds, by the letter that a key begins with:

    e KEY         an answer (`core.cache.entry`), its place in `o` and its end in front
    l KEY         a lease: somebody is computing the answer, and whether other processes wait
    o NUMBER      KEY, in the order in which answers were written: the oldest go first when there is no room
    x TIME NUMBER KEY, by the time at which answers end
    t TAG KEY     the answers with a tag; f TAG says when the tag was forgotten last, f NAME when a copy was

A lease is what makes forgetting final: it is deleted together with the answer, and an answer whose lease is gone is not
written any more. So nothing that was read before the invalidation outlives it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import logging
import os
import struct
import time
from collections.abc import Awaitable, Callable

import lmdb

from rowcall.core.cache.entry import Entry, packed, unpacked
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.store.bus import WORKER_GONE, Bus
from rowcall.service.store.environment import LONGEST_KEY, Environment, Transaction, between, last_before, used
from rowcall.service.store.flights import (
    AGAIN,
    ALONE,
    Again,
    Alone,
    Found,
    FoundStale,
    Outcome,
    Outdated,
    Waiters,
    problem_of,
    problem_text,
)

log = logging.getLogger("rowcall.cache")

_ENTRY, _LEASE, _ORDER, _AFTER_ORDER, _END, _AFTER_END = b"e", b"l", b"o", b"p", b"x", b"y"
_AFTER_LEASE = b"m"
_TAG, _MARK, _AFTER_MARK = b"t", b"f", b"g"
_PLACE = struct.Struct("<Qd")
_HELD = struct.Struct("<IQdB")
"""Process, number of the ticket, end on the monotonic clock (0: none), whether other processes wait."""

GRACE = 5.0
"""Seconds after its deadline for which whoever computes is still waited for."""
SPARE = 0.9
"""Part of the room from which old answers make place for new ones."""
EVICTED_AT_ONCE = 64
LARGEST = 8
"""An answer larger than this part of the room is not kept."""
UNSHARED = 10.0
"""Seconds for which an answer that turned out to be too large is not waited for again."""
MOST_UNSHARED = 4096
TOPIC = "answers"
MARKED = 3600.0
"""Seconds for which it is known that a tag was forgotten: longer than any computing takes."""
_TIME = struct.Struct("<d")

Good = Callable[[bytes], Entry | None]
"""What is stored → an answer, if it is good enough."""

now = time.monotonic
"""The same for all processes of the host, and no change of the wall clock moves it."""


def stored_key(key: bytes) -> bytes:
    """LMDB's keys are short. What begins with `#` is a hash and nothing else is."""
    return b"=" + key if len(key) <= LONGEST_KEY - 16 else b"#" + hashlib.sha256(key).digest()


class MemoryTicket:
    __slots__ = ("_answers", "_began", "_key", "number", "tags")

    def __init__(self, answers: MemoryAnswers, key: bytes, number: int) -> None:
        self._answers = answers
        self._key = key
        self.number = number
        self.tags: tuple[str, ...] = ()
        self._began = now()

    def announce(self, tags: tuple[str, ...], seconds: float | None) -> None:
        """Forgetting a tag notes when, and this ticket knows since when it is out."""
        self.tags = tags

    def last(self, stale: Stale) -> Entry | None:
        return self._answers.last_named(self._key, stale)

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        if seconds is not None:
            at = now()
            entry = entry._replace(written=at, ends=at + seconds + stale, fresh=at + seconds if stale else 0.0)
        self._answers.land(self._key, self.number, entry, self._began)

    def pass_on(self) -> None:
        self._answers.pass_on(self._key, self.number)

    def give_up(self, problem: Problem | None) -> None:
        self._answers.end(self._key, self.number, AGAIN if problem is None else problem)


class MemoryAnswers:
    """To be made in the running event loop."""

    def __init__(self, environment: Environment, bus: Bus) -> None:
        self._environment = environment
        self._read = environment.begin
        self._bus = bus
        self._waiters = Waiters()
        self._process = os.getpid()
        self._tickets = 0
        self._unshared: dict[bytes, float] = {}
        self._ends = (
            bus.subscribe(TOPIC, self._hear, self._waiters.tell_all),
            bus.subscribe(WORKER_GONE, lambda message: self._forget_process(int(message))),
        )

    # --- asking ----------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> Entry | None:
        with self._read() as transaction:
            data = transaction.get(_ENTRY + stored_key(key))
        return None if data is None else _alive(data)

    def begin(self, key: bytes, patience: float) -> Found | Awaitable[Found]:
        name = stored_key(key)
        with self._read() as transaction:
            data = transaction.get(_ENTRY + name)
        if data is not None and (entry := _alive(data)) is not None:
            return entry
        if self._unshared and self._is_unshared(name):
            return ALONE
        return self._board(name, patience, _alive) or self._wait(name, self._waiters.join(name), patience, _alive)

    def begin_stale(self, key: bytes, patience: float, stale: Stale) -> FoundStale | Awaitable[FoundStale]:
        name = stored_key(key)
        with self._read() as transaction:
            data = transaction.get(_ENTRY + name)
        entry = None if data is None else _alive(data)
        if entry is not None and (not entry.fresh or now() < entry.fresh):
            return entry
        if self._unshared and self._is_unshared(name):
            return ALONE
        found = self._board(name, patience, _fresh)
        if entry is not None and now() < entry.fresh + stale.revalidate:
            if found is None or isinstance(found, Alone):
                return Outdated(entry, None)
            return found if isinstance(found, Entry) else Outdated(entry, found)
        return found or self._wait(name, self._waiters.join(name), patience, _fresh)

    def last(self, key: bytes, stale: Stale) -> Entry | None:
        return self.last_named(stored_key(key), stale)

    def last_named(self, name: bytes, stale: Stale) -> Entry | None:
        with self._read() as transaction:
            data = transaction.get(_ENTRY + name)
        entry = None if data is None else _alive(data)
        return None if entry is None or (entry.fresh and now() >= entry.fresh + stale.error) else entry

    def _board(self, name: bytes, patience: float, good: Good) -> Found | None:
        """None: somebody else is at it, and will tell. good: which answers are good enough."""
        try:
            return self._lease(name, patience, good)
        except lmdb.MapFullError:
            self._make_room()
            return ALONE

    def _lease(self, name: bytes, patience: float, good: Good) -> Found | None:
        with self._environment.write() as transaction:
            data = transaction.get(_ENTRY + name)
            if data is not None and (entry := good(data)) is not None:
                return entry
            held = transaction.get(_LEASE + name)
            if held is not None:
                process, number, ends, awaited = _HELD.unpack(held)
                if not ends or now() < ends:
                    if process != self._process and not awaited:
                        transaction.put(_LEASE + name, _HELD.pack(process, number, ends, 1))
                    return None
            self._tickets += 1
            ends = now() + patience + GRACE if patience > 0 else 0.0
            transaction.put(_LEASE + name, _HELD.pack(self._process, self._tickets, ends, 0))
        return MemoryTicket(self, name, self._tickets)

    async def _wait(self, name: bytes, future: asyncio.Future[Outcome], patience: float, good: Good) -> Found:
        until = now() + patience
        while True:
            outcome = await self._waiters.wait(name, future, max(0.001, until - now()) if patience > 0 else 0)
            if not isinstance(outcome, Again):
                return outcome
            found = self._board(name, patience, good)
            if found is not None:
                return found
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

    # --- ending ----------------------------------------------------------------------------------------------------

    def land(self, name: bytes, number: int, entry: Entry, began: float) -> None:
        """Keeps the answer, unless it was forgotten while it was computed, and tells it to those who wait."""
        if len(entry.body) > self._environment.size // LARGEST:
            self.pass_on(name, number)
            return
        try:
            with self._environment.write() as transaction:
                awaited = self._take_lease(transaction, name, number)
                if awaited is None or (entry.tags and _forgotten_since(transaction, entry.tags, began)):
                    outcome: Outcome = AGAIN
                elif entry.ends and entry.ends <= entry.written:
                    outcome = entry
                else:
                    outcome = entry
                    _put(transaction, name, entry)
                    if used(transaction) > self._environment.size * SPARE:
                        _evict(transaction, EVICTED_AT_ONCE, now())
        except lmdb.MapFullError:
            self._make_room()
            awaited = self._drop_lease(name, number)
            outcome = AGAIN if awaited is None or entry.tags else entry
        self._waiters.tell(name, outcome)
        if awaited:
            self._bus.publish(TOPIC, _told(name, AGAIN))

    def pass_on(self, name: bytes, number: int) -> None:
        if len(self._unshared) >= MOST_UNSHARED:
            self._unshared.clear()
        self._unshared[name] = now() + UNSHARED
        self.end(name, number, ALONE)

    def end(self, name: bytes, number: int, outcome: Outcome) -> None:
        """Nothing is kept; those who wait are told why."""
        awaited = self._drop_lease(name, number)
        # Forgotten in the meantime: others wait for another one now.
        self._waiters.tell(name, AGAIN if awaited is None else outcome)
        if awaited:
            self._bus.publish(TOPIC, _told(name, outcome))

    def _drop_lease(self, name: bytes, number: int) -> bool | None:
        with self._environment.write() as transaction:
            return self._take_lease(transaction, name, number)

    def _take_lease(self, transaction: Transaction, name: bytes, number: int) -> bool | None:
        """Deletes it, and says whether other processes wait. None: it is no longer ours."""
        held = transaction.get(_LEASE + name)
        if held is None:
            return None
        process, found, _ends, awaited = _HELD.unpack(held)
        if process != self._process or found != number:
            return None
        transaction.delete(_LEASE + name)
        return bool(awaited)

    def _hear(self, message: bytes) -> None:
        length = int.from_bytes(message[:2], "big")
        name, kind, rest = message[2 : 2 + length], message[2 + length : 3 + length], message[3 + length :]
        outcome: Outcome = AGAIN
        if kind == b"p":
            outcome = problem_of(rest)
        elif kind == b"a":
            outcome = ALONE
        self._waiters.tell(name, outcome)

    def _forget_process(self, process: int) -> None:
        """Its leases end with it."""
        with self._environment.write() as transaction:
            held = list(between(transaction, _LEASE, _AFTER_LEASE))
            for key, value in held:
                if _HELD.unpack(value)[0] == process:
                    transaction.delete(key)
        self._environment.forget_readers()
        self._waiters.tell_all()

    # --- forgetting ------------------------------------------------------------------------------------------------

    def forget(self, key: bytes, *, noted: bool = False) -> bool:
        """noted: `put` shall know of it too."""
        name = stored_key(key)
        with self._environment.write() as transaction:
            found, awaited = _forget(transaction, name)
            if noted:
                transaction.put(_name_mark(name), _TIME.pack(now()))
        # Those who wait in this process were there before; they ask again, and the next one computes.
        self._waiters.tell(name, AGAIN)
        if awaited:
            self._bus.publish(TOPIC, _told(name, AGAIN))
        return found

    def forget_tag(self, tag: str) -> int:
        """At once for everybody: what is found afterwards was computed afterwards."""
        own = _TAG + _tag_name(tag)
        count = 0
        with self._environment.write() as transaction:
            transaction.put(_MARK + _tag_name(tag), _TIME.pack(now()))
        while True:
            with self._environment.write() as transaction:
                found = [name for _, name in itertools.islice(between(transaction, own, own + b"\xff" * 17), 256)]
                count += sum(_forget(transaction, name)[0] for name in found)
            if len(found) < 256:
                return count

    def put(self, key: bytes, entry: Entry, seconds: float | None, began: float) -> None:
        """A copy of an answer that somebody else has computed, as it was `began`: unless it was forgotten since, which
        another worker may have heard already."""
        at = now()
        name = stored_key(key)
        entry = entry._replace(written=at, ends=0.0 if seconds is None else at + seconds)
        try:
            with self._environment.write() as transaction:
                mark = transaction.get(_name_mark(name))
                forgotten = mark is not None and _TIME.unpack(mark)[0] >= began
                if forgotten or _forgotten_since(transaction, entry.tags, began):
                    return
                _put(transaction, name, entry)
                if used(transaction) > self._environment.size * SPARE:
                    _evict(transaction, EVICTED_AT_ONCE, at)
        except lmdb.MapFullError:
            self._make_room()

    def forget_all(self, prefix: bytes) -> None:
        """All answers whose key begins so."""
        first = _ENTRY + stored_key(prefix)
        while True:
            with self._environment.write() as transaction:
                keys = [key for key, _ in itertools.islice(between(transaction, first, first + b"\xff"), 256)]
                for key in keys:
                    _remove(transaction, key[1:])
            if len(keys) < 256:
                return

    def count(self) -> int:
        """How many answers there are, those that have ended and were not removed yet among them."""
        with self._read() as transaction:
            return sum(1 for _ in between(transaction, _ORDER, _AFTER_ORDER))

    def prune(self) -> int:
        """Removes what has ended; gives how many answers that were."""
        count = 0
        while True:
            with self._environment.write() as transaction:
                ended = _ended(transaction, now(), EVICTED_AT_ONCE)
                for name in ended:
                    _remove(transaction, name)
                for key, mark in list(between(transaction, _MARK, _AFTER_MARK)):
                    if _TIME.unpack(mark)[0] < now() - MARKED:
                        transaction.delete(key)
            count += len(ended)
            if len(ended) < EVICTED_AT_ONCE:
                return count

    def _make_room(self) -> None:
        """The last resort: more was written at one time than the spare room holds."""
        for amount in (EVICTED_AT_ONCE, 8):
            try:
                with self._environment.write() as transaction:
                    _evict(transaction, amount, now())
            except lmdb.MapFullError:
                self._environment.forget_readers()
            else:
                return
        log.warning("the store of kept answers is full and makes no room; answers are not kept for now")

    def close(self) -> None:
        for end in self._ends:
            end()


def _alive(data: bytes) -> Entry | None:
    entry = unpacked(data[_PLACE.size :])
    return None if entry is None or (entry.ends and now() >= entry.ends) else entry


def _fresh(data: bytes) -> Entry | None:
    entry = _alive(data)
    return None if entry is None or (entry.fresh and now() >= entry.fresh) else entry


def _told(name: bytes, outcome: Outcome) -> bytes:
    head = len(name).to_bytes(2, "big") + name
    if isinstance(outcome, Problem):
        return head + b"p" + problem_text(outcome)
    return head + (b"a" if isinstance(outcome, Alone) else b"r")


def _put(transaction: Transaction, name: bytes, entry: Entry) -> None:
    _remove(transaction, name)
    last = last_before(transaction, _AFTER_ORDER, _ORDER)
    number = int.from_bytes(last[1:], "big") + 1 if last else 1
    transaction.put(_ORDER + number.to_bytes(8, "big"), name)
    if entry.ends:
        transaction.put(_end_key(entry.ends, number), name)
    for tag in entry.tags:
        transaction.put(_tag_key(tag, name), name)
    transaction.put(_ENTRY + name, _PLACE.pack(number, entry.ends) + packed(entry))


def _tag_name(tag: str) -> bytes:
    return hashlib.blake2b(tag.encode(), digest_size=16).digest()


def _name_mark(name: bytes) -> bytes:
    return _MARK + hashlib.blake2b(name, digest_size=16, person=b"answer").digest()


def _tag_key(tag: str, name: bytes) -> bytes:
    return _TAG + _tag_name(tag) + hashlib.blake2b(name, digest_size=16).digest()


def _forgotten_since(transaction: Transaction, tags: tuple[str, ...], began: float) -> bool:
    marks = (transaction.get(_MARK + _tag_name(tag)) for tag in tags)
    return any(mark is not None and _TIME.unpack(mark)[0] >= began for mark in marks)


def _end_key(ends: float, number: int) -> bytes:
    return _END + int(ends * 1000).to_bytes(8, "big") + number.to_bytes(8, "big")


def _remove(transaction: Transaction, name: bytes) -> bytes | None:
    """The answer and what points to it."""
    data = transaction.pop(_ENTRY + name)
    if data is not None:
        number, ends = _PLACE.unpack_from(data)
        transaction.delete(_ORDER + number.to_bytes(8, "big"))
        if ends:
            transaction.delete(_end_key(ends, number))
        entry = unpacked(data[_PLACE.size :])
        for tag in () if entry is None else entry.tags:
            transaction.delete(_tag_key(tag, name))
    return data


def _forget(transaction: Transaction, name: bytes) -> tuple[bool, bool]:
    """Whether there was an answer, and whether other processes wait for one."""
    data = _remove(transaction, name)
    held = transaction.pop(_LEASE + name)
    return data is not None and _alive(data) is not None, held is not None and bool(_HELD.unpack(held)[3])


def _ended(transaction: Transaction, at: float, most: int) -> list[bytes]:
    found = []
    for _key, name in between(transaction, _END, _END + int(at * 1000).to_bytes(8, "big")):
        found.append(name)
        if len(found) == most:
            break
    return found


def _evict(transaction: Transaction, most: int, at: float) -> None:
    """What has ended goes first, then the oldest."""
    names = _ended(transaction, at, most)
    for _key, name in between(transaction, _ORDER, _AFTER_ORDER):
        if len(names) >= most:
            break
        names.append(name)
    for name in names:
        _remove(transaction, name)
