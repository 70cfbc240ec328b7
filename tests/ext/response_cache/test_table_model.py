"""A table of responses against a dictionary: leases, invalidation, ends of lifetimes and displacement, in any order.

After each step all invariants of docs/internals/response-cache.md hold. Two processes are two tables on one memory.
The moments are given to the table, so that the test needs no clock.
"""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from rowcall.core.cache.entry import Entry
from rowcall.ext.response_cache.table import AWAITED, FULL, GONE, HELD, INVALIDATED, LEAST, ResponseTable
from tests.harness.effort import examples

KEYS = [b"a", b"b", b"c" * 300, b"d"]
TAGS = ["even", "odd", "all", *(f"tag {number}" for number in range(20))]
SIZES = st.sampled_from([0, 40, 151, 5_000, 30_000])
SECONDS = st.sampled_from([0.0, 2.0])
PROCESSES = st.sampled_from([0, 1])
BLOCK = 256
MOST_MARKS = 64
MARK_SECONDS = 3600
"""After this time a mark may be dropped: a response that took longer is stored although it was invalidated."""


@dataclass(eq=False)
class Lease:
    key: bytes
    process: int
    number: int
    began: float
    ends: float
    awaited: bool = False
    held: bool = field(default=True, repr=False)


class TableModel(RuleBasedStateMachine):
    leases = Bundle("leases")

    def __init__(self) -> None:
        super().__init__()
        self.memory = mmap.mmap(-1, LEAST)
        # Which entries share a bucket depends on the secret: a repeated example has to find the same.
        self.tables = [ResponseTable(self.memory, process, Entry, bytes(16)) for process in (1, 2)]
        self.bodies = itertools.count()
        self.now = 1_000.0
        self.stored: dict[bytes, Entry] = {}
        """Responses from the oldest to the newest."""
        self.held: dict[bytes, Lease] = {}
        self.marks: dict[str | bytes, float] = {}
        """When a tag, or a key, was invalidated last."""
        self.displaced = False
        """Room was short once, so that responses and marks may be gone."""
        self.retired = False

    @initialize()
    def empty(self) -> None:
        assert self.tables[0].count == 0

    # Moments

    @rule(seconds=st.sampled_from([0.01, 0.1, 3.0, 300.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(process=PROCESSES)
    def prune(self, process: int) -> None:
        ended = [key for key, entry in self.stored.items() if self._is_over(entry)]
        count = self.tables[process].prune(self.now)
        assert count <= len(ended)
        assert self.tables[process].count == len(self.stored) - len(ended), "ended responses remain, or others are gone"
        for key in ended:
            del self.stored[key]

    # Leases

    @rule(target=leases, process=PROCESSES, key=st.sampled_from(KEYS), seconds=SECONDS, fresh=st.booleans())
    def begin(self, process: int, key: bytes, seconds: float, fresh: bool) -> object:
        return self._begin(process, key, seconds, fresh)

    @rule(target=leases, lease=leases, forgotten=st.booleans())
    def begin_again(self, lease: Lease, forgotten: bool) -> object:
        """The process of an earlier lease asks again, after the key was invalidated or not."""
        if forgotten:
            self.invalidate(1 - lease.process, lease.key, False)
        return self._begin(lease.process, lease.key, 2.0, False)

    def _begin(self, process: int, key: bytes, seconds: float, fresh: bool) -> object:
        result = self.tables[process].begin(key, self.now + seconds if seconds else 0.0, self.now, fresh)
        entry = self._found(key)
        if entry is not None and not (fresh and entry.fresh and self.now >= entry.fresh):
            assert result == entry
            return multiple()
        if self.retired:
            assert result == FULL
            return multiple()
        lease = self.held.get(key)
        if lease is not None and not (lease.ends and self.now >= lease.ends):
            assert result == HELD
            lease.awaited = lease.awaited or lease.process != process
            return multiple()
        assert isinstance(result, int)
        assert result > 0
        self._release(key)
        self.held[key] = Lease(key, process, result, self.now, self.now + seconds if seconds else 0.0)
        return self.held[key]

    @rule(lease=leases, process=PROCESSES)
    def has(self, lease: Lease, process: int) -> None:
        assert self.tables[process].holds_lease(lease.key, lease.number) == (lease.held and lease.process == process)

    @rule(
        lease=consumes(leases),
        size=SIZES,
        tags=st.lists(st.sampled_from(TAGS), max_size=18, unique=True),
        lifetime=st.sampled_from([0.0, 0.05, 2.0, 400.0]),
        freshness=st.sampled_from([0.0, 1.0]),
    )
    def keep(self, lease: Lease, size: int, tags: list[str], lifetime: float, freshness: float) -> None:
        entry = self._entry(size, tags, lifetime, freshness)
        used = self.tables[0].used
        result = self.tables[lease.process].store_and_release(lease.key, lease.number, lease.began, entry, self.now)
        if not lease.held:
            assert result == GONE
            return
        self._release(lease.key)
        assert result & ~INVALIDATED == (AWAITED if lease.awaited else 0)
        if result & INVALIDATED:
            assert self._may_be_invalidated(tags, lease.began)
        else:
            assert not self._is_invalidated(tags, lease.began)
            self._store(lease.key, entry, used)

    @rule(
        process=PROCESSES,
        key=st.sampled_from(KEYS),
        size=SIZES,
        tags=st.lists(st.sampled_from(TAGS), max_size=3, unique=True),
        age=st.sampled_from([0.0, 2.0]),
    )
    def put(self, process: int, key: bytes, size: int, tags: list[str], age: float) -> None:
        entry = self._entry(size, tags, 0.0, 0.0)
        began, used = self.now - age, self.tables[0].used
        if self.tables[process].store(key, entry, began, self.now):
            assert not self.retired
            assert not self._is_invalidated([*tags, key], began)
            self._store(key, entry, used)
        else:
            assert self.retired or self._may_be_invalidated([*tags, key], began) or self._is_large(entry)
            if self._is_large(entry):
                self.displaced = True
                self._observe()

    @rule(lease=consumes(leases))
    def drop(self, lease: Lease) -> None:
        result = self.tables[lease.process].release(lease.key, lease.number)
        assert result == (GONE if not lease.held else AWAITED if lease.awaited else 0)
        if lease.held:
            self._release(lease.key)

    @rule(process=PROCESSES)
    def release_process(self, process: int) -> None:
        """The process has ended; the other one releases its leases."""
        self.tables[1 - process].release_process(process + 1)
        for lease in list(self.held.values()):
            if lease.process == process:
                self._release(lease.key)

    # Invalidation

    @rule(process=PROCESSES, key=st.sampled_from(KEYS), noted=st.booleans())
    def invalidate(self, process: int, key: bytes, noted: bool) -> None:
        lease = self.held.get(key)
        existed, awaited = self.tables[process].invalidate(key, self.now, noted)
        assert existed == (self._found(key) is not None)
        assert awaited == (lease is not None and lease.awaited)
        self.stored.pop(key, None)
        self._release(key)
        if noted:
            self._mark(key)

    @rule(process=PROCESSES, tag=st.sampled_from([*TAGS, "unknown"]), most=st.sampled_from([1, 3, 100]))
    def invalidate_tag(self, process: int, tag: str, most: int) -> None:
        having = {key: entry for key, entry in self.stored.items() if tag in entry.tags}
        lasting = sum(not self._is_over(entry) for entry in having.values())
        count, more = self.tables[process].invalidate_tag(tag.encode(), self.now, most)
        there = {key: self._is_there(key) for key in having}
        if more:
            assert count <= most <= len(having)
        else:
            assert not any(there.values())
            assert self.displaced or count == lasting
        self.stored = {key: entry for key, entry in self.stored.items() if there.get(key, True)}
        self._mark(tag)

    @rule(process=PROCESSES, number=st.integers(0, 3))
    def invalidate_many_tags(self, process: int, number: int) -> None:
        for name in range(MOST_MARKS // 2):
            self.tables[process].invalidate_tag(b"many %d %d" % (number, name), self.now, 10)
            self._mark(f"many {number} {name}")

    @rule(process=PROCESSES, prefix=st.sampled_from([b"", b"a", b"ccc", b"x"]))
    def invalidate_all(self, process: int, prefix: bytes) -> None:
        self.tables[process].invalidate_all(prefix)
        self.stored = {key: entry for key, entry in self.stored.items() if not key.startswith(prefix)}

    @rule(number=st.integers(0, 30))
    def retire(self, number: int) -> None:
        if number:
            return  # once in many runs
        self.tables[0].retire()
        self.retired = self.displaced = True
        self.stored.clear()
        for key in list(self.held):
            self._release(key)

    # What holds after each step

    @invariant()
    def invariants_hold(self) -> None:
        assert self.tables[0].invariant_violations() == []

    @invariant()
    def both_processes_find_the_same(self) -> None:
        for key in KEYS:
            expected = self._found(key)
            for table in self.tables:
                assert table.find(key, self.now) == expected
        assert self.tables[0].count == len(self.stored)
        assert self.tables[1].retired == self.retired

    # The twin

    def _entry(self, size: int, tags: list[str], lifetime: float, freshness: float) -> Entry:
        body = (b"%d " % next(self.bodies)).ljust(size, b"x")
        ends = self.now + lifetime if lifetime else 0.0
        fresh = self.now + freshness if freshness else 0.0
        return Entry(body, 1, False, self.now, ends, fresh, b"head", tuple(tags))

    def _is_over(self, entry: Entry) -> bool:
        return entry.ends != 0 and self.now >= entry.ends

    def _found(self, key: bytes) -> Entry | None:
        entry = self.stored.get(key)
        return None if entry is None or self._is_over(entry) else entry

    def _release(self, key: bytes) -> None:
        lease = self.held.pop(key, None)
        if lease is not None:
            lease.held = False

    def _mark(self, name: str | bytes) -> None:
        self.marks[name] = self.now
        if self.tables[0].used > LEAST // 2:
            self.displaced = True
            self._observe()
        else:
            self._drop_ended()

    def _is_invalidated(self, names: Sequence[str | bytes], began: float) -> bool:
        """Whether a response with these tags must not be stored."""
        marks = [self.marks.get(name, 0.0) for name in names]
        return any(mark >= began and self.now - mark <= MARK_SECONDS for mark in marks)

    def _may_be_invalidated(self, names: Sequence[str | bytes], began: float) -> bool:
        """Whether it may be refused: if marks were dropped, every earlier computation counts as invalidated."""
        lost = self.displaced or len(self.marks) > MOST_MARKS
        return any(mark >= began for name, mark in self.marks.items() if lost or name in names) or self.retired

    def _is_large(self, entry: Entry) -> bool:
        return len(entry.body) > LEAST // 2

    def _store(self, key: bytes, entry: Entry, used: int) -> None:
        self.stored.pop(key, None)
        self.stored[key] = entry
        if used + len(entry.body) + BLOCK * (len(entry.tags) + 6) > LEAST // 2:
            self.displaced = True
            self._observe()
        else:
            self._drop_ended()

    def _drop_ended(self) -> None:
        """Making room removes responses whose lifetime has ended, as far as the wheel has come."""
        if self.tables[0].count < len(self.stored):
            self.stored = {
                key: entry for key, entry in self.stored.items() if not self._is_over(entry) or self._is_there(key)
            }

    def _is_there(self, key: bytes) -> bool:
        return self.tables[0].find(key, self.stored[key].written) is not None

    def _observe(self) -> None:
        """Take over which responses were displaced: those that had ended, and besides them only the oldest ones."""
        there = {key: self._is_there(key) for key in self.stored}
        lasting = [there[key] for key, entry in self.stored.items() if not self._is_over(entry)]
        assert lasting == sorted(lasting), "a newer response was displaced before an older one"
        self.stored = {key: entry for key, entry in self.stored.items() if there[key]}

    def teardown(self) -> None:
        self.tables.clear()


TestTableModel = TableModel.TestCase
TestTableModel.settings = settings(max_examples=examples(800), stateful_step_count=50, deadline=None)
