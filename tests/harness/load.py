"""Many clients at once, each on its own keep-alive connection, that verify every response.

A client sends a request, reads one response, and checks that no bytes follow it. `Load` does this in a thread while a
test causes faults, and records an `Outcome` for each request.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.harness.raw_http import parse_head
from tests.harness.waiting import wait_until

NO_HEADERS: Mapping[str, str] = {}
REQUEST_SECONDS = 20.0
"""Longer than any request of a test may take; a later response counts as none."""


@dataclass(frozen=True)
class Outcome:
    number: int
    """Unique for each request of a load."""
    status: int
    """0: the connection ended without a response."""
    body: bytes
    detail: str = ""


Execution = Callable[[int], tuple[str, str, bytes]]
"""Returns method, target and body for the number of a request."""


class Load:
    """`with Load(port, request) as load:` runs until the block ends; afterwards `outcomes` is complete."""

    def __init__(self, port: int, request: Execution, clients: int = 16, *, keep_alive: bool = True) -> None:
        """keep_alive: False uses a new connection for each request."""
        self._keep_alive = keep_alive
        self._port = port
        self._request = request
        self._clients = clients
        self._numbers = itertools.count(1)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load")
        self.outcomes: list[Outcome] = []

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def wait_for(self, count: int, status: int = 200, seconds: float = 30.0) -> None:
        """Wait for `count` more responses with this status."""
        count_before = self.statuses()[status]
        wait_until(lambda: self.statuses()[status] >= count_before + count, f"{count} more answers {status}", seconds)

    def statuses(self) -> Counter[int]:
        return Counter(outcome.status for outcome in list(self.outcomes))

    def _run(self) -> None:
        asyncio.run(self._all_clients())

    async def _all_clients(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(self._clients)))

    async def _client(self) -> None:
        connection: Connection | None = None
        while not self._stopping.is_set():
            number = next(self._numbers)
            try:
                connection = connection or await Connection.open(self._port)
                status, body = await asyncio.wait_for(connection.send(*self._request(number)), REQUEST_SECONDS)
                self.outcomes.append(Outcome(number, status, body))
            except (OSError, EOFError, TimeoutError) as error:
                self.outcomes.append(Outcome(number, 0, b"", f"{type(error).__name__}: {error}"))
                await asyncio.sleep(0.01)  # No listener: avoid a busy loop.
            else:
                if self._keep_alive and not connection.closing:
                    continue
            if connection is not None:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()


class Connection:
    """A keep-alive connection of a client with short timeouts and strict checks."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.closing = False

    @classmethod
    async def open(cls, port: int) -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def send(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str] = NO_HEADERS
    ) -> tuple[int, bytes]:
        if self._reader._buffer:  # type: ignore[attr-defined]
            raise AssertionError("the service sent bytes without a request: a request was answered twice")
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"{method} {target} HTTP/1.1\r\nHost: load\r\n{more}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        await self._writer.drain()
        status, headers = parse_head((await self._reader.readuntil(b"\r\n\r\n"))[:-4])
        self.closing = headers.get("connection", "").lower() == "close"
        if status == 204 or method == "HEAD":
            return status, b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return status, await self._read_chunks()
        return status, await self._reader.readexactly(int(headers["content-length"]))

    async def _read_chunks(self) -> bytes:
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readexactly(2)
        return body

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._writer.close()

    async def end(self) -> None:
        """Close, and wait for the end of the connection."""
        self.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
