"""A proxy before a real PostgreSQL that changes messages of the server: drops, duplicates, truncates, mutates, adds.

Each rule works on single messages. No pipelining client could detect a whole segment that is sent twice, because the
protocol does not number requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import struct
from collections import Counter
from collections.abc import Callable

from tests.harness.tcp_proxy import READ, TcpProxy

_ENCRYPTION_REQUESTS = (80877103, 80877104)
READY = b"Z"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def error(severity: bytes, sqlstate: bytes) -> bytes:
    return message(b"E", b"S%b\0V%b\0C%b\0Mhostile\0\0" % (severity, severity, sqlstate))


ADDED = {
    "an error": error(b"ERROR", b"22000"),
    "an error without SQLSTATE": message(b"E", b"SERROR\0Mhostile\0\0"),
    "a fatal error": error(b"FATAL", b"57P01"),
    "an unknown prepared statement": error(b"ERROR", b"26000"),
    "a serialization failure": error(b"ERROR", b"40001"),
    "a notice": message(b"N", b"SNOTICE\0VNOTICE\0C00000\0Mhostile\0\0"),
    "a parameter": message(b"S", b"TimeZone\0Asia/Tokyo\0"),
    "a notification": message(b"A", struct.pack("!i", 7) + b"hostile\0\0"),
    "ready": message(READY, b"I"),
    "ready in a transaction": message(READY, b"T"),
    "ready in an unknown state": message(READY, b"?"),
    "parse complete": message(b"1", b""),
    "bind complete": message(b"2", b""),
    "no data": message(b"n", b""),
    "command complete": message(b"C", b"SELECT 1\0"),
    "empty query": message(b"I", b""),
    "portal suspended": message(b"s", b""),
    "a row": message(b"D", struct.pack("!hi", 1, 4) + b"junk"),
    "a row of many columns": message(b"D", struct.pack("!h", 1600) + struct.pack("!i", -1) * 1600),
    "another description": message(b"T", struct.pack("!h", 1) + b"x\0" + struct.pack("!ihihih", 0, 0, 23, 4, -1, 0)),
    "copy in": message(b"G", b"\0\0\0"),
    "copy out": message(b"H", b"\0\0\0"),
    "copy data": message(b"d", b"hostile"),
    "authentication": message(b"R", struct.pack("!i", 3)),
    "a negative length": b"D\xff\xff\xff\xff",
    "an unknown type": message(b"\x7f", b"hostile"),
}

Rule = Callable[[bytes, bytes], "bytes | None"]
"""Returns the bytes to send for a message (type, whole message); None cuts the connection."""


ACTIONS = ("drop", "duplicate", "add before", "add behind", "truncate", "type", "length", "cut", "mutate")


class Mutations:
    """A seeded `Rule` that leaves most messages unchanged.

    A serialization failure is never added before ReadyForQuery: it is then, byte for byte, the failed commit of a
    serializable transaction, which the service repeats (driver-28). No client can distinguish it from a real one.

    values: also change bytes within messages, which cannot be detected, because the protocol has no checksums.
    """

    def __init__(self, seed: int, share: float = 0.01, *, values: bool = True) -> None:
        self._random = random.Random(seed)
        self._share = share
        self._actions = ACTIONS if values else ACTIONS[:-1]
        self.counts: Counter[str] = Counter()

    def __call__(self, kind: bytes, whole: bytes) -> bytes | None:
        draw = self._random
        if draw.random() >= self._share:
            return whole
        name = draw.choice(self._actions)
        self.counts[name] += 1
        body = whole[5:]
        match name:
            case "drop":
                return b""
            case "duplicate":
                return whole * draw.choice((2, 2, 2, 5))
            case "add before":
                added = draw.choice(tuple(ADDED.values()))
                if kind == READY and added == ADDED["a serialization failure"]:
                    return whole
                return added + whole
            case "add behind":
                added = draw.choice(tuple(ADDED.values()))
                if kind == b"C" and added == ADDED["a serialization failure"]:
                    return whole
                return whole + added
            case "truncate":
                return message(kind, body[: draw.randrange(len(body) + 1)])
            case "mutate" if body:
                changed = bytearray(body)
                for _ in range(draw.choice((1, 1, 4))):
                    changed[draw.randrange(len(changed))] = draw.randrange(256)
                return message(kind, bytes(changed))
            case "type":
                return bytes([draw.choice(b"123ACDEGHIKNRSTVWZcdnst\0\xff")]) + whole[1:]
            case "length":
                wrong = len(whole) - 1 + draw.choice((-4, -3, -1, 1, 3, 7, 1_000, 2**30))
                return kind + struct.pack("!i", wrong) + body
            case "cut":
                return None
            case _:
                return whole


class HostilePostgres(TcpProxy):
    """Messages pass unchanged, except while `rule` is set, on connections over which a client has sent `target`."""

    def __init__(self, port: int, target: bytes) -> None:
        self.rule: Rule | None = None
        self._mark = target
        super().__init__(port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        writers = [writer]
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            start = await self._startup(reader, writer)
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(server_writer)
            writers.append(server_writer)
            server_writer.write(start)
            attacked = asyncio.Event()
            await asyncio.gather(
                self._to_server(reader, server_writer, attacked), self._to_client(server_reader, writer, attacked)
            )
        await asyncio.gather(*map(self._end, writers))

    async def _startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Return the message that begins a session. Requests for encryption are refused here."""
        while True:
            head = await reader.readexactly(8)
            size, code = struct.unpack("!ii", head)
            if code not in _ENCRYPTION_REQUESTS:
                return head + await reader.readexactly(size - 8)
            writer.write(b"N")

    async def _to_server(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, attacked: asyncio.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(READ):
                if self._mark in data:
                    attacked.set()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _to_client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, attacked: asyncio.Event
    ) -> None:
        waiting = bytearray()
        with contextlib.suppress(OSError):
            while data := await reader.read(READ):
                waiting += data
                sent = bytearray()
                cut = False
                while not cut and len(waiting) >= 5:
                    end = 1 + int.from_bytes(waiting[1:5], "big")
                    if len(waiting) < end:
                        break
                    whole = bytes(waiting[:end])
                    del waiting[:end]
                    changed = self.rule(whole[:1], whole) if self.rule is not None and attacked.is_set() else whole
                    cut = changed is None
                    sent += changed or b""
                writer.write(bytes(sent))
                await writer.drain()
                if cut:
                    break
        writer.close()
