"""Answers in the store of the host: what one worker has computed or forgotten, all of them know at once.

An environment of its own holds, by the letter that a key begins with:

    e KEY         NUMBER of the answer, its end
    x TIME NUMBER by the time at which answers end
    t TAG KEY     the answers with a tag; f TAG says when the tag was forgotten last, f NAME when a copy was
    z NUMBER      KEY and answer (`core.cache.entry`), in the order in which they were written: at the end of the table,
                  where pages are filled one after another; the oldest go first when there is no room

Leases stand beside it (`ext.base.leases`): somebody is computing the answer, and whether other processes wait. A lease
is what makes forgetting final: it is deleted while nobody else writes, together with the answer, and an answer whose
lease is gone is not written any more. So nothing that was read before the invalidation outlives it.

The answers of one turn of the event loop are written in one transaction. Until then their leases stand, so everybody
who asks waits for them, and whoever forgets them is told that they were there.
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
from rowcall.ext.base.leases import ANSWERED, AWAITED, FULL, GONE, HELD, TAKEN, WIDTH_OF_NAME, Leases, size_for
from rowcall.service.store.bus import WORKER_GONE, Bus
from rowcall.service.store.environment import LONGEST_KEY, Environment, Transaction, between, last_before, mapped, used
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

_ENTRY, _AFTER_ENTRY, _END = b"e", b"f", b"x"
_TAG, _MARK, _AFTER_MARK = b"t", b"f", b"g"
_ANSWER, _AFTER_ANSWER = b"z", b"{"
_PLACE = struct.Struct(">QdB")
"""Number, end on the monotonic clock (0: none), whether it has tags."""
_NUMBER = 8
_NAME_LENGTH = 2

GRACE = 5.0
"""Seconds after its deadline for which whoever computes is still waited for."""
SPARE = 0.9
"""Part of the room from which old answers make place for new ones."""
EVICTED_AT_ONCE = 64
WRITTEN_AT_ONCE = 64
"""Answers; whoever else writes waits for so long."""
LEASE_ROWS = 4096
_SALT = 16
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
    __slots__ = ("_answers", "began", "lease", "name", "number", "tags")

    def __init__(self, answers: MemoryAnswers, name: bytes, lease: bytes, number: int) -> None:
        self._answers = answers
        self.name = name
        self.lease = lease
        self.number = number
        self.tags: tuple[str, ...] = ()
        self.began = now()

    def announce(self, tags: tuple[str, ...], seconds: float | None) -> None:
        """Forgetting a tag notes when, and this ticket knows since when it is out."""
        self.tags = tags

    def last(self, stale: Stale) -> Entry | None:
        return self._answers.last_named(self.name, stale)

    def keep(self, entry: Entry, seconds: float | None, stale: float = 0.0) -> None:
        if seconds is not None:
            at = now()
            entry = entry._replace(written=at, ends=at + seconds + stale, fresh=at + seconds if stale else 0.0)
        self._answers.land(self, entry)

    def pass_on(self) -> None:
        self._answers.pass_on(self)

    def give_up(self, problem: Problem | None) -> None:
        self._answers.end(self, AGAIN if problem is None else problem)


class MemoryAnswers:
    """To be made in the running event loop."""

    def __init__(self, environment: Environment, bus: Bus) -> None:
        self._environment = environment
        self._read = environment.begin
        self._bus = bus
        self._waiters = Waiters()
        self._leases, self._salt = _leases(environment)
        self._loop = asyncio.get_running_loop()
        self._landing: dict[bytes, tuple[MemoryTicket, Entry]] = {}
        """What is written at the end of this turn of the loop, by name."""
        self._landing_bytes = 0
        self._tickets = 0
        self._unshared: dict[bytes, float] = {}
        self._ends = (
            bus.subscribe(TOPIC, self._hear, self._waiters.tell_all),
            bus.subscribe(WORKER_GONE, lambda message: self._forget_process(int(message))),
        )

    # --- asking ----------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> Entry | None:
        return self._found(stored_key(key), _alive)

    def _found(self, name: bytes, good: Good) -> Entry | None:
        """What is kept, if it is good enough."""
        if name in self._landing:
            self.flush()
        with self._read() as transaction:
            data = _kept(transaction, name)
        return None if data is None else good(data)

    def begin(self, key: bytes, patience: float) -> Found | Awaitable[Found]:
        name = stored_key(key)
        seen = self._leases.ended
        entry = self._found(name, _alive)
        if entry is not None:
            return entry
        if self._unshared and self._is_unshared(name):
            return ALONE
        found = self._board(name, patience, _alive, seen)
        return self._wait(name, self._waiters.join(name), patience, _alive) if found is None else found

    def begin_stale(self, key: bytes, patience: float, stale: Stale) -> FoundStale | Awaitable[FoundStale]:
        name = stored_key(key)
        seen = self._leases.ended
        entry = self._found(name, _alive)
        if entry is not None and (not entry.fresh or now() < entry.fresh):
            return entry
        if self._unshared and self._is_unshared(name):
            return ALONE
        found = self._board(name, patience, _fresh, seen)
        if entry is not None and now() < entry.fresh + stale.revalidate:
            if found is None or isinstance(found, Alone):
                return Outdated(entry, None)
            return found if isinstance(found, Entry) else Outdated(entry, found)
        return found or self._wait(name, self._waiters.join(name), patience, _fresh)

    def last(self, key: bytes, stale: Stale) -> Entry | None:
        return self.last_named(stored_key(key), stale)

    def last_named(self, name: bytes, stale: Stale) -> Entry | None:
        entry = self._found(name, _alive)
        return None if entry is None or (entry.fresh and now() >= entry.fresh + stale.error) else entry

    def _board(self, name: bytes, patience: float, good: Good, seen: int) -> Found | None:
        """None: somebody else is at it, and will tell. good: which answers are good enough. seen: the count of leases
        that had ended before an answer was looked for."""
        lease = hashlib.blake2b(name, digest_size=WIDTH_OF_NAME, person=self._salt).digest()
        at = now()
        self._tickets += 1
        taken = self._leases.take(lease, self._tickets, at + patience + GRACE if patience > 0 else 0.0, at, seen)
        if taken == HELD:
            return None
        if taken == FULL:
            return ALONE
        ticket = MemoryTicket(self, name, lease, self._tickets)
        # Somebody may have written it down between our look and our lease.
        if taken != TAKEN and (entry := self._found(name, good)) is not None:
            self.end(ticket, AGAIN)
            return entry
        return ticket

    async def _wait(self, name: bytes, future: asyncio.Future[Outcome], patience: float, good: Good) -> Found:
        until = now() + patience
        while True:
            outcome = await self._waiters.wait(name, future, max(0.001, until - now()) if patience > 0 else 0)
            if not isinstance(outcome, Again):
                return outcome
            seen = self._leases.ended
            found = self._found(name, good) or self._board(name, patience, good, seen)
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

    def land(self, ticket: MemoryTicket, entry: Entry) -> None:
        """Keeps the answer, unless it was forgotten while it was computed, and tells it to those who wait."""
        size = len(entry.body)
        if size > self._environment.size // LARGEST:
            self.pass_on(ticket)
            return
        if ticket.name in self._landing:
            self.flush()
        if _lives(entry):
            self._leases.answer(ticket.lease, ticket.number)
        self._landing[ticket.name] = (ticket, entry)
        self._landing_bytes += size
        many = len(self._landing) >= WRITTEN_AT_ONCE or self._landing_bytes > self._environment.size // (2 * LARGEST)
        # A forgotten tag counts the answers that it finds.
        if many or entry.tags:
            self.flush()
        elif len(self._landing) == 1:
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Writes down what was computed."""
        if not self._landing:
            return
        landing, self._landing, self._landing_bytes = self._landing, {}, 0
        try:
            self._write(landing)
        except lmdb.MapFullError:
            self._make_room()
            for name, one in landing.items():
                self._write_alone(name, one)

    def _write_alone(self, name: bytes, landing: tuple[MemoryTicket, Entry]) -> None:
        try:
            self._write({name: landing})
        except lmdb.MapFullError:
            self._make_room()
            ticket, entry = landing
            self.end(ticket, AGAIN if entry.tags else entry)

    def _write(self, landing: dict[bytes, tuple[MemoryTicket, Entry]]) -> None:
        forgotten: set[bytes] = set()
        with self._environment.write() as transaction:
            last = _last_number(transaction)
            for name, (ticket, entry) in landing.items():
                mine = self._leases.has(ticket.lease, ticket.number)
                if not mine or (entry.tags and _forgotten_since(transaction, entry.tags, ticket.began)):
                    forgotten.add(name)
                elif _lives(entry):
                    last += 1
                    _put(transaction, name, entry, last)
            if used(transaction) > self._environment.size * SPARE:
                _evict(transaction, max(EVICTED_AT_ONCE, len(landing)), now())
        # Only now: whoever takes the lease next finds the answer.
        for name, (ticket, entry) in landing.items():
            self.end(ticket, AGAIN if name in forgotten else entry)

    def pass_on(self, ticket: MemoryTicket) -> None:
        if len(self._unshared) >= MOST_UNSHARED:
            self._unshared.clear()
        self._unshared[ticket.name] = now() + UNSHARED
        self.end(ticket, ALONE)

    def end(self, ticket: MemoryTicket, outcome: Outcome) -> None:
        """Those who wait are told what has come of it."""
        name = ticket.name
        flags = self._leases.drop(ticket.lease, ticket.number)
        if self._waiters.has(name):
            # Forgotten in the meantime: others wait for another one now.
            self._waiters.tell(name, AGAIN if flags == GONE else outcome)
        if flags != GONE and flags & AWAITED:
            # An answer they find for themselves.
            self._bus.publish(TOPIC, _told(name, AGAIN if isinstance(outcome, Entry) else outcome))

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
        self._leases.forget_process(process)
        self._environment.forget_readers()
        self._waiters.tell_all()

    # --- forgetting ------------------------------------------------------------------------------------------------

    def forget(self, key: bytes, *, noted: bool = False) -> bool:
        """noted: `put` shall know of it too."""
        name = stored_key(key)
        self.flush()
        with self._environment.write() as transaction:
            found, awaited = self._forget(transaction, name)
            if noted:
                transaction.put(_name_mark(name), _TIME.pack(now()))
        # Those who wait in this process were there before; they ask again, and the next one computes.
        self._waiters.tell(name, AGAIN)
        if awaited:
            self._bus.publish(TOPIC, _told(name, AGAIN))
        return found

    def _forget(self, transaction: Transaction, name: bytes) -> tuple[bool, bool]:
        """Whether there was an answer, and whether other processes wait for one."""
        data = _kept(transaction, name)
        _remove(transaction, name)
        flags = self._leases.forget(hashlib.blake2b(name, digest_size=WIDTH_OF_NAME, person=self._salt).digest())
        found = data is not None and _alive(data) is not None
        return (found, False) if flags == GONE else (found or bool(flags & ANSWERED), bool(flags & AWAITED))

    def forget_tag(self, tag: str) -> int:
        """At once for everybody: what is found afterwards was computed afterwards."""
        own = _TAG + _tag_name(tag)
        count = 0
        self.flush()
        with self._environment.write() as transaction:
            transaction.put(_MARK + _tag_name(tag), _TIME.pack(now()))
        while True:
            with self._environment.write() as transaction:
                found = [name for _, name in itertools.islice(between(transaction, own, own + b"\xff" * 17), 256)]
                count += sum(self._forget(transaction, name)[0] for name in found)
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
                _put(transaction, name, entry, _last_number(transaction) + 1)
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
        self.flush()
        with self._read() as transaction:
            return sum(1 for _ in between(transaction, _ENTRY, _AFTER_ENTRY))

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
        self.flush()
        for end in self._ends:
            end()


def _alive(data: bytes) -> Entry | None:
    entry = unpacked(data, _NAME_LENGTH + int.from_bytes(data[:_NAME_LENGTH], "big"))
    return None if entry is None or (entry.ends and now() >= entry.ends) else entry


def _fresh(data: bytes) -> Entry | None:
    entry = _alive(data)
    return None if entry is None or (entry.fresh and now() >= entry.fresh) else entry


def _told(name: bytes, outcome: Outcome) -> bytes:
    head = len(name).to_bytes(2, "big") + name
    if isinstance(outcome, Problem):
        return head + b"p" + problem_text(outcome)
    return head + (b"a" if isinstance(outcome, Alone) else b"r")


def _leases(environment: Environment) -> tuple[Leases, bytes]:
    """Those of all processes, and what nobody outside can know of the places of their names."""
    size = size_for(LEASE_ROWS)
    with mapped(environment.path / "leases", size + _SALT) as memory:
        if not any(memory[size:]):
            memory[size:] = os.urandom(_SALT)
        return Leases(memory, os.getpid()), memory[size:]


def _kept(transaction: Transaction, name: bytes) -> bytes | None:
    place = transaction.get(_ENTRY + name)
    return None if place is None else transaction.get(_ANSWER + place[:_NUMBER])


def _lives(entry: Entry) -> bool:
    return not entry.ends or entry.ends > entry.written


def _last_number(transaction: Transaction) -> int:
    last = last_before(transaction, _AFTER_ANSWER, _ANSWER)
    return int.from_bytes(last[1:], "big") if last else 0


def _put(transaction: Transaction, name: bytes, entry: Entry, number: int) -> None:
    """number: higher than all others."""
    _remove(transaction, name)
    place = _PLACE.pack(number, entry.ends, bool(entry.tags))
    transaction.put(_ENTRY + name, place)
    if entry.ends:
        transaction.put(_end_key(entry.ends, place[:_NUMBER]), b"")
    for tag in entry.tags:
        transaction.put(_tag_key(tag, name), name)
    data = len(name).to_bytes(_NAME_LENGTH, "big") + name + packed(entry)
    transaction.put(_ANSWER + place[:_NUMBER], data, append=True)


def _tag_name(tag: str) -> bytes:
    return hashlib.blake2b(tag.encode(), digest_size=16).digest()


def _name_mark(name: bytes) -> bytes:
    return _MARK + hashlib.blake2b(name, digest_size=16, person=b"answer").digest()


def _tag_key(tag: str, name: bytes) -> bytes:
    return _TAG + _tag_name(tag) + hashlib.blake2b(name, digest_size=16).digest()


def _forgotten_since(transaction: Transaction, tags: tuple[str, ...], began: float) -> bool:
    marks = (transaction.get(_MARK + _tag_name(tag)) for tag in tags)
    return any(mark is not None and _TIME.unpack(mark)[0] >= began for mark in marks)


def _end_key(ends: float, number: bytes) -> bytes:
    return _END + int(ends * 1000).to_bytes(8, "big") + number


def _remove(transaction: Transaction, name: bytes) -> None:
    """The answer and what points to it."""
    place = transaction.pop(_ENTRY + name)
    if place is None:
        return
    _number, ends, tagged = _PLACE.unpack(place)
    answer = _ANSWER + place[:_NUMBER]
    if tagged:
        data = transaction.get(answer) or b""
        entry = unpacked(data, _NAME_LENGTH + len(name))
        for tag in () if entry is None else entry.tags:
            transaction.delete(_tag_key(tag, name))
    transaction.delete(answer)
    if ends:
        transaction.delete(_end_key(ends, place[:_NUMBER]))


def _name_in(data: bytes) -> bytes:
    return data[_NAME_LENGTH : _NAME_LENGTH + int.from_bytes(data[:_NAME_LENGTH], "big")]


def _ended(transaction: Transaction, at: float, most: int) -> list[bytes]:
    found = between(transaction, _END, _END + int(at * 1000).to_bytes(8, "big"))
    answers = (transaction.get(_ANSWER + key[-_NUMBER:]) for key, _ in itertools.islice(found, most))
    return [_name_in(data) for data in answers if data is not None]


def _evict(transaction: Transaction, most: int, at: float) -> None:
    """What has ended goes first, then the oldest."""
    names = _ended(transaction, at, most)
    for _key, data in itertools.islice(between(transaction, _ANSWER, _AFTER_ANSWER), most - len(names)):
        names.append(_name_in(data))
    for name in names:
        _remove(transaction, name)
