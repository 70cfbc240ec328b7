"""Windows and buckets as pure functions: state and time in, decision and new state out.

A request that may wait is given its permit at once, to be used at a time that is known then: windows and periods come
when they come, so nobody has to be woken, and whoever asked first is served first over all workers and hosts. One that
does not wait any longer gives its permit back, and whoever asks next may have it.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import NamedTuple

from rowcall.core.limits.policy import Kind, Policy


class Turn(NamedTuple):
    """Which later permit somebody waits for."""

    begin: float
    """Of the counting: it begins anew for whoever has not come for long, and with it the numbers."""
    number: int
    """Of the window, the segment, or the period."""


class Decision(NamedTuple):
    allowed: bool
    wait: float
    """Seconds until the permit may be used; of a refusal, until it is worth asking again."""
    turn: Turn | None = None
    """What is waited for."""


NOW = Decision(True, 0.0)
_ROW = struct.Struct("<dq")
"""Of a window: its begin, and the number of the first segment; permits of the segments follow. Of a bucket: when it was
full, and the number of the current period; what is missing from it follows, and what the periods to come owe."""


def decide(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """state: as given back last time; None for a caller who has not been seen. None as new state: leave it."""
    return _DECIDE[policy.kind](policy, state, now)


def give_back(policy: Policy, state: bytes | None, turn: Turn, now: float) -> bytes | None:
    """The new state, when somebody does not wait for his turn. None: leave it."""
    if policy.kind is Kind.TOKEN_BUCKET:
        begin, current, missing, owed = _periods(policy, state, now)
        place = turn.number - current - 1
        if begin != turn.begin or place >= len(owed):
            return None
        if place >= 0:
            owed[place] -= 1
        else:
            missing = max(0, missing - 1)
        return _packed(begin, current, missing, *owed)
    begin, _current, first, counts = _segments(policy, state, now)
    place = turn.number - first
    if begin != turn.begin or not 0 <= place < len(counts) or not counts[place]:
        return None
    counts[place] -= 1
    return _packed(begin, first, *counts)


def is_idle(policy: Policy, state: bytes, now: float) -> bool:
    """Whether the state says no more than none would."""
    if policy.kind is Kind.TOKEN_BUCKET:
        begin, _current, missing, owed = _periods(policy, state, now)
        return missing <= 0 and not any(owed) and begin <= now
    start, current, _first, counts = _segments(policy, state, now)
    return not any(counts) or start > now + policy.seconds or current < 0


def _packed(begin: float, number: int, *counts: int) -> bytes:
    return _state(len(counts)).pack(begin, number, *counts)


@cache
def _state(counts: int) -> struct.Struct:
    return struct.Struct(f"<dq{counts}I")


_ONE = _state(1)


# --- windows ----------------------------------------------------------------------------------------------------------


def _segments(policy: Policy, state: bytes | None, now: float) -> tuple[float, int, int, list[int]]:
    """Begin of segment 0; number of the current one; number of the first that counts, and permits from that one on. A
    fixed window is one segment."""
    if state is None:
        return now, 0, 0, [0]
    begin, first, *counts = _state((len(state) - _ROW.size) // 4).unpack(state)
    current = int((now - begin) // (policy.seconds / policy.segments))
    past = current - policy.segments + 1 - first
    if past > 0:
        del counts[:past]
        first += past
    missing = current - first + 1 - len(counts)
    if missing > 0:
        counts += [0] * missing
    return begin, current, first, counts


def _fixed(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """As long as nobody waits there is one number to look at, which takes a third of the time."""
    if state is not None and len(state) == _ONE.size:
        begin, window, used = _ONE.unpack(state)
        current = int((now - begin) // policy.seconds)
        if current > window:
            window, used = current, 0
        if current == window and used < policy.permits:
            return NOW, _ONE.pack(begin, window, used + 1)
    return _window(policy, state, now)


def _window(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    begin, current, first, counts = _segments(policy, state, now)
    if sum(counts) < policy.permits and current >= first:
        # However it slides, no window has too many.
        counts[current - first] += 1
        return NOW, _packed(begin, first, *counts)
    return _crowded(policy, begin, current, now, {first + place: count for place, count in enumerate(counts)})


def _crowded(
    policy: Policy, begin: float, current: int, now: float, counts: dict[int, int]
) -> tuple[Decision, bytes | None]:
    chosen = _first_with_room(policy, counts, current)
    later = chosen != current
    wait = begin + chosen * (policy.seconds / policy.segments) - now if later else 0.0
    if later and sum(count for number, count in counts.items() if number > current) >= policy.queue:
        return Decision(False, wait), None
    counts[chosen] = counts.get(chosen, 0) + 1
    first = min(counts)
    row = [counts.get(number, 0) for number in range(first, max(counts) + 1)]
    return Decision(True, wait, Turn(begin, chosen) if later else None), _packed(begin, first, *row)


def _first_with_room(policy: Policy, counts: dict[int, int], current: int) -> int:
    """The first segment that may have one more permit: no window that holds it has too many. `crowd` is the number of
    permits in the window that ends with `end`; each segment is looked at once, however many a window has."""
    crowd = sum(counts.get(current - back, 0) for back in range(policy.segments))
    chosen = end = current
    while end < chosen + policy.segments:
        if crowd >= policy.permits:
            chosen = end + 1
        end += 1
        crowd += counts.get(end, 0) - counts.get(end - policy.segments, 0)
    return chosen


# --- buckets ----------------------------------------------------------------------------------------------------------


def _periods(policy: Policy, state: bytes | None, now: float) -> tuple[float, int, int, list[int]]:
    """When the bucket was full; number of the current period; tokens that are missing, and what each of the periods to
    come has to give to somebody who waits."""
    if state is None:
        return now, 0, 0, []
    begin, current, missing, *owed = _state((len(state) - _ROW.size) // 4).unpack(state)
    passed = int((now - begin) // policy.seconds) - current
    if passed > 0:  # not so by the clock of another host
        for taken in owed[:passed]:
            missing = max(0, missing - policy.added) + taken
        missing = max(0, missing - max(0, passed - len(owed)) * policy.added)
        del owed[:passed]
        current += passed
    return begin, current, missing, owed


def _bucket(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """The same here."""
    if state is not None and len(state) == _ONE.size:
        begin, period, missing = _ONE.unpack(state)
        passed = int((now - begin) // policy.seconds) - period
        if passed > 0:
            missing -= passed * policy.added
            period += passed
        if 0 < missing < policy.permits:
            return NOW, _ONE.pack(begin, period, missing + 1)
    return _drawn(policy, state, now)


def _drawn(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    begin, current, missing, owed = _periods(policy, state, now)
    if missing <= 0 and not any(owed):
        begin, current, owed = now, 0, []  # a full bucket has nothing to wait for
    if missing < policy.permits:
        return NOW, _packed(begin, current, missing + 1, *owed)
    room = min(policy.added, policy.permits)
    place = next((place for place, taken in enumerate(owed) if taken < room), len(owed))
    turn = Turn(begin, current + 1 + place)
    wait = begin + turn.number * policy.seconds - now
    if sum(owed) >= policy.queue:
        return Decision(False, wait), None
    owed += [0] * (place + 1 - len(owed))
    owed[place] += 1
    return Decision(True, wait, turn), _packed(begin, current, missing, *owed)


_DECIDE = {Kind.FIXED_WINDOW: _fixed, Kind.SLIDING_WINDOW: _window, Kind.TOKEN_BUCKET: _bucket}
