"""HTTP/2 without TLS on a port that the event loop serves: granian listens on the loopback interface, and the bytes of
such connections pass between it and the client.

granian knows these connections by the port of this process. Requests get the address of the client instead, and a
connection that was not opened here is refused.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

from rowcall.service.options.worker import HttpOptions
from rowcall.service.request_context.protocols import Handle
from rowcall.service.sockets.listeners import BACKLOG, Listener
from rowcall.service.worker.http_server import HttpServer


class Http2Connections:
    """The connections of HTTP/2 of one listener. granian starts with the first one."""

    def __init__(self, handle: Handle, options: HttpOptions, on_end: Callable[[], None]) -> None:
        """handle: handles the requests. on_end: called when a connection has ended."""
        self._loop = asyncio.get_running_loop()
        self._handle = handle
        self._options = options
        self._on_end = on_end
        self._server: HttpServer | None = None
        self._port = 0
        self._clients: dict[str, _Addresses] = {}
        self._pipes: set[_Pipe] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.count = 0
        """Connections that are open."""

    def take(self, transport: Any, data: bytes) -> None:
        """Take over a connection. transport: of the connection with the client. data: what the client has sent."""
        self.count += 1
        pipe = _Pipe(transport, data, self._end)
        self._pipes.add(pipe)
        task = self._loop.create_task(self._connect(pipe))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, pipe: _Pipe) -> None:
        """Connect a pipe to granian; if that fails, close the connection with the client."""
        try:
            port = self._listen()
            transport, _ = await self._loop.create_connection(lambda: pipe.inner, "127.0.0.1", port)
        except OSError:
            pipe.close()
            return
        address = "{}:{}".format(*transport.get_extra_info("sockname"))
        pipe.address = address
        self._clients[address] = _Addresses(pipe.client, pipe.local)
        pipe.begin()

    def _listen(self) -> int:
        """Start granian on the loopback interface, unless it runs, and return its port."""
        if self._server is None:
            listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
            listening.setblocking(False)
            self._port = listening.getsockname()[1]
            # granian closes the descriptor itself.
            listener = Listener(listening.detach(), protocols="2")
            self._server = HttpServer(self._handle_with_client, listener, self._options)
            self._server.start()
        return self._port

    def _handle_with_client(self, scope: Any, protocol: Any) -> None:
        """Handle a request with the addresses of its client; refuse one of an unknown connection with 403."""
        addresses = self._clients.get(scope.client)
        if addresses is None:
            protocol.response_empty(403, [])
        else:
            self._handle(_ClientScope(scope, addresses), protocol)

    def _end(self, pipe: _Pipe) -> None:
        """Remove a pipe that has ended. A second call for it has no effect."""
        if pipe in self._pipes:
            self._pipes.discard(pipe)
            self._clients.pop(pipe.address, None)
            self.count -= 1
            self._on_end()

    def announce_close(self) -> None:
        """Do what `HttpServer.announce_close` does. Clients of HTTP/2 are asked to use another connection only when
        `stop` is called."""
        if self._server is not None:
            self._server.announce_close()

    async def stop(self, seconds: float) -> bool:
        """Wait for running requests, at most `seconds`, and close all connections. Return False if the time was too
        short.
        """
        ended = self._server is None or await self._server.stop(seconds)
        for pipe in list(self._pipes):
            pipe.close()
        return ended


class _Addresses:
    """The addresses of a client's connection: those of the client and of this service."""

    __slots__ = ("client", "server")

    def __init__(self, client: str, server: str) -> None:
        self.client = client
        self.server = server


class _ClientScope:
    """granian's scope, with the addresses of the connection that the client has opened."""

    def __init__(self, scope: Any, addresses: _Addresses) -> None:
        self._scope = scope
        self.client = addresses.client
        self.server = addresses.server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scope, name)


class _Pipe:
    """Passes bytes between a client (`outer`) and granian (`inner`), as fast as the slower side takes them.

    transport: of the connection with the client. data: what the client has sent. on_end: called with the pipe at its
    end, perhaps more than once. `address`: `host:port` from which this process has connected to granian, which takes it
    for the client; empty before.
    """

    def __init__(self, transport: Any, data: bytes, on_end: Callable[[_Pipe], None]) -> None:
        self.client = _text(transport.get_extra_info("peername"))
        self.local = _text(transport.get_extra_info("sockname"))
        self.address = ""
        self._data = data
        self._on_end = on_end
        self.outer = _End(self, transport)
        self.inner = _End(self, None)
        self.outer.other, self.inner.other = self.inner, self.outer
        transport.pause_reading()
        transport.set_protocol(self.outer)

    def begin(self) -> None:
        """Begin to pass bytes in both directions. Call it when the connection with granian is open. If the client has
        disconnected, close the pipe."""
        self.inner.transport.write(self._data)
        self._data = b""
        if self.outer.transport.is_closing():
            self.close()
        else:
            self.outer.transport.resume_reading()

    def close(self) -> None:
        for end in (self.outer, self.inner):
            if end.transport is not None:
                end.transport.close()
        self._on_end(self)


class _End(asyncio.Protocol):
    """One side of a pipe: what it receives is written to the other one."""

    def __init__(self, pipe: _Pipe, transport: Any) -> None:
        self._pipe = pipe
        self.transport = transport
        self.other: _End

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self._pipe.close()


def _text(address: Any) -> str:
    """Return an address of a transport as `host:port`; that of a Unix socket as its path, and none as an empty text."""
    if not isinstance(address, tuple):
        return str(address or "")
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
