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


def feed_until(pace: PoolAssignment, seconds: float, fast: bool) -> int:
    """Return the number of calls after which `pace` is fast, or is not."""
    calls = 0
    while pace.fast is not fast:
        pace.record(seconds)
        calls += 1
    return calls


def promoted() -> PoolAssignment:
    pace = PoolAssignment(THRESHOLD)
    feed(pace, FAST, FIRST_LOOK)
    assert pace.fast
    return pace


def test_no_routine_is_fast_at_the_start() -> None:
    assert not PoolAssignment(THRESHOLD).fast


def test_a_few_fast_calls_promote_once() -> None:
    pace = PoolAssignment(THRESHOLD)
    assert feed(pace, FAST, FIRST_LOOK) == [False] * (FIRST_LOOK - 1) + [True]
    assert feed(pace, FAST, 10 * WINDOW) == [False] * (10 * WINDOW)


def test_slow_calls_never_promote() -> None:
    pace = PoolAssignment(THRESHOLD)
    assert not any(feed(pace, SLOW, 10 * WINDOW))


def test_a_routine_with_half_slow_calls_is_not_promoted() -> None:
    pace = PoolAssignment(THRESHOLD)
    for _ in range(10 * WINDOW):
        pace.record(FAST)
        pace.record(SLOW)
    assert not pace.fast


def test_a_routine_that_turns_slow_is_demoted_within_a_window() -> None:
    assert any(feed(promoted(), SLOW, WINDOW))


def test_a_few_very_slow_calls_demote() -> None:
    changes = feed(promoted(), VERY_SLOW, WINDOW)
    assert changes.index(True) < WINDOW // 10


def test_single_slow_calls_on_a_busy_processor_do_not_demote() -> None:
    pace = promoted()
    for _ in range(100):
        pace.record(VERY_SLOW)
        # One in a thousand. One in every window would delay those behind it by 11 ms on average.
        feed(pace, FAST, 16 * WINDOW - 1)
    assert pace.fast


def test_each_demotion_makes_the_next_promotion_slower() -> None:
    pace = promoted()
    needed = []
    for _ in range(9):
        feed_until(pace, VERY_SLOW, False)
        needed.append(feed_until(pace, FAST, True) // WINDOW)
    # The first returns take longer than the required windows: the expected wait has to fall, too.
    assert all(windows >= least for windows, least in zip(needed, (2, 4, 8, 16, 32, 64, 64, 64, 64), strict=True))
    assert max(needed) < 128


def test_a_long_fast_period_shortens_the_next_promotion() -> None:
    pace = promoted()
    for _ in range(20):
        pace.demote()
        assert sum(feed(pace, FAST, 2 * WINDOW)) == 1
        feed(pace, FAST, FORGIVEN * WINDOW)
    assert pace.fast


def test_contention_for_processors_is_subtracted_within_limits() -> None:
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
def test_record_returns_whether_fast_changed(times: list[float]) -> None:
    pace = PoolAssignment(THRESHOLD)
    for seconds in times:
        before = pace.fast
        assert pace.record(seconds) == (pace.fast != before)


def test_rare_very_slow_calls_prevent_promotion_permanently() -> None:
    """1 % of the calls take 300 ms: those behind them would wait 100 ms on average."""
    choice = PoolAssignment(0.005)
    fast = 0
    for number in range(10_000):
        choice.record(0.3 if number % 100 == 99 else 0.001)
        fast += choice.fast
    assert fast < 200


def test_moderate_outliers_do_not_demote_a_routine() -> None:
    choice = PoolAssignment(0.005)
    for number in range(10_000):
        choice.record(0.02 if number % 1000 == 999 else 0.0003)
        assert choice.fast or number < 10
