"""Windows and buckets: permitted requests over time, compared with the definitions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.limits.counting import Turn, decide, give_back, is_idle
from rowcall.core.limits.policy import Kind, Policy

FIXED = Policy("p", Kind.FIXED_WINDOW, permits=3, seconds=10, queue=2)
SLIDING = Policy("p", Kind.SLIDING_WINDOW, permits=3, seconds=12, segments=3, queue=2)
FINE = Policy("p", Kind.SLIDING_WINDOW, permits=1, seconds=20_000, segments=10_000, queue=1)
BUCKET = Policy("p", Kind.TOKEN_BUCKET, permits=3, seconds=5, added=2, queue=2)


def decisions_at(policy: Policy, *times: float) -> list[tuple[bool, float]]:
    """Return the decision for each request, with the seconds to wait."""
    state, result = None, []
    for now in times:
        decision, new = decide(policy, state, now)
        state = new or state
        result.append((decision.allowed, round(decision.wait, 6)))
    return result


YES = (True, 0.0)


@pytest.mark.parametrize(
    ("policy", "times", "decisions"),
    [
        (FIXED, (0, 0, 1, 1, 4, 9), [YES, YES, YES, (True, 9), (True, 6), (False, 1)]),
        (FIXED, (5, 5, 5, 15, 15, 15, 25), [YES] * 7),
        # The two waiting requests have used two permits of the next window.
        (FIXED, (0, 0, 0, 0, 0, 10, 10, 10), [YES, YES, YES, (True, 10), (True, 10), YES, (True, 10), (True, 10)]),
        (SLIDING, (0, 5, 9, 11, 12, 12.5), [YES, YES, YES, (True, 1), (True, 4), (True, 7.5)]),
        (SLIDING, (0, 0, 0, 1, 2, 3), [YES, YES, YES, (True, 11), (True, 10), (False, 9)]),
        (FINE, (0, 1, 2, 20_000), [YES, (True, 19_999), (False, 39_998), (True, 20_000)]),
        (BUCKET, (0, 0, 0, 1, 1, 1), [YES, YES, YES, (True, 4), (True, 4), (False, 9)]),
        (BUCKET, (0, 0, 0, 5, 5, 6), [YES, YES, YES, YES, YES, (True, 4)]),
        (BUCKET, (0, 100, 100, 100, 100), [YES, YES, YES, YES, (True, 5)]),
    ],
)
def test_decisions_follow_the_policy(
    policy: Policy, times: tuple[float, ...], decisions: list[tuple[bool, float]]
) -> None:
    assert decisions_at(policy, *times) == decisions


@given(
    st.sampled_from([FIXED, SLIDING, BUCKET]),
    st.lists(st.floats(0, 9, allow_nan=False), min_size=1, max_size=60),
)
def test_no_window_holds_more_than_its_permits(policy: Policy, gaps: list[float]) -> None:
    """Counted by the time at which permits are used, over every interval of the length of a window or a period."""
    state, now = None, 1000.0
    used: list[float] = []
    queued: list[float] = []
    for gap in gaps:
        now += gap
        decision, new = decide(policy, state, now)
        state = new or state
        assert decision.wait >= 0
        if decision.allowed:
            used.append(now + decision.wait)
            queued = [at for at in queued if at > now] + ([now + decision.wait] if decision.wait > 0 else [])
            assert len(queued) <= policy.queue
            assert new is not None
        else:
            assert decision.wait > 0
    assert used == sorted(used), "who asked first goes first"
    _check_pace(policy, used)


def _check_pace(policy: Policy, used: list[float]) -> None:
    """A fixed window permits twice as much around its end; a bucket permits what has accumulated while it was full."""
    most = {
        Kind.FIXED_WINDOW: 2 * policy.permits,
        Kind.SLIDING_WINDOW: policy.permits,
        Kind.TOKEN_BUCKET: policy.permits + policy.added,
    }[policy.kind]
    length = policy.seconds * (1 - 1 / policy.segments if policy.kind is Kind.SLIDING_WINDOW else 1) - 1e-6
    for at in used:
        assert sum(at <= other < at + length for other in used) <= most


@pytest.mark.parametrize("policy", [FIXED, SLIDING, BUCKET])
def test_leaving_the_queue_frees_a_place(policy: Policy) -> None:
    state = None
    waiting = []
    for _ in range(5):
        decision, state = decide(policy, state, 0.0)
        waiting += [decision] if decision.wait else []
    assert len(waiting) == 2
    assert not decide(policy, state, 1.0)[0].allowed
    turn = waiting[0].turn
    assert turn is not None
    state = give_back(policy, state, turn, 1.0)
    assert state is not None
    again, state = decide(policy, state, 1.0)
    assert (again.allowed, again.wait) == (True, waiting[0].wait - 1.0)
    assert not decide(policy, state, 1.0)[0].allowed
    assert give_back(policy, state, turn._replace(begin=-7.0), 1.0) is None, "of an earlier counting"


@pytest.mark.parametrize("policy", [FIXED, SLIDING, BUCKET])
def test_permits_that_are_not_counted_are_not_given_back(policy: Policy) -> None:
    state = None
    turn = None
    while turn is None:
        decision, state = decide(policy, state, 0.0)
        turn = decision.turn
    taken = state
    state = give_back(policy, state, turn, 1.0)
    assert give_back(policy, state, turn, 1.0) is None, "twice"
    assert give_back(policy, None, turn._replace(begin=1.0), 1.0) is None, "never taken"
    assert give_back(policy, taken, turn._replace(number=turn.number + 1), 1.0) is None, "of another period"


@given(
    st.sampled_from([FIXED, SLIDING, BUCKET]),
    st.lists(st.tuples(st.floats(0, 9, allow_nan=False), st.booleans()), min_size=1, max_size=60),
)
def test_returned_permits_are_not_issued_twice(policy: Policy, steps: list[tuple[float, bool]]) -> None:
    state: bytes | None = None
    now = 1000.0
    used: list[float] = []
    queue: list[tuple[float, Turn | None]] = []
    for gap, leaves in steps:
        now += gap
        decision, new = decide(policy, state, now)
        state = new or state
        used += [at for at, _ in queue if at <= now]
        queue = [(at, turn) for at, turn in queue if at > now]
        if decision.allowed and decision.wait > 0:
            queue.append((now + decision.wait, decision.turn))
        elif decision.allowed:
            used.append(now)
        assert len(queue) <= policy.queue
        if leaves and queue:
            _at, turn = queue.pop(0)
            assert turn is not None
            state = give_back(policy, state, turn, now)
            assert state is not None
    _check_pace(policy, sorted([*used, *(at for at, _ in queue)]))


@given(st.sampled_from([FIXED, SLIDING, BUCKET]), st.lists(st.floats(0, 3), min_size=1, max_size=20))
def test_idle_callers_are_removed(policy: Policy, gaps: list[float]) -> None:
    state, now = None, 0.0
    for gap in gaps:
        now += gap
        state = decide(policy, state, now)[1] or state
    assert state is not None
    assert not is_idle(policy, state, now)
    assert is_idle(policy, state, now + 20 * policy.seconds)
