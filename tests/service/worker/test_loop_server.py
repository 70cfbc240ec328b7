"""The HTTP/1.1 server in the event loop accepts connections again after the system has refused it a descriptor."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvloop

from rowcall.core.config.sections.http_server import HttpServer
from rowcall.service.options.worker import HttpOptions
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
