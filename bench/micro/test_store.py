"""Cost of the shared state: reading and writing a key, a cached response, a permit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rowcall.core.cache.entry import Entry
from rowcall.core.limits.policy import Kind, Policy
from rowcall.service.limits.host_permits import SIZE, HostPermits
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.state_folder import StateFolder


def measured(benchmark: Any, make: Callable[[HostState], Callable[[], object]]) -> None:
    folder = StateFolder()

    async def run() -> None:
        host = HostState(Path(folder.path))
        benchmark(make(host))
        host.close()

    asyncio.run(run())
    folder.remove()


def test_read_one_key(benchmark: Any) -> None:
    def make(host: HostState) -> Callable[[], object]:
        environment = host.environment("one", 1 << 20)
        with environment.write() as transaction:
            transaction.put(b"key", b"value")
        return lambda: environment.get(b"key")

    measured(benchmark, make)


def test_write_one_key(benchmark: Any) -> None:
    def make(host: HostState) -> Callable[[], object]:
        environment = host.environment("one", 1 << 20)

        def write() -> None:
            with environment.write() as transaction:
                transaction.put(b"key", b"value")

        return write

    measured(benchmark, make)


def test_cache_hit(benchmark: Any) -> None:
    def make(host: HostState) -> Callable[[], object]:
        cache = MemoryCache(host.cached_responses("cache", 64 << 20), host.message_bus)
        cache.store_copy(b"key", Entry(b"x" * 1024, 1), None, time.monotonic())
        return lambda: cache.begin(b"key", 1.0)

    measured(benchmark, make)


def test_cache_miss(benchmark: Any) -> None:
    """The cost of a cache miss without the run itself."""

    def make(host: HostState) -> Callable[[], object]:
        cache = MemoryCache(host.cached_responses("cache", 64 << 20), host.message_bus)
        entry = Entry(b"x" * 1024, 1)
        numbers = iter(range(10**9))

        def compute() -> None:
            lease: Any = cache.begin(b"key %d" % next(numbers), 1.0)
            lease.keep(entry, 60.0)

        return compute

    measured(benchmark, make)


@pytest.mark.parametrize("kind", [Kind.FIXED_WINDOW, Kind.SLIDING_WINDOW, Kind.TOKEN_BUCKET])
def test_acquire_a_permit(benchmark: Any, kind: Kind) -> None:
    policy = Policy("p", kind, permits=10**8, seconds=60.0, segments=6, added=10)

    def make(host: HostState) -> Callable[[], object]:
        permits = HostPermits(host.environment("permits", SIZE), host.message_bus, (policy,))
        return lambda: permits.request_permit(policy, "0 127.0.0.1")

    measured(benchmark, make)


def test_acquire_and_release_a_permit(benchmark: Any) -> None:
    policy = Policy("p", Kind.CONCURRENCY, permits=10**4)

    def make(host: HostState) -> Callable[[], object]:
        permits = HostPermits(host.environment("permits", SIZE), host.message_bus, (policy,))

        def acquire_and_release() -> None:
            permits.request_concurrency_permit(policy, "0 127.0.0.1")
            permits.release(policy, "0 127.0.0.1")

        return acquire_and_release

    measured(benchmark, make)
