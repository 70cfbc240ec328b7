"""A worker that begins while Redis is away hears what is to be forgotten, and forgets it when Redis is back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from rowcall.core.cache.options import CacheOptions, Place
from rowcall.service.store.answers import AnswerStores
from rowcall.service.store.bus import Bus
from rowcall.service.store.host import HostStore
from tests.harness.redis_server import RedisServer


def test_a_tag_is_forgotten_once_redis_is_back(redis: RedisServer, tmp_path: Path) -> None:
    redis.kill()

    async def hear() -> None:
        # What the first worker of this host has said.
        (tmp_path / "answers-in").write_text("redis")
        host = HostStore(tmp_path)
        place = f"{redis.place},connectRetry=1"
        stores = AnswerStores(replace(CacheOptions(), enabled=True, place=Place.REDIS, redis=place), host)
        stores.open()
        stores.of(Place.REDIS)
        await stores._absent.wait()
        behind = asyncio.Event()
        host.bus.subscribe("behind", lambda _message: behind.set())
        host.tell_forgotten("orders")
        host.bus.publish("behind", b"")
        await behind.wait()
        (forgetting,) = stores._forgetting
        assert not forgetting.done()
        await asyncio.to_thread(redis.start)
        await forgetting
        await stores.close()
        host.close()

    asyncio.run(asyncio.wait_for(hear(), 60))


def test_a_message_that_one_cannot_take_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    bus = Bus(tmp_path)
    taken: list[bytes] = []

    async def listen() -> None:
        came = asyncio.Event()

        def take(message: bytes) -> None:
            taken.append(message)
            if message == b"1":
                raise ValueError
            came.set()

        bus.subscribe("numbers", take)
        bus.publish("numbers", b"1")
        bus.publish("numbers", b"2")
        await asyncio.wait_for(came.wait(), 60)
        bus.close()

    asyncio.run(listen())
    assert taken == [b"1", b"2"]
