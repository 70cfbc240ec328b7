"""A worker that starts while Redis is unavailable receives invalidations, and applies them when Redis is back."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from rowcall.core.cache.options import CacheOptions, Place
from rowcall.core.cache.redis_address import parse_redis
from rowcall.service.shared_state.cache_backends import CacheBackends, _ConnectingBackend
from rowcall.service.shared_state.host_state import HostState
from rowcall.service.shared_state.message_bus import MessageBus
from rowcall.service.shared_state.redis_link import RedisLink
from tests.ext.wire import until
from tests.harness.redis_server import RedisServer
from tests.harness.tcp_proxy import READ, TcpProxy


@pytest.mark.slow
def test_a_tag_is_invalidated_after_redis_has_returned(redis: RedisServer, tmp_path: Path) -> None:
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
        (invalidating,) = stores._invalidating
        assert not invalidating.done()
        await asyncio.to_thread(redis.start)
        await invalidating
        await stores.close()
        host.close()

    asyncio.run(asyncio.wait_for(hear(), 60))


def test_a_cancelled_lookup_leaves_no_task_while_redis_is_connecting() -> None:
    async def look_up() -> None:
        backend = _ConnectingBackend(asyncio.get_running_loop().create_future(), asyncio.Event())
        invalidation = backend.invalidate(b"key")
        assert asyncio.iscoroutine(invalidation)
        before = asyncio.all_tasks()
        lookup = asyncio.create_task(invalidation)
        await until(lambda: len(asyncio.all_tasks() - before) == 2)
        lookup.cancel()
        await until(lambda: asyncio.all_tasks() == before)
        backend.close()

    asyncio.run(asyncio.wait_for(look_up(), 60))


def test_a_failing_listener_does_not_keep_messages_from_others(tmp_path: Path) -> None:
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


class FirstReplies(TcpProxy):
    """Passes replies on until one to EVAL, which it loses, or replaces by one of another form."""

    def __init__(self, port: int, reply: bytes) -> None:
        self._reply = reply
        self._clients: set[asyncio.StreamWriter] = set()
        self.evaluated = False
        super().__init__(port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        await super()._accept(reader, writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(READ):
                if writer not in self._clients:
                    self.evaluated = self.evaluated or b"EVAL\r\n" in data
                elif self.evaluated:
                    data = self._reply
                writer.write(data)
                await writer.drain()
        writer.close()


@pytest.mark.parametrize("reply", [b"", b":abc\r\n", b"*-7\r\n"], ids=["lost", "malformed", "length"])
def test_a_connection_whose_probe_is_unanswered_fails(redis: RedisServer, reply: bytes) -> None:
    proxy = FirstReplies(redis.port, reply)

    async def connect() -> None:
        link = RedisLink(parse_redis(f"127.0.0.1:{proxy.port},syncTimeout=200"))
        connecting = asyncio.create_task(link.connect())
        done, _ = await asyncio.wait({connecting}, timeout=30)
        assert done, "connecting goes on"
        assert isinstance(connecting.exception(), (OSError, RedisError))
        assert link.gone
        await link.close()

    try:
        asyncio.run(connect())
    finally:
        proxy.close()
    assert proxy.evaluated
