"""Progress of readers by their TCP connections."""

from __future__ import annotations

import socket
import sys

import pytest

from rowcall.service.events.reading_progress import Connections, Unread
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


def test_the_end_of_a_stream_that_was_read_does_not_hide_what_another_one_leaves_unread() -> None:
    unread, unread_stream = Unread(), object()
    unread.update(unread_stream, 15_000, 0)
    acknowledged = 0
    for _ in range(3):
        read_stream = object()
        for _ in range(100):
            acknowledged += 1_000
            unread.update(read_stream, 1_000, acknowledged)
        unread.forget(read_stream)
    assert unread.size == 15_000


def test_what_a_stream_has_left_unread_does_not_count_after_its_end() -> None:
    unread, unread_stream, other_stream = Unread(), object(), object()
    unread.update(other_stream, 1_000, 0)
    unread.update(other_stream, 0, 1_000)
    unread.update(unread_stream, 15_000, 1_000)
    unread.update(other_stream, 500, 1_000)
    unread.forget(unread_stream)
    assert unread.size == 500
    unread.forget(other_stream)
    assert unread.size == 0
