"""The steps around cached responses: two different requests never have the same key (caching-8 to caching-14), a miss
is stored, and a hit returns what was stored."""

from __future__ import annotations

import mmap
import os

from hypothesis import given
from hypothesis import strategies as st

from rowcall.core.cache.entry import Entry
from rowcall.ext.driver.cache_fast_path import CacheLookup, CacheWriter, Lease, encode_key
from rowcall.ext.driver.execution import finished_execution
from rowcall.ext.driver.request_context import RequestContext
from rowcall.ext.response_cache.table import LEAST, ResponseTable

TRICKY = st.sampled_from([b"", b"-", b"1:", b"NULL", b"\x1f"])
VALUES = st.lists(st.one_of(st.just("absent"), st.none(), st.binary(max_size=6), TRICKY), max_size=5)


def key(values: list[object]) -> bytes:
    mask = sum(1 << index for index, value in enumerate(values) if value != "absent")
    arguments = [value for value in values if value != "absent"]
    return encode_key(b"p", mask, arguments, (1 << 8) - 1)  # type: ignore[arg-type]


def meant(values: list[object]) -> list[object]:
    """Return the values without absent ones at the end, which make no difference."""
    while values and values[-1] == "absent":
        values = values[:-1]
    return values


@given(VALUES, VALUES)
def test_cache_keys_are_equal_exactly_if_requests_are(one: list[object], other: list[object]) -> None:
    assert (key(one) == key(other)) == (meant(one) == meant(other))


@given(VALUES, st.integers(0, 31))
def test_only_selected_parameters_are_part_of_the_key(values: list[object], wanted: int) -> None:
    mask = sum(1 << index for index, value in enumerate(values) if value != "absent")
    arguments = [value for value in values if value != "absent"]
    left = [value if wanted >> index & 1 else "absent" for index, value in enumerate(values)]
    assert encode_key(b"p", mask, arguments, wanted) == key(left)  # type: ignore[arg-type]


def ending(_context: RequestContext, _error: Exception | None) -> None: ...


class Steps:
    """Lookup and writer around one table; records what they leave to other steps."""

    def __init__(self, seconds: float = 60.0, most: int = 3) -> None:
        self.table = ResponseTable(mmap.mmap(-1, LEAST), os.getpid(), Entry)
        self.unshared: dict[bytes, float] = {}
        self.waiting: dict[bytes, object] = {}
        self.landed: list[tuple[bytes, int]] = []
        self.reported: list[str] = []
        report = lambda _context, word: self.reported.append(word)  # noqa: E731
        other = lambda _context: self.reported.append("otherwise")  # noqa: E731
        key = (b"p", 0b11, self.table, 30.0, 100, self.unshared)
        landed = lambda lease, _entry, flags: self.landed.append((lease.name, flags))  # noqa: E731
        self.keep = CacheWriter(
            self.table.store_and_release, self.waiting, landed, ending, seconds, 50, True, most, other
        )
        self.look_up = CacheLookup(*key, self, Lease, ending, (self.keep,), None, report, other)

    def ask(self, mask: int, *values: bytes | None) -> RequestContext:
        context = RequestContext(None, None)
        context.mask, context.arguments = mask, list(values)
        self.look_up(context)
        return context

    def run(self, body: bytes, rows: int = 1, *values: bytes | None) -> RequestContext:
        context = self.ask(0b11, *(values or (b"a", None)))
        context.execution = finished_execution(body, rows, False)
        self.keep(context)
        return context


def test_a_result_is_cached_and_found_by_equal_requests_only() -> None:
    steps = Steps()
    context = steps.run(b"one")
    assert context.lease is None
    assert context.endings is None
    execution = steps.ask(0b11, b"a", None).execution
    assert execution is not None
    assert (execution.body, execution.rows, execution.finished) == (b"one", 1, True)
    assert steps.ask(0b11, b"a", b"").lease is not None
    assert steps.ask(0b01, b"a").lease is not None
    assert steps.reported == ["miss", "hit", "miss", "miss"]
    assert steps.table.find(encode_key(b"p", 0b11, [b"a", None], 0b11), 1.0) is not None
    assert steps.landed == []


def test_other_cases_are_handled_by_the_next_steps() -> None:
    steps = Steps()
    held = steps.ask(0b11, b"a", None)
    steps.ask(0b11, b"a", None)
    steps.ask(0b111, b"a", None, b"")
    steps.ask(0b11, b"a" * 100, None)
    assert steps.reported == ["miss", "otherwise", "otherwise", "otherwise"]
    held.execution = finished_execution(b"x" * 50, 1, False)
    steps.keep(held)
    steps.run(b"", 0, b"no row", None)
    steps.run(b"", 4, b"too many", None)
    assert steps.reported[4:] == ["otherwise", "miss", "otherwise", "miss", "otherwise"]
    steps.unshared[b"something"] = 1.0
    steps.ask(0b11, b"b", None)
    assert steps.reported[-1] == "otherwise"
    assert steps.table.count == 0


def test_waiting_requests_get_the_cached_response() -> None:
    steps = Steps()
    steps.waiting[b"other"] = None
    name = encode_key(b"p", 0b11, [b"a", None], 0b11)
    steps.run(b"one")
    assert steps.landed == [(name, 0)]
    steps.waiting.clear()
    steps.table.invalidate(name, 1.0, False)
    held = steps.ask(0b11, b"a", None)
    steps.table.invalidate(name, 1.0, False)
    held.execution = finished_execution(b"old", 1, False)
    steps.keep(held)
    assert steps.landed[1:] == [(name, -1)]
    assert steps.table.count == 0


def test_a_lifetime_of_zero_caches_nothing_and_a_negative_one_never_ends() -> None:
    assert Steps(0.0).run(b"one").lease is None
    assert Steps(0.0).table.count == 0
    steps = Steps(-1.0)
    steps.run(b"one")
    assert steps.table.find(encode_key(b"p", 0b11, [b"a", None], 0b11), 1e12) is not None
