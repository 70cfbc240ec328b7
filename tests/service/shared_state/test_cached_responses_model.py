"""Cached responses against a model: none older than its invalidation, one lease for a key, none for another key."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from rowcall.core.cache.entry import Entry
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.single_flight import CacheLease
from tests.harness.effort import examples

KEYS = st.sampled_from([b"a", b"b", b"c", b"d" * 600])
TAGS = {b"a": ("even", "all"), b"b": ("odd", "all"), b"c": ("even", "all"), b"d" * 600: ()}


class Computing:
    """A lease in use. holds: others wait for it. counts: its result may be stored."""

    def __init__(self, key: bytes, lease: CacheLease, value: bytes) -> None:
        self.key = key
        self.lease = lease
        self.value = value
        self.holds = True
        self.counts = True


class Answers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.host = HostState(self.folder)
        self.answers: MemoryCache = self.run(self._made)
        self.numbers = itertools.count(1)
        self.kept: dict[bytes, bytes] = {}
        self.computing: list[Computing] = []

    def run(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return self.loop.run_until_complete(work())

    async def _made(self) -> MemoryCache:
        return MemoryCache(self.host.cached_responses("answers", 8_388_608), self.host.message_bus)

    @rule(key=KEYS)
    def ask(self, key: bytes) -> None:
        async def asked() -> Any:
            return self.answers.begin(key, 5.0)

        output = self.run(asked)
        if key in self.kept:
            assert isinstance(output, Entry)
            assert output.body == self.kept[key]
        elif any(item.key == key and item.holds for item in self.computing):
            assert asyncio.iscoroutine(output), "another request has the lease"
            output.close()
        else:
            assert not isinstance(output, Entry)
            self.computing.append(Computing(key, output, b"%d of %b" % (next(self.numbers), key)))

    @precondition(lambda self: self.computing)
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        item = self._taken(data)

        async def landed() -> None:
            item.lease.keep(Entry(item.value, 1, tags=TAGS[item.key]), None)

        self.run(landed)
        if item.counts:
            self.kept[item.key] = item.value

    @precondition(lambda self: self.computing)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        item = self._taken(data)

        async def failed() -> None:
            item.lease.give_up(None)

        self.run(failed)

    def _taken(self, data: st.DataObject) -> Computing:
        return self.computing.pop(data.draw(st.integers(0, len(self.computing) - 1)))

    @rule(key=KEYS)
    def forget(self, key: bytes) -> None:
        async def forgotten() -> bool:
            return self.answers.invalidate(key)

        assert self.run(forgotten) == (key in self.kept)
        self.kept.pop(key, None)
        for item in self.computing:
            if item.key == key:
                item.holds = item.counts = False

    @rule(tag=st.sampled_from(["even", "odd", "all", "none"]))
    def invalidate_tag(self, tag: str) -> None:
        async def forgotten() -> int:
            return self.answers.invalidate_tag(tag)

        gone = [key for key in self.kept if tag in TAGS[key]]
        assert self.run(forgotten) == len(gone)
        for key in gone:
            del self.kept[key]
        for item in self.computing:
            if tag in TAGS[item.key]:
                item.counts = False

    @rule()
    def prune(self) -> None:
        async def pruned() -> int:
            return self.answers.prune()

        assert self.run(pruned) == 0

    def teardown(self) -> None:
        async def closed() -> None:
            self.answers.close()
            self.host.close()

        self.run(closed)
        self.loop.close()
        shutil.rmtree(self.folder)


TestAnswers = Answers.TestCase
TestAnswers.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
