"""The HTTP/1.1 server in the event loop: connections after the system has refused it a descriptor, bodies, files."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from rowcall.core.config.sections.http_server import HttpServer
from rowcall.service.options.worker import HttpOptions
from rowcall.service.request_context.protocols import Handle
from rowcall.service.sockets.listeners import BACKLOG, Listener
from rowcall.service.worker.loop_server import LoopServer
from tests.harness.descriptors import no_free_descriptors

OPTIONS = HttpOptions(HttpServer())


def _respond(_scope: Any, protocol: Any) -> None:
    protocol.response_bytes(200, [], b"served")


async def _response(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    response = await reader.read()
    writer.close()
    return response


def test_accepting_continues_when_a_descriptor_is_free() -> None:
    async def serve() -> None:
        listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        port = listening.getsockname()[1]
        server = LoopServer(_respond, Listener(listening.detach()), OPTIONS, problem_types=False, http2=False)
        with no_free_descriptors():
            server.start()
            await asyncio.sleep(0.01)
        try:
            async with asyncio.timeout(5):
                assert (await _response(port)).endswith(b"served")
        finally:
            await server.stop(1)

    uvloop.run(serve())


def test_socket_stays_open_while_no_descriptor_is_free() -> None:
    """With libuv 1.43 (uvloop 0.17), uvloop closes the socket then without a report; not with 1.46 and later."""

    async def serve() -> None:
        listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        address = listening.getsockname()
        server = LoopServer(_respond, Listener(listening.detach()), OPTIONS, problem_types=False, http2=False)
        server.start()
        try:
            assert (await _response(address[1])).endswith(b"served")
            with socket.socket() as client:
                client.setblocking(False)
                with no_free_descriptors():
                    client.connect_ex(address)
                    for _ in range(10):
                        await asyncio.sleep(0)
            async with asyncio.timeout(5):
                assert (await _response(address[1])).endswith(b"served")
        finally:
            await server.stop(1)

    uvloop.run(serve())


def _serve(handle: Handle, test: Callable[[int], Awaitable[None]]) -> None:
    """Run `test` with the port of a server whose requests `handle` handles."""

    async def serve() -> None:
        listening = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        port = listening.getsockname()[1]
        server = LoopServer(handle, Listener(listening.detach()), OPTIONS, problem_types=False, http2=False)
        server.start()
        try:
            async with asyncio.timeout(20):
                await test(port)
        finally:
            await server.stop(1)

    uvloop.run(serve())


async def _write_forever(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"x")
        await asyncio.sleep(0.05)
        await writer.drain()


@pytest.mark.slow
def test_response_in_front_of_an_unread_body_is_sent_to_slow_clients() -> None:
    """The server closes such a connection, some time after the response, because it cannot read the next request."""
    request = b"GET /%s HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    bodies = {"/long": b"x" * 20_000_000, "/short": b""}

    async def read_late(port: int) -> None:
        # With a small limit, the reader stops to receive until `read` is called.
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
        writer.write(request % b"long")
        head = await reader.readuntil(b"\r\n\r\n")
        other, closed = await asyncio.open_connection("127.0.0.1", port)
        closed.write(request % b"short")
        await other.read()
        with pytest.raises(ConnectionError):
            await _write_forever(closed)
        assert b"content-length: 20000000" in head
        assert len(await reader.read()) == 20_000_000
        writer.close()
        closed.close()

    _serve(lambda scope, protocol: protocol.response_bytes(200, [], bodies[scope.path]), read_late)


def test_chunks_that_arrive_together_are_one_piece() -> None:
    """A client that sends chunks of one byte cannot occupy the event loop."""
    pieces: list[bytes] = []

    async def read(protocol: Any) -> None:
        pieces.extend([piece async for piece in protocol])
        protocol.response_empty(204, [])

    async def send(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        chunks = b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n"
        writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
        assert (await reader.readline()).split()[1] == b"204"
        writer.close()

    tasks = set()

    def handle(_scope: Any, protocol: Any) -> None:
        tasks.add(asyncio.ensure_future(read(protocol)))

    _serve(handle, send)
    assert b"".join(pieces) == b"x" * 20_000
    assert len(pieces) < 200


def test_file_that_has_grown_is_sent_as_its_headers_say(tmp_path: Path) -> None:
    """A log file may grow between the choice of the headers and the opening of the file."""
    path = tmp_path / "growing.log"
    path.write_bytes(b"old and new")

    async def get_twice(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            assert b"content-length: 3\r\n" in await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(3) == b"old"
        writer.close()

    _serve(lambda _scope, protocol: protocol.response_file(200, [("content-length", "3")], str(path)), get_twice)
