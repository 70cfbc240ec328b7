"""Shared state in Redis that is lost between two steps of a host."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rowcall.core.cache.entry import Entry
from rowcall.core.cache.options import HybridOptions
from rowcall.core.cache.redis_address import parse_redis
from rowcall.core.endpoint.capabilities import Stale
from rowcall.core.errors.problems import Problem
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.hybrid_cache import HybridCache
from rowcall.service.shared_state.memory_cache import MemoryCache
from rowcall.service.shared_state.redis_cache import COMPUTING, RedisCache, RedisLease, stored_name, tag_keys
from rowcall.service.shared_state.redis_link import RedisLink, RedisUnavailableError
from rowcall.service.shared_state.single_flight import RETRY_LOOKUP, SingleFlightWaiters
from tests.ext.wire import run, until
from tests.harness.redis_server import RedisServer

KEY = b"GET /orders"
TAG = "orders"


@pytest.fixture(autouse=True)
def _empty_redis(redis: RedisServer) -> None:
    with redis.client() as client:
        client.flushall()


@contextlib.asynccontextmanager
async def connected_cache(redis: RedisServer, kind: type[RedisCache] = RedisCache) -> AsyncIterator[RedisCache]:
    link = RedisLink(parse_redis(redis.place))
    await link.connect()
    try:
        yield kind(link, "host", 1)
    finally:
        await link.close()


async def begin_lease(made: RedisCache) -> RedisLease:
    lease = await made.begin(KEY, 1.0)
    assert isinstance(lease, RedisLease)
    await lease.announce((TAG,), None)
    return lease


async def complete_lease(made: RedisCache, lease: RedisLease) -> bool:
    return await made.complete(stored_name(KEY), lease.number, Entry(b"old", 1), None)


class Cut(RedisCache):
    """Loses Redis after `remaining` responses have been invalidated; another request follows each of them."""

    remaining = 0
    other: RedisCache
    tickets: list[RedisLease]

    async def _invalidate(self, name: bytes) -> bool:
        if not self.remaining:
            raise RedisUnavailableError
        self.remaining -= 1
        result = await super()._invalidate(name)
        self.tickets.append(await begin_lease(self.other))
        return result


@pytest.mark.parametrize("left", [0, 1])
def test_an_interrupted_tag_invalidation_is_completed_by_the_next(redis: RedisServer, left: int) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made, connected_cache(redis, Cut) as cut:
            assert isinstance(cut, Cut)
            cut.remaining, cut.other, cut.tickets = left, made, []
            assert await complete_lease(made, await begin_lease(made))
            with contextlib.suppress(Problem):
                await cut.invalidate_tag(TAG)
            for lease in cut.tickets:
                await complete_lease(made, lease)
            assert await made.invalidate_tag(TAG) == 1
            again = await made.begin(KEY, 1.0)
            assert isinstance(again, RedisLease)
            again.give_up(None)

    run(work())


class Overtaken(RedisCache):
    """Another request looks the response up just before an invalidation reaches Redis."""

    copies: HybridCache | None = None

    async def invalidate(self, key: bytes) -> bool:
        await self._look_up()
        return await super().invalidate(key)

    async def invalidate_tag(self, tag: str) -> int:
        await self._look_up()
        return await super().invalidate_tag(tag)

    async def _look_up(self) -> None:
        assert self.copies is not None
        assert isinstance(await self.copies.begin(KEY, 1.0), Entry)


class Inspected(HybridCache):
    """Records whether the host has a copy when the other hosts are informed of an invalidation."""

    copied: Entry | None = None

    async def _publish(self, word: bytes) -> None:
        self.copied = self._get_copy(KEY)
        await super()._publish(word)


@pytest.mark.parametrize("by_tag", [False, True])
def test_a_copy_made_while_an_invalidation_is_sent_does_not_outlive_it(
    redis: RedisServer, tmp_path: Path, by_tag: bool
) -> None:
    async def work() -> None:
        async with connected_cache(redis, Overtaken) as made:
            assert isinstance(made, Overtaken)
            host = HostState(tmp_path)
            memory = MemoryCache(host.cached_responses("answers", 8_388_608), host.message_bus)
            made.copies = hybrid = Inspected(made, memory, HybridOptions())
            lease = await begin_lease(made)
            assert await made.complete(stored_name(KEY), lease.number, Entry(b"old", 1, tags=(TAG,)), None)
            while memory.count() == 0:  # no copies before it listens
                assert isinstance(await hybrid.begin(KEY, 1.0), Entry)
            assert await (hybrid.invalidate_tag(TAG) if by_tag else hybrid.invalidate(KEY))
            assert hybrid.copied is None
            memory.close()
            host.close()

    run(work())


@pytest.mark.parametrize("stale", [0.0, 30.0])
def test_copies_of_responses_with_the_default_lifetime_have_their_own(
    redis: RedisServer, tmp_path: Path, stale: float
) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            host = HostState(tmp_path)
            memory = MemoryCache(host.cached_responses("answers", 8_388_608), host.message_bus)
            hybrid = HybridCache(made, memory, HybridOptions(seconds=60.0, local_seconds=5.0))
            lease = await begin_lease(made)
            entry = Entry(b"old", 1, ends=60.0 + stale)
            assert await made.complete(stored_name(KEY), lease.number, entry, entry.ends)
            while memory.count() == 0:  # no copies before it listens
                assert isinstance(await hybrid.begin_stale(KEY, 1.0, Stale(stale, stale)), Entry)
            copy = hybrid.begin_stale(KEY, 1.0, Stale(stale, stale))
            assert copy.ends - copy.written <= 5.0
            memory.close()
            host.close()

    run(work())


def test_an_invalidated_tag_leaves_no_keys(redis: RedisServer) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            assert await complete_lease(made, await begin_lease(made))
            assert await made.invalidate_tag(TAG) == 1
            values = [name async for name in made.link.client.scan_iter(match=b"rowcall:tag:*")]
            assert [name for name in values if not name.endswith(b":turns")] == []

    run(work())


def test_a_tag_loses_the_names_of_expired_responses(redis: RedisServer) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            moment = 0.005 - COMPUTING
            assert await made.announce(b"unlimited", (TAG,), None)
            for seconds in (moment, 60.0, moment):
                assert await made.announce(b"announced again", (TAG,), seconds)
            for number in range(500):
                assert await made.announce(b"%d" % number, (TAG,), moment)
            with redis.client() as client:
                names, _, _, ends = tag_keys(TAG)
                values = client.smembers(names)
                assert isinstance(values, set)
                assert {b"unlimited", b"announced again"} <= values
                assert len(values) < 250
                assert client.zcard(ends) == len(values) - 1

    run(work())


def test_a_waiter_gets_the_response_of_its_own_lease() -> None:
    """The message about another lease may arrive late, after its response was invalidated and computed again."""

    async def work() -> None:
        waiters = SingleFlightWaiters()
        first, second, unknown = (waiters.join(KEY) for _ in range(3))
        waiters.record_lease_number(KEY, first, b"1")
        waiters.record_lease_number(KEY, second, b"2")
        old = Entry(b"old", 1)
        waiters.resolve(KEY, old, b"1")
        assert [future.result() for future in (first, second, unknown)] == [old, RETRY_LOOKUP, RETRY_LOOKUP]

    run(work())


def test_a_cancelled_waiting_request_leaves_no_state(redis: RedisServer) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            lease = await begin_lease(made)
            waiting = asyncio.create_task(made.begin(KEY, 30.0))
            await until(lambda: made.awaited)
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            assert not made.awaited
            lease.give_up(None)

    run(work())


def test_an_entry_of_another_key_or_a_damaged_entry_is_a_miss_and_deleted(redis: RedisServer) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            other = b"GET /others"
            for key in (KEY, other):
                lease = await made.begin(key, 10)
                assert isinstance(lease, RedisLease)
                assert await made.complete(stored_name(key), lease.number, Entry(key, 1), None)
            names = [b"rowcall:{%b}:a" % stored_name(key) for key in (KEY, other)]
            with redis.client() as client:
                good = client.get(names[0])
                assert isinstance(good, bytes)
                for foreign in (client.get(names[1]), good[:-1] + b"x", good[:20], b"", b"x" * 200):
                    client.set(names[0], foreign or b"")
                    lease = await made.begin(KEY, 10)
                    assert isinstance(lease, RedisLease), "computed anew"
                    assert await made.complete(stored_name(KEY), lease.number, Entry(KEY, 1), None)
            result = await made.begin(KEY, 10)
            assert isinstance(result, Entry)
            assert result.body == KEY

    run(work())


@pytest.mark.slow
def test_a_surplus_reply_is_not_taken_for_that_of_another_command(redis: RedisServer) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            for key in (KEY, b"GET /others"):
                lease = await made.begin(key, 10)
                assert isinstance(lease, RedisLease)
                assert await made.complete(stored_name(key), lease.number, Entry(key, 1), None)

            async def another_reply(*_arguments: object) -> list[object]:
                return [b"the mark of another call", 1]

            with pytest.raises(RedisUnavailableError):
                await made.link.ask(another_reply, check=lambda reply: reply[0] == b"mine")
            assert made.link.gone
            await until(lambda: not made.link.gone)
            for key in (KEY, b"GET /others"):
                result = await made.begin(key, 10)
                assert isinstance(result, Entry)
                assert result.body == key

    run(work())


def test_a_time_limit_applies_while_redis_does_not_reply(redis: RedisServer) -> None:
    async def work() -> None:
        async with connected_cache(redis) as made:
            await begin_lease(made)
            with redis.client() as client:
                client.client_pause(60)
            async with asyncio.timeout(2):
                with pytest.raises(Problem, match="504"):
                    await made.begin_stale(KEY, 0.02, Stale())

    run(work())
