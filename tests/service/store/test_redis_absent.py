"""A worker that begins while Redis is away hears what is to be forgotten, and forgets it when Redis is back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from rowcall.core.cache.options import CacheOptions, Place
from rowcall.service.shared_state.cache_backends import CacheBackends
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.message_bus import MessageBus
from tests.harness.redis_server import RedisServer


def test_a_tag_is_forgotten_once_redis_is_back(redis: RedisServer, tmp_path: Path) -> None:
    redis.kill()

    async def hear() -> None:
        # What the first worker of this host has said.
        (tmp_path / "answers-in").write_text("redis")
        host = HostState(tmp_path)
        place = f"{redis.place},connectRetry=1"
        stores = CacheBackends(replace(CacheOptions(), enabled=True, place=Place.REDIS, redis=place), host)
        stores.open()
        stores.of(Place.REDIS)
        await stores._absent.wait()
        behind = asyncio.Event()
        host.message_bus.subscribe("behind", lambda _message: behind.set())
        host.announce_invalidation("orders")
        host.message_bus.publish("behind", b"")
        await behind.wait()
        (invalidating,) = stores._forgetting
        assert not invalidating.done()
        await asyncio.to_thread(redis.start)
        await invalidating
        await stores.close()
        host.close()

    asyncio.run(asyncio.wait_for(hear(), 60))


def test_a_message_that_one_cannot_take_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    message_bus = MessageBus(tmp_path)
    taken: list[bytes] = []

    async def listen() -> None:
        came = asyncio.Event()

        def take(message: bytes) -> None:
            taken.append(message)
            if message == b"1":
                raise ValueError
            came.set()

        message_bus.subscribe("numbers", take)
        message_bus.publish("numbers", b"1")
        message_bus.publish("numbers", b"2")
        await asyncio.wait_for(came.wait(), 60)
        message_bus.close()

    asyncio.run(listen())
    assert taken == [b"1", b"2"]
