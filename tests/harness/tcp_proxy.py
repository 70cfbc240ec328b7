"""A TCP proxy between the service and a server: delays data, cuts connections, or uses TLS on one side."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Coroutine
from typing import Any

READ = 65_536


class TcpProxy:
    """Listens on a port of its own from construction until `close`. delay: seconds, for each piece in each
    direction."""

    def __init__(self, port: int, context: ssl.SSLContext | None = None) -> None:
        self._target = port
        self._context = context
        self.delay = 0.0
        self.connections = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._closing = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._server: asyncio.Server = self._run(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._context)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            await self._end(writer)
        else:
            self._writers.add(other_writer)
            await asyncio.gather(self._pass(reader, other_writer), self._pass(other_reader, writer))
            await asyncio.gather(self._end(writer), self._end(other_writer))

    async def _end(self, writer: asyncio.StreamWriter) -> None:
        """Close a connection, and wait until its socket is closed: it is not while the peer has not read everything."""
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(READ):
                if self.delay:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._closing.wait(), self.delay)
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        """End all connections; new ones are possible."""

        async def end() -> None:
            for writer in tuple(self._writers):
                writer.transport.abort()

        self._run(end())

    def close(self) -> None:
        async def end() -> None:
            # No further connection is accepted. Those that were just accepted need the server, so it is closed last:
            # otherwise, asyncio fails to attach them, and leaves their sockets open.
            for listener in self._server.sockets:
                self._loop.remove_reader(listener)
            self._closing.set()
            # Tasks are not cancelled: one that has just accepted a connection would leave its socket open.
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                for writer in tuple(self._writers):
                    writer.transport.abort()
                await asyncio.wait(others, timeout=0.02)
            self._server.close()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
