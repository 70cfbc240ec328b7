"""Leases in memory that processes share: one has it, forgetting ends it, and nobody's death keeps it."""

from __future__ import annotations

import mmap
import multiprocessing
import os
import signal

from rowcall.ext.base.leases import ANSWERED, AWAITED, FULL, GONE, HELD, TAKEN, TAKEN_ANEW, Leases, size_for

ONE, OTHER = b"1" * 16, b"2" * 16


def test_one_process_has_it_and_is_told_who_waits() -> None:
    memory = mmap.mmap(-1, size_for(4))
    mine, yours = Leases(memory, 1), Leases(memory, 2)
    assert mine.take(ONE, 7, 0.0, 100.0, mine.ended) == TAKEN
    assert mine.take(ONE, 8, 0.0, 100.0, mine.ended) == HELD
    assert yours.take(OTHER, 7, 0.0, 100.0, yours.ended) == TAKEN
    assert mine.has(ONE, 7)
    assert not mine.has(ONE, 8)
    assert not yours.has(ONE, 7)
    assert yours.take(ONE, 8, 0.0, 100.0, yours.ended) == HELD
    assert yours.drop(ONE, 7) == GONE
    assert mine.drop(ONE, 7) == AWAITED
    assert mine.drop(ONE, 7) == GONE


def test_whoever_forgets_ends_it_and_learns_that_an_answer_was_there() -> None:
    memory = mmap.mmap(-1, size_for(4))
    mine, yours = Leases(memory, 1), Leases(memory, 2)
    mine.take(ONE, 7, 0.0, 100.0, mine.ended)
    mine.answer(ONE, 7)
    seen = yours.ended
    assert yours.forget(ONE) == ANSWERED
    assert yours.forget(ONE) == GONE
    assert not mine.has(ONE, 7)
    assert yours.take(ONE, 1, 0.0, 100.0, seen) == TAKEN_ANEW


def test_its_time_and_its_process_end_it() -> None:
    memory = mmap.mmap(-1, size_for(4))
    mine, yours = Leases(memory, 1), Leases(memory, 2)
    mine.take(ONE, 7, 105.0, 100.0, mine.ended)
    assert yours.take(ONE, 1, 0.0, 104.0, yours.ended) == HELD
    assert yours.take(ONE, 1, 0.0, 105.0, yours.ended) == TAKEN
    assert not mine.has(ONE, 7)
    mine.forget_process(2)
    assert mine.take(ONE, 9, 0.0, 105.0, mine.ended) == TAKEN


def test_a_row_that_is_full_has_no_place_until_one_ends() -> None:
    leases = Leases(mmap.mmap(-1, size_for(1)), 1)
    names = [b"%016d" % number for number in range(9)]
    assert [leases.take(name, 1, 0.0, 1.0, leases.ended) for name in names] == [TAKEN] * 8 + [FULL]
    leases.drop(names[3], 1)
    assert leases.take(names[8], 1, 0.0, 1.0, leases.ended) == TAKEN


def _take_for_ever(memory: mmap.mmap) -> None:
    leases = Leases(memory, os.getpid())
    number = 0
    while True:
        number += 1
        leases.take(ONE, number, 0.0, 1.0, 0)
        leases.drop(ONE, number)


def test_a_process_that_is_killed_blocks_nobody() -> None:
    """Wherever it is: some die while they hold the lock."""
    memory = mmap.mmap(-1, size_for(4))
    mine = Leases(memory, os.getpid())
    fork = multiprocessing.get_context("fork")
    for _ in range(20):
        before = mine.ended
        other = fork.Process(target=_take_for_ever, args=(memory,))
        other.start()
        while mine.ended < before + 100:
            pass
        assert other.pid is not None
        os.kill(other.pid, signal.SIGKILL)
        other.join()
        mine.forget_process(other.pid)
        assert mine.take(ONE, 1, 0.0, 1.0, mine.ended) == TAKEN
        assert mine.drop(ONE, 1) == 0
