"""When a routine may share a connection, and when it loses that again (driver-2)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rowcall.service.database.pools.pool_assignment import (
    FIRST_LOOK,
    FORGIVEN,
    MOST_CONTENTION,
    WINDOW,
    Contention,
    PoolAssignment,
)

THRESHOLD = 0.003
FAST, SLOW, VERY_SLOW = 0.001, 0.004, 0.05


def feed(pace: PoolAssignment, seconds: float, calls: int) -> list[bool]:
    return [pace.record(seconds) for _ in range(calls)]


def promoted() -> PoolAssignment:
    pace = PoolAssignment(THRESHOLD)
    feed(pace, FAST, FIRST_LOOK)
    assert pace.fast
    return pace


def test_no_routine_starts_fast() -> None:
    assert not PoolAssignment(THRESHOLD).fast


def test_a_few_fast_calls_promote_exactly_once() -> None:
    pace = PoolAssignment(THRESHOLD)
    assert feed(pace, FAST, FIRST_LOOK) == [False] * (FIRST_LOOK - 1) + [True]
    assert feed(pace, FAST, 10 * WINDOW) == [False] * (10 * WINDOW)


def test_slow_calls_never_promote() -> None:
    pace = PoolAssignment(THRESHOLD)
    assert not any(feed(pace, SLOW, 10 * WINDOW))


def test_half_slow_is_slow() -> None:
    pace = PoolAssignment(THRESHOLD)
    for _ in range(10 * WINDOW):
        pace.record(FAST)
        pace.record(SLOW)
    assert not pace.fast


def test_a_routine_that_turns_slow_is_demoted_within_a_window() -> None:
    assert any(feed(promoted(), SLOW, WINDOW))


def test_very_slow_calls_demote_after_a_few() -> None:
    changes = feed(promoted(), VERY_SLOW, WINDOW)
    assert changes.index(True) < WINDOW // 10


def test_single_slow_calls_on_a_busy_processor_do_not_demote() -> None:
    pace = promoted()
    for _ in range(100):
        pace.record(VERY_SLOW)
        # One in a thousand. One in every window would delay those behind it by 11 ms on average.
        feed(pace, FAST, 16 * WINDOW - 1)
    assert pace.fast


def test_the_way_back_becomes_longer_each_time() -> None:
    pace = promoted()
    needed = []
    for _ in range(9):
        while pace.fast:
            pace.record(VERY_SLOW)
        calls = 0
        while not pace.fast:
            pace.record(FAST)
            calls += 1
        needed.append(calls // WINDOW)
    # The first returns take longer than the windows that are asked for: the expected wait has to fall, too.
    assert all(windows >= least for windows, least in zip(needed, (2, 4, 8, 16, 32, 64, 64, 64, 64), strict=True))
    assert max(needed) < 128


def test_long_good_conduct_shortens_the_way_back_again() -> None:
    pace = promoted()
    for _ in range(20):
        pace.demote()
        assert sum(feed(pace, FAST, 2 * WINDOW)) == 1
        feed(pace, FAST, FORGIVEN * WINDOW)
    assert pace.fast


def test_waiting_for_a_processor_is_taken_off_within_bounds() -> None:
    contention = Contention()
    for second in range(1, 20):
        contention.note(second * 10**9, second * 3 * 10**9)
    assert round(contention.factor, 2) == 4
    pace = promoted()
    assert not any(pace.record(3 * VERY_SLOW / 13, contention.factor) for _ in range(WINDOW // 4))
    for second in range(20, 40):
        contention.note(second * 10**9, second * 10**12)
    assert round(contention.factor, 2) == MOST_CONTENTION
    for _ in range(20):
        contention.note(39 * 10**9, 39 * 10**12)
    assert round(contention.factor, 2) == 1


@given(st.lists(st.sampled_from([FAST, SLOW, VERY_SLOW]), max_size=2000))
def test_record_says_exactly_when_fast_changes(times: list[float]) -> None:
    pace = PoolAssignment(THRESHOLD)
    for seconds in times:
        before = pace.fast
        assert pace.record(seconds) == (pace.fast != before)


def test_rare_very_slow_calls_demote_a_routine_for_good() -> None:
    """1 % of the calls take 300 ms: those behind them would wait 100 ms on average."""
    choice = PoolAssignment(0.005)
    fast = 0
    for number in range(10_000):
        choice.record(0.3 if number % 100 == 99 else 0.001)
        fast += choice.fast
    assert fast < 200


def test_moderate_outliers_of_a_clock_do_not_demote_a_routine() -> None:
    choice = PoolAssignment(0.005)
    for number in range(10_000):
        choice.record(0.02 if number % 1000 == 999 else 0.0003)
        assert choice.fast or number < 10
