"""Windows and buckets as pure functions: state and time in, decision and new state out.

A request that may wait is given its permit at once, to be used at a time that is known then: windows and periods come
when they come, so nobody has to be woken, and whoever asked first is served first over all workers and hosts.
"""

from __future__ import annotations

import math
import struct
from functools import cache
from typing import NamedTuple

from rowcall.core.limits.policy import Kind, Policy


class Decision(NamedTuple):
    allowed: bool
    wait: float
    """Seconds until the permit may be used; of a refusal, until it is worth asking again."""


NOW = Decision(True, 0.0)
_STATE = struct.Struct("<dq")
_ROW = struct.Struct("<dq")
"""Of a sliding window: its begin, and the number of the first segment; permits of the segments follow."""


def decide(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    """state: as given back last time; None for a caller who has not been seen. None as new state: leave it."""
    return _DECIDE[policy.kind](policy, state, now)


def is_idle(policy: Policy, state: bytes, now: float) -> bool:
    """Whether the state says no more than none would."""
    if policy.kind is Kind.SLIDING_WINDOW:
        start, current, _first, counts = _segments(policy, state, now)
        return not any(counts) or start > now + policy.seconds or current < 0
    begin, used = _advanced(policy, state, now)
    return used <= 0 and begin <= now


def _advanced(policy: Policy, state: bytes | None, now: float) -> tuple[float, int]:
    """Begin of the current period, and permits that are taken, those of the future included."""
    if state is None:
        return now, 0
    begin, used = _STATE.unpack(state)
    passed = int((now - begin) // policy.seconds)
    if passed < 0:  # the clock of another host
        return begin, used
    back = policy.permits if policy.kind is Kind.FIXED_WINDOW else policy.added
    return begin + passed * policy.seconds, max(0, used - passed * back)


def _window(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    begin, used = _advanced(policy, state, now)
    if used < policy.permits:
        return NOW, _STATE.pack(begin, used + 1)
    wait = begin + policy.seconds * (used // policy.permits) - now
    if used < policy.permits + policy.queue:
        return Decision(True, wait), _STATE.pack(begin, used + 1)
    return Decision(False, wait), None


def _bucket(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    begin, used = _advanced(policy, state, now)
    if used <= 0:
        begin = now  # a full bucket has nothing to wait for
    if used < policy.permits:
        return NOW, _STATE.pack(begin, used + 1)
    periods = math.ceil((used - policy.permits + 1) / policy.added)
    wait = begin + periods * policy.seconds - now
    if used < policy.permits + policy.queue:
        return Decision(True, wait), _STATE.pack(begin, used + 1)
    return Decision(False, wait), None


def _segments(policy: Policy, state: bytes | None, now: float) -> tuple[float, int, int, list[int]]:
    """Begin of segment 0; number of the current one; number of the first that counts, and permits from that one on."""
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


@cache
def _state(segments: int) -> struct.Struct:
    return struct.Struct(f"<dq{segments}I")


def _sliding(policy: Policy, state: bytes | None, now: float) -> tuple[Decision, bytes | None]:
    begin, current, first, counts = _segments(policy, state, now)
    if sum(counts) < policy.permits and current >= first:
        # However it slides, no window has too many.
        counts[current - first] += 1
        return NOW, _state(len(counts)).pack(begin, first, *counts)
    return _crowded(policy, begin, current, now, {first + place: count for place, count in enumerate(counts)})


def _crowded(
    policy: Policy, begin: float, current: int, now: float, counts: dict[int, int]
) -> tuple[Decision, bytes | None]:
    chosen = _first_with_room(policy, counts, current)
    wait = 0.0 if chosen == current else begin + chosen * (policy.seconds / policy.segments) - now
    queued = sum(count for number, count in counts.items() if number > current)
    if chosen != current and queued >= policy.queue:
        return Decision(False, wait), None
    counts[chosen] = counts.get(chosen, 0) + 1
    first = min(counts)
    row = [counts.get(number, 0) for number in range(first, max(counts) + 1)]
    return Decision(True, wait), _state(len(row)).pack(begin, first, *row)


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


_DECIDE = {Kind.FIXED_WINDOW: _window, Kind.TOKEN_BUCKET: _bucket, Kind.SLIDING_WINDOW: _sliding}
