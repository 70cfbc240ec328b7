"""Responses and leases in shared memory: one process computes; invalidation or the end of the process ends a lease."""

from __future__ import annotations

import gc
import itertools
import mmap
import multiprocessing
import os
import random
import signal
import time

import pytest

from rowcall.core.cache.entry import Entry
from rowcall.ext.response_cache.table import AWAITED, FULL, GONE, HELD, INVALIDATED, LEAST, SPLIT, ResponseTable


def tables(size: int = 1 << 20) -> tuple[mmap.mmap, ResponseTable[Entry], ResponseTable[Entry]]:
    memory = mmap.mmap(-1, size)
    return memory, ResponseTable(memory, 1, Entry), ResponseTable(memory, 2, Entry)


def acquire_lease(table: ResponseTable[Entry], key: bytes, at: float = 100.0, ends: float = 0.0) -> int:
    number = table.begin(key, ends, at)
    assert isinstance(number, int)
    assert number > 0
    return number


def store_response(table: ResponseTable[Entry], key: bytes, entry: Entry, at: float = 100.0) -> int:
    return table.store_and_release(key, acquire_lease(table, key, at), at, entry, at)


def test_one_process_has_the_lease_and_learns_of_waiting_processes() -> None:
    _, mine, yours = tables()
    number = acquire_lease(mine, b"one")
    assert mine.begin(b"one", 0.0, 100.0) == HELD
    assert acquire_lease(yours, b"other") != number
    assert mine.holds_lease(b"one", number)
    assert not mine.holds_lease(b"one", number + 1)
    assert not yours.holds_lease(b"one", number)
    assert yours.begin(b"one", 0.0, 100.0) == HELD
    assert yours.release(b"one", number) == GONE
    assert mine.release(b"one", number) == AWAITED
    assert mine.release(b"one", number) == GONE


def test_a_cached_response_is_the_same_for_all_processes() -> None:
    _, mine, yours = tables()
    entries = [
        Entry(b"", 0),
        Entry(b"x" * 40, 7, is_null=True),
        Entry(bytes(range(256)) * 100, 3, False, 100.0, 200.0, 150.0, b'["head"]' * 60, ("one", "zwölf")),
        Entry(b"y" * 151, 1, tags=tuple(f"tag {number}" for number in range(40))),
    ]
    for number, entry in enumerate(entries):
        key = b"%d" % number * (1 + 300 * number)
        assert store_response(mine, key, entry) == 0
        for table in (mine, yours):
            assert table.find(key, 101.0) == entry
            assert type(table.find(key, 101.0)) is Entry
            assert table.begin(key, 0.0, 101.0) == entry
    assert yours.find(b"2" * 601, 200.0) is None
    assert isinstance(yours.begin(b"2" * 601, 0.0, 160.0, True), int), "no longer fresh"
    assert mine.count == 4


def test_invalidation_removes_the_response_and_its_lease() -> None:
    _, mine, yours = tables()
    number = acquire_lease(mine, b"one")
    assert yours.begin(b"one", 0.0, 100.0) == HELD
    assert yours.invalidate(b"one", 101.0, False) == (False, True)
    assert mine.store_and_release(b"one", number, 100.0, Entry(b"old", 1), 102.0) == GONE
    assert mine.find(b"one", 102.0) is None
    store_response(mine, b"one", Entry(b"new", 1), 103.0)
    assert yours.invalidate(b"one", 104.0, False) == (True, False)
    assert yours.invalidate(b"one", 104.0, False) == (False, False)
    assert mine.find(b"one", 104.0) is None
    assert mine.used == 0


def test_an_invalidated_tag_removes_its_responses_and_pending_leases() -> None:
    _, mine, yours = tables()
    for number in range(40):
        store_response(mine, b"%d" % number, Entry(b"", 1, tags=("all", "even" if number % 2 == 0 else "odd")))
    on_its_way = acquire_lease(mine, b"way")
    assert yours.invalidate_tag(b"even", 101.0, 15) == (15, True)
    assert yours.invalidate_tag(b"even", 101.0, 15) == (5, False)
    assert [mine.find(b"%d" % number, 101.0) is None for number in range(4)] == [True, False, True, False]
    assert mine.store_and_release(b"way", on_its_way, 100.5, Entry(b"", 1, tags=("odd", "even")), 102.0) == INVALIDATED
    assert mine.find(b"way", 102.0) is None
    assert (
        mine.store_and_release(b"way", acquire_lease(mine, b"way", 102.0), 102.0, Entry(b"", 1, tags=("even",)), 103.0)
        == 0
    )
    assert yours.invalidate_tag(b"all", 104.0, 100) == (20, False)
    assert yours.invalidate_tag(b"unknown", 104.0, 100) == (0, False)
    assert mine.count == 1


def test_beyond_the_limit_of_tag_marks_earlier_responses_are_not_stored() -> None:
    _, mine, _yours = tables(LEAST)
    numbers = [acquire_lease(mine, b"%d" % number) for number in range(2)]
    for number in range(1_000):
        mine.invalidate_tag(b"tag %d" % number, 101.0 + number, 10)
    assert mine.store_and_release(b"0", numbers[0], 100.0, Entry(b"", 1, tags=("tag 0",)), 2000.0) == INVALIDATED
    assert mine.store_and_release(b"1", numbers[1], 100.0, Entry(b"", 1), 2000.0) == 0, "it has no tags"
    assert store_response(mine, b"2", Entry(b"", 1, tags=("tag 0",)), 2000.0) == 0
    assert mine.used < LEAST // 4


def test_a_copy_invalidated_since_is_not_stored() -> None:
    _, mine, yours = tables()
    copy = Entry(b"copy", 1, tags=("all",))
    assert mine.store(b"one", copy, 100.0, 101.0)
    assert yours.invalidate(b"one", 102.0, True) == (True, False)
    assert not mine.store(b"one", copy, 101.5, 103.0)
    assert mine.store(b"one", copy, 102.5, 103.0)
    yours.invalidate_tag(b"all", 104.0, 10)
    assert not mine.store(b"one", copy, 103.0, 105.0)
    mine.store(b"two", copy, 105.0, 105.0)
    mine.store(b"three", copy, 105.0, 105.0)
    mine.invalidate_all(b"t")
    assert mine.count == 0


def test_an_earlier_clock_value_does_not_undo_an_invalidation() -> None:
    """A loop over many responses passes the time of its start, which precedes invalidations by other processes."""
    _, mine, yours = tables()
    number = acquire_lease(mine, b"one", 100.5)
    for table, at in ((mine, 100.0), (yours, 101.0), (mine, 100.0)):
        table.invalidate_tag(b"all", at, 256)
    old = Entry(b"old", 1, tags=("all",))
    assert mine.store_and_release(b"one", number, 100.5, old, 102.0) == INVALIDATED
    assert mine.find(b"one", 102.0) is None
    yours.invalidate(b"two", 101.0, True)
    mine.invalidate(b"two", 100.0, True)
    assert not mine.store(b"two", Entry(b"old", 1), 100.5, 102.0)
    assert mine.store(b"two", Entry(b"new", 1), 101.5, 102.0)


def test_a_lease_ends_with_its_time_limit_or_process() -> None:
    _, mine, yours = tables()
    number = acquire_lease(mine, b"one", 100.0, 105.0)
    assert yours.begin(b"one", 0.0, 104.0) == HELD
    acquire_lease(yours, b"one", 105.0)
    assert not mine.holds_lease(b"one", number)
    mine.release_process(2)
    acquire_lease(mine, b"one", 105.0)


def test_a_full_row_accepts_no_lease_until_one_ends() -> None:
    _, mine, _yours = tables(LEAST)
    numbers = [mine.begin(b"%d" % number, 0.0, 1.0) for number in range(10_000)]
    assert FULL in numbers
    full = numbers.index(FULL)
    assert 64 <= sum(number != FULL for number in numbers) <= 64 * 8
    mine.release_process(1)
    acquire_lease(mine, b"%d" % full)


def test_expired_responses_are_removed_first_then_the_oldest() -> None:
    _, mine, _yours = tables(LEAST)
    body = b"x" * 1000
    for number in itertools.count():
        store_response(mine, b"lasting %d" % number, Entry(body, 1, written=100.0))
        if mine.used > LEAST // 4:
            break
    lasting = number + 1
    for number in range(20):
        store_response(mine, b"short %d" % number, Entry(body, 1, written=100.0, ends=101.0))
    for number in range(1_000):
        store_response(mine, b"later %d" % number, Entry(body, 1, written=200.0, ends=200.01 + number), 200.0 + number)
    assert all(mine.find(b"lasting %d" % number, 1300.0) for number in range(lasting)), "others had ended"
    for number in range(1_000):
        store_response(mine, b"last %d" % number, Entry(body, 1), 1300.0)
    values = [number for number in range(1_000) if mine.find(b"last %d" % number, 1300.0)]
    assert values == list(range(values[0], 1_000))
    assert len(values) > 30
    assert mine.used <= LEAST
    mine.prune(1e6)
    assert mine.count == len(values)


def test_a_response_that_does_not_fit_removes_the_one_it_replaces() -> None:
    _, mine, _yours = tables(LEAST)
    mine.store(b"one", Entry(b"old", 1), 100.0, 100.0)
    assert not mine.store(b"one", Entry(bytes(LEAST), 1), 100.0, 100.0)
    assert mine.find(b"one", 100.0) is None
    mine.store(b"one", Entry(b"new", 1), 100.0, 100.0)
    assert mine.find(b"one", 100.0) == Entry(b"new", 1)


@pytest.mark.slow
def test_pruning_frees_all_blocks_after_any_operations() -> None:
    """Compared with a dictionary until nothing is left."""
    chance = random.Random(7)
    _, mine, yours = tables(1 << 22)
    model: dict[bytes, Entry] = {}
    at = 50.0
    for _ in range(6_000):
        at += chance.random() * 0.05
        key = b"%d" % chance.randrange(300) * chance.choice((1, 90))
        table = chance.choice((mine, yours))
        model = {name: entry for name, entry in model.items() if not entry.ends or at < entry.ends}
        done = chance.random()
        if done < 0.5:
            ends = chance.choice((0.0, at + chance.random() * 20, at + chance.random() * 2000))
            tags = tuple(chance.sample([f"tag {number}" for number in range(40)], chance.choice((0, 0, 1, 3, 20))))
            entry = Entry(bytes(chance.randrange(3_000)), chance.randrange(9), False, at, ends, 0.0, b"", tags)
            table.store(key, entry, at, at)
            model[key] = entry
        elif done < 0.8:
            assert table.find(key, at) == model.get(key)
        elif done < 0.95:
            assert table.invalidate(key, at, False)[0] == (model.pop(key, None) is not None)
        elif done < 0.98:
            tag = f"tag {chance.randrange(40)}"
            gone = [name for name, entry in model.items() if tag in entry.tags]
            assert table.invalidate_tag(tag.encode(), at, 10_000) == (len(gone), False)
            for name in gone:
                del model[name]
            at += 0.001
        else:
            table.prune(at)
            assert table.count == len(model)
    mine.invalidate_all(b"")
    assert mine.count == 0
    assert mine.used <= 40 * 256, "what is left are the marks of forgotten tags"


def _keep_for_ever(memory: mmap.mmap) -> None:
    table = ResponseTable(memory, os.getpid(), Entry)
    for number in itertools.count():
        at = 1.0 + number
        key = b"%d" % (number % 50)
        store_response(
            table, key, Entry(b"%b of %d" % (key, number) * 50, 1, False, at, at + 30, 0.0, b"", ("all",)), at
        )
        table.invalidate(key, at, True)
        if number % 10 == 0:
            table.invalidate_tag(b"all", at, 10)
            store_response(table, b"keeps", Entry(b"whole" * 500, 1), at)
            table.invalidate(b"keeps", at, False)


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork here")
def test_a_killed_process_does_not_block_others() -> None:
    """Wherever it is: some die while they hold the lock, and leave nothing that is half written."""
    memory = mmap.mmap(-1, LEAST)
    mine = ResponseTable(memory, os.getpid(), Entry)
    fork = multiprocessing.get_context("fork")
    for _ in range(30):
        before = mine.acquired_leases
        other = fork.Process(target=_keep_for_ever, args=(memory,))
        other.start()
        while mine.acquired_leases < before + 100:
            assert mine.find(b"keeps", 0.0) in (None, Entry(b"whole" * 500, 1))
        assert other.pid is not None
        os.kill(other.pid, signal.SIGKILL)
        other.join()
        mine.release_process(other.pid)
        mine.invalidate(b"one", 1e9, False)
        assert store_response(mine, b"one", Entry(b"mine", 1), 1e9) == 0
        assert mine.find(b"one", 1e9) == Entry(b"mine", 1)
        mine.prune(1e9)
        mine.invalidate_all(b"")
        assert mine.count == 0


def test_the_shards_of_a_large_table_act_as_one_table() -> None:
    memory = mmap.mmap(-1, SPLIT)
    mine, yours = ResponseTable(memory, 1, Entry), ResponseTable(memory, 2, Entry)
    keys = [b"key %d" % number for number in range(200)]
    for key in keys:
        assert store_response(mine, key, Entry(key, 1, tags=("all", "even" if key[-1] % 2 == 0 else "odd"))) == 0
    assert {yours.find(key, 100.0).body for key in keys} == {*keys}  # type: ignore[union-attr]
    assert yours.count == len(keys)
    late = [acquire_lease(mine, b"late %d" % number, 101.0) for number in range(50)]
    assert len({yours.begin(b"late %d" % number, 0.0, 102.0) for number in range(50)} - {HELD}) == 0
    assert yours.invalidate_tag(b"even", 103.0, 1000) == (100, False)
    assert [key for key in keys if mine.find(key, 104.0)] == [key for key in keys if key[-1] % 2]
    for number, lease in enumerate(late):
        message = mine.store_and_release(b"late %d" % number, lease, 101.0, Entry(b"", 0, tags=("even",)), 104.0)
        assert message == AWAITED | INVALIDATED
    result, more = yours.invalidate_tag(b"all", 105.0, 1)
    assert more
    while more:
        count, more = yours.invalidate_tag(b"all", 105.0, 1)
        result += count
    assert (result, mine.count) == (100, 0)
    store_response(mine, keys[0], Entry(b"again", 1), 106.0)
    mine.invalidate_all(b"key")
    assert mine.count == 0


def test_a_retired_table_returns_and_stores_nothing() -> None:
    _, mine, yours = tables()
    store_response(mine, b"old", Entry(b"old", 1))
    number = acquire_lease(mine, b"coming")
    before = mine.retired
    yours.retire()
    assert (before, mine.retired) == (False, True)
    assert mine.store_and_release(b"coming", number, 100.0, Entry(b"late", 1), 101.0) == GONE
    assert mine.store(b"copy", Entry(b"copy", 1), 101.0, 101.0) is False
    assert {mine.begin(key, 0.0, 101.0) for key in (b"old", b"coming", b"copy")} == {FULL}
    assert (mine.find(b"old", 101.0), mine.count, mine.used) == (None, 0, 0)


@pytest.mark.parametrize("junk", [b"\xff", b"\x01\0\0\0", b"\x07", bytes(range(256))])
def test_overwritten_memory_is_cleared(junk: bytes) -> None:
    """No content of the memory leads outside of it. Tested further by tests/fuzz/fuzz_response_cache.py."""
    memory, mine, yours = tables(LEAST)
    head = 4096
    for number in range(40):
        store_response(mine, b"%d" % number, Entry(b"x" * 500, 1, ends=200.0 + number, tags=("all", f"{number}")))
    memory[head:] = (junk * len(memory))[: len(memory) - head]
    assert yours.find(b"1", 100.0) is None
    yours.invalidate_tag(b"all", 101.0, 10)
    yours.invalidate_all(b"")
    yours.prune(300.0)
    mine.release_process(0x01010101)
    at = time.monotonic() + 1
    yours.store(b"may show it", Entry(b"x" * 40_000, 1, tags=("all",)), at, at)
    yours.retire()
    assert (mine.count, mine.used) == (0, 0)


def test_memory_of_another_size_or_version_is_refused() -> None:
    memory = mmap.mmap(-1, LEAST * 2)
    ResponseTable(memoryview(memory)[:LEAST], 1, Entry)
    with pytest.raises(ValueError, match="another version or size"):
        ResponseTable(memory, 1, Entry)
    with pytest.raises(ValueError, match="another version or size"):
        ResponseTable(mmap_of(b"\x01" * LEAST), 1, Entry)
    with pytest.raises(ValueError, match="too little memory"):
        ResponseTable(memoryview(memory)[: LEAST - 1], 1, Entry)
    with pytest.raises(ValueError, match="secret of another length"):
        ResponseTable(memoryview(memory)[LEAST:], 1, Entry, bytes(15))


def mmap_of(content: bytes) -> mmap.mmap:
    memory = mmap.mmap(-1, len(content))
    memory.write(content)
    return memory


class _Finalized:
    """Garbage that uses the table when it is collected."""

    def __init__(self, table: ResponseTable[Entry]) -> None:
        self.own = self
        self.table = table

    def __del__(self) -> None:
        self.table.find(b"key", 100.0)
        self.table.invalidate(b"other", 100.0, False)


def test_finalizers_may_use_the_table() -> None:
    """Finalizers never run while the lock is held; otherwise this test would not end."""
    _, mine, _ = tables()
    store_response(mine, b"key", Entry(b"body", 1, tags=("one", "two")))
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(300):
            _Finalized(mine)
            assert mine.find(b"key", 100.0) == Entry(b"body", 1, tags=("one", "two"))
            assert mine.begin(b"key", 0.0, 100.0) == Entry(b"body", 1, tags=("one", "two"))
            assert mine.invalidate(b"none", 100.0, False) == (False, False)
            assert mine.invalidate_tag(b"none", 100.0, 1) == (0, False)
    finally:
        gc.set_threshold(*before)
