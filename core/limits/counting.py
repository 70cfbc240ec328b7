"""Windows and buckets as pure functions: from state and time to decision and new state.

A request that may wait gets its permit at once, for a later time that is already known. As windows and periods begin at
known times, no wake-up is needed, and requests are served in their order over all workers and hosts. A request that
stops waiting returns its permit, which the next request may get.

Times are in seconds. A state is the packed counts of one caller.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import NamedTuple

from rowcall.core.limits.policy import Kind, Policy


class Turn(NamedTuple):
    """The later permit for which a request waits."""

    begin: float
    """Begin of the counting. For a caller who has been absent for long, counting begins anew, and with it the
    numbers."""
    number: int
    """Number of the window, segment or period."""


class Decision(NamedTuple):
    """The result of a request for a permit."""

    allowed: bool
    wait: float
    """Seconds until the permit may be used; for a refusal, until a retry is useful."""
    turn: Turn | None = None
    """The permit for which the request waits; None: it need not wait, or is refused."""


NOW = Decision(True, 0.0)
_ROW = struct.Struct("<dq")
"""Packed head of a state.

Of a window: its begin, and the number of the first segment; the permits of the segments follow. Of a bucket: when it
was full, and the number of the current period; the missing tokens follow, and for each coming period the tokens that
waiting requests will get.
"""


def decide(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """Return the decision about a request, and the new state; None: the state is unchanged.

    policy: of a window or a token bucket, not of the kind `CONCURRENCY`. state: that of the caller; None: the caller
    has none.
    """
    return _DECIDE[policy.kind](policy, state, now)


def give_back(policy: Policy, state: bytes | None, turn: Turn, now: float) -> bytes | None:
    """Return the new state after a request has stopped waiting for its turn, whose permit becomes free. None: the state
    is unchanged, because no permit is counted for the turn, or because the window of the turn has passed. In a token
    bucket, the token becomes free also if the time of the turn has passed.

    state: that of the caller; None: the caller has none.
    """
    if policy.kind is Kind.TOKEN_BUCKET:
        begin, current, missing, owed = _periods(policy, state, now)
        place = turn.number - current - 1
        if begin != turn.begin or place >= len(owed) or (owed[place] if place >= 0 else missing) <= 0:
            return None
        if place >= 0:
            owed[place] -= 1
        else:
            missing -= 1
        return _pack_state(begin, current, missing, *owed)
    begin, _current, first, counts = _segments(policy, state, now)
    place = turn.number - first
    if begin != turn.begin or not 0 <= place < len(counts) or not counts[place]:
        return None
    counts[place] -= 1
    return _pack_state(begin, first, *counts)


def is_idle(policy: Policy, state: bytes, now: float) -> bool:
    """Return whether the state has the same effect as no state."""
    if policy.kind is Kind.TOKEN_BUCKET:
        begin, _current, missing, owed = _periods(policy, state, now)
        return missing <= 0 and not any(owed) and begin <= now
    start, current, _first, counts = _segments(policy, state, now)
    return not any(counts) or start > now + policy.seconds or current < 0


def _pack_state(begin: float, number: int, *counts: int) -> bytes:
    """Return a state. begin, number, counts: as `_ROW` describes them."""
    return _state(len(counts)).pack(begin, number, *counts)


@cache
def _state(counts: int) -> struct.Struct:
    return struct.Struct(f"<dq{counts}I")


_SHORT_STATE = _state(1)
"""The state of a window in which nothing waits, and of a bucket without promised tokens: one count."""


# --- windows ----------------------------------------------------------------------------------------------------------


def _segments(policy: Policy, state: bytes | None, now: float) -> tuple[float, int, int, list[int]]:
    """Return the begin of segment 0, the number of the current segment, the number of the first segment of the window,
    and the permits of the segments from the first one on.

    A fixed window is one segment. state: None: no request has been counted.
    """
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


def _fixed_window(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """Decide for a fixed window. The result is that of `decide`.

    The state without waiting requests is short, and is handled here in a third of the time; `_window` handles the
    others.
    """
    if state is not None and len(state) == _SHORT_STATE.size:
        begin, window, count = _SHORT_STATE.unpack(state)
        current = int((now - begin) // policy.seconds)
        if current > window:
            window, count = current, 0
        if current == window and count < policy.permits:
            return NOW, _SHORT_STATE.pack(begin, window, count + 1)
    return _window(policy, state, now)


def _window(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """Decide for a window of one or more segments. The result is that of `decide`. state: as in `_segments`."""
    begin, current, first, counts = _segments(policy, state, now)
    if sum(counts) < policy.permits and current >= first:
        # All segments of the window that ends now, and of later ones, have fewer permits than allowed.
        counts[current - first] += 1
        return NOW, _pack_state(begin, first, *counts)
    return _wait_or_refuse(policy, begin, current, now, {first + place: count for place, count in enumerate(counts)})


def _wait_or_refuse(
    policy: Policy, begin: float, current: int, now: float, counts: dict[int, int]
) -> tuple[Decision, bytes | None]:
    """Permit a request of a full window in the first segment with room, for which it waits unless that is the current
    one, or refuse it because too many requests wait. The result is that of `decide`.

    begin: of segment 0, on the clock of `now`. current: number of the current segment. counts: permits by number of
    segment.
    """
    segment = _first_with_room(policy, counts, current)
    later = segment != current
    wait = begin + segment * (policy.seconds / policy.segments) - now if later else 0.0
    if later and sum(count for number, count in counts.items() if number > current) >= policy.queue:
        return Decision(False, wait), None
    counts[segment] = counts.get(segment, 0) + 1
    first = min(counts)
    row = [counts.get(number, 0) for number in range(first, max(counts) + 1)]
    return Decision(True, wait, Turn(begin, segment) if later else None), _pack_state(begin, first, *row)


def _first_with_room(policy: Policy, counts: dict[int, int], current: int) -> int:
    """Return the number of the first segment that may have one more permit, so that no window with it has too many.

    counts: permits by number of segment. current: number of the current segment.
    """
    # The number of permits in the window that ends with the segment `end`. Each segment is examined once, however many
    # segments a window has.
    crowd = sum(counts.get(current - back, 0) for back in range(policy.segments))
    segment = end = current
    while end < segment + policy.segments:
        if crowd >= policy.permits:
            segment = end + 1
        end += 1
        crowd += counts.get(end, 0) - counts.get(end - policy.segments, 0)
    return segment


# --- buckets ----------------------------------------------------------------------------------------------------------


def _periods(policy: Policy, state: bytes | None, now: float) -> tuple[float, int, int, list[int]]:
    """Return when the bucket was full, the number of the current period, the missing tokens, and for each coming period
    the tokens promised to waiting requests. state: None: the bucket is full."""
    if state is None:
        return now, 0, 0, []
    begin, current, missing, *owed = _state((len(state) - _ROW.size) // 4).unpack(state)
    passed = int((now - begin) // policy.seconds) - current
    if passed > 0:  # negative if the clock of another host is ahead
        for promised in owed[:passed]:
            missing = max(0, missing - policy.added) + promised
        missing = max(0, missing - max(0, passed - len(owed)) * policy.added)
        del owed[:passed]
        current += passed
    return begin, current, missing, owed


def _bucket(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """Decide for a token bucket. The result is that of `decide`. A state without waiting requests is short, and is
    handled here, which is fast; `_bucket_with_queue` handles the others."""
    if state is not None and len(state) == _SHORT_STATE.size:
        begin, period, missing = _SHORT_STATE.unpack(state)
        passed = int((now - begin) // policy.seconds) - period
        if passed > 0:
            missing -= passed * policy.added
            period += passed
        if 0 < missing < policy.permits:
            return NOW, _SHORT_STATE.pack(begin, period, missing + 1)
    return _bucket_with_queue(policy, state, now)


def _bucket_with_queue(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """Decide for a token bucket with waiting requests, or for a full or empty one. The result is that of `decide`."""
    begin, current, missing, owed = _periods(policy, state, now)
    if missing <= 0 and not any(owed):
        begin, current, owed = now, 0, []  # a full bucket restarts the counting
    if missing < policy.permits:
        return NOW, _pack_state(begin, current, missing + 1, *owed)
    room = min(policy.added, policy.permits)
    place = next((place for place, promised in enumerate(owed) if promised < room), len(owed))
    turn = Turn(begin, current + 1 + place)
    wait = begin + turn.number * policy.seconds - now
    if sum(owed) >= policy.queue:
        return Decision(False, wait), None
    owed += [0] * (place + 1 - len(owed))
    owed[place] += 1
    return Decision(True, wait, turn), _pack_state(begin, current, missing, *owed)


_DECIDE = {Kind.FIXED_WINDOW: _fixed_window, Kind.SLIDING_WINDOW: _window, Kind.TOKEN_BUCKET: _bucket}
