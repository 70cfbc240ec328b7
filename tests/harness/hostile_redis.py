"""A proxy before Redis that damages replies: surplus, replayed, malformed, changed, truncated and lost replies."""

from __future__ import annotations

import asyncio
import contextlib
import random

from tests.harness.tcp_proxy import READ, TcpProxy

SURPLUS = (b"+OK\r\n", b":1\r\n", b"$3\r\nfoo\r\n", b"$-1\r\n", b"*1\r\n$3\r\nfoo\r\n", b"*2\r\n:1\r\n$3\r\nfoo\r\n")
MALFORMED = (
    b":abc\r\n",
    b"$x\r\n",
    b"*-7\r\n",
    b"\x00\xff\r\n",
    b"$5\r\nab\r\n",
    b"-\r\n",
    b"-ERR made up\r\n",
    b"\r\n",
)


class HostileRedis(TcpProxy):
    """Damages about one reply in `every` while `hostile` is set. The random numbers depend on the seed only."""

    def __init__(self, port: int, seed: int, every: int) -> None:
        self.hostile = False
        self.attacks = 0
        self._random = random.Random(seed)
        self._every = every
        self._clients: set[asyncio.StreamWriter] = set()
        super().__init__(port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        await super()._accept(reader, writer)
        self._clients.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        previous = b"+OK\r\n"
        with contextlib.suppress(OSError):
            while data := await reader.read(READ):
                sent = data
                if writer in self._clients and self.hostile and not self._random.randrange(self._every):
                    self.attacks += 1
                    sent = self._damaged(data, previous)
                previous = data
                writer.write(sent)
                await writer.drain()
        writer.close()

    def _damaged(self, data: bytes, previous: bytes) -> bytes:
        place = self._random.randrange(len(data))
        changed = data[:place] + bytes([self._random.randrange(256)]) + data[place + 1 :]
        return self._random.choice(
            (
                self._random.choice(SURPLUS) + data,
                data + self._random.choice(SURPLUS),
                previous + data,
                previous,
                data + data,
                changed,
                self._random.choice(MALFORMED),
                self._random.choice(MALFORMED) + data,
                data[:place],
            )
        )
