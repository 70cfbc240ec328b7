"""Progress of readers by their TCP connections."""

from __future__ import annotations

import socket
import sys

import pytest

from rowcall.service.events.reading_progress import Connections
from tests.ext.wire import run, until
from tests.harness.descriptors import no_free_descriptors

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows what a client has acknowledged")


def test_without_free_descriptors_the_progress_of_a_client_is_unknown() -> None:
    async def work() -> None:
        connections = Connections()
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
            sender, (host, port) = server.accept()
            with sender:
                client = f"{host}:{port}"
                with no_free_descriptors():
                    assert connections.acknowledged_bytes(client) is None
                    connections.reset_connection(client)
                sender.sendall(b"abc")
                await until(lambda: (connections.acknowledged_bytes(client) or 0) >= 3)
                with no_free_descriptors():
                    connections.reset_connection(client)
                assert reader.recv(3) + reader.recv(1) == b"abc"

    run(work())
