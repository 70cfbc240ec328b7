"""A server with HTTP/2 over TLS, with the events of such servers: many streams at once, windows, resets, GOAWAY."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from typing import Any

import h2.config
import h2.connection
import h2.errors
import h2.events
from hyperframe.frame import GoAwayFrame


class Http2Upstream:
    """`reactions[path]`: called as `react(connection, stream, headers, body)` when a request is complete; it sends with
    h2's connection. `early[path]`: called as `react(connection, stream)` before, when the headers have arrived.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        context.set_alpn_protocols(["h2"])
        self._context = context
        self.reactions: dict[str, Callable[[_Peer, int, dict[str, str], bytes], None]] = {}
        self.early: dict[str, Callable[[_Peer, int], None]] = {}
        self.connections: list[_Peer] = []
        self._ready = threading.Event()
        self.port = 0
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)
        self.url = f"https://localhost:{self.port}"

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(
            self.loop.create_server(lambda: _Peer(self), "127.0.0.1", 0, ssl=self._context)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self.loop.run_forever()
        server.close()
        for peer in self.connections:
            peer.transport.abort()
        self.loop.run_until_complete(server.wait_closed())
        self.loop.close()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(10)


class _Peer(asyncio.Protocol):
    def __init__(self, server: Http2Upstream) -> None:
        self._server = server
        self._requests: dict[int, tuple[dict[str, str], bytearray]] = {}
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        self.transport: Any = None
        self._left: dict[int, bytes] = {}

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._server.connections.append(self)
        self.state.initiate_connection()
        self.flush()

    def data_received(self, data: bytes) -> None:
        for event in self.state.receive_data(data):
            stream = getattr(event, "stream_id", 0)
            if isinstance(event, h2.events.RequestReceived):
                headers = {name.decode(): value.decode() for name, value in event.headers}
                self._requests[stream] = (headers, bytearray())
                if (react := self._server.early.get(headers[":path"])) is not None:
                    react(self, stream)
            elif isinstance(event, h2.events.DataReceived):
                self._requests[stream][1].extend(event.data)
                self.state.acknowledge_received_data(event.flow_controlled_length, stream)
            elif isinstance(event, h2.events.WindowUpdated):
                for waiting in list(self._left):
                    self._go_on(waiting)
            if isinstance(event, h2.events.StreamEnded):
                headers, body = self._requests.pop(stream)
                self._server.reactions[headers[":path"].partition("?")[0]](self, stream, headers, bytes(body))
        self.flush()

    def answer(self, stream: int, body: bytes, status: int = 200) -> None:
        self.state.send_headers(stream, [(":status", str(status)), ("content-type", "t/x")])
        self._left[stream] = body
        self._go_on(stream)

    def _go_on(self, stream: int) -> None:
        rest = self._left[stream]
        while rest:
            room = min(self.state.local_flow_control_window(stream), self.state.max_outbound_frame_size)
            if room <= 0:
                break
            self.state.send_data(stream, rest[:room])
            rest = rest[room:]
        self._left[stream] = rest
        if not rest:
            del self._left[stream]
            self.state.end_stream(stream)

    def reset(self, stream: int) -> None:
        self.state.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)

    def go_away(self, last: int) -> None:
        self.state.close_connection(last_stream_id=last)

    def leave(self, last: int) -> None:
        """Send GOAWAY, and complete the streams up to `last`, which h2 does not support."""
        self.flush()
        self.transport.write(GoAwayFrame(0, last_stream_id=last).serialize())

    def flush(self) -> None:
        if data := self.state.data_to_send():
            self.transport.write(data)
