"""A connection is known by its client's address in each of its forms, and one that has ended is known to have ended."""

from __future__ import annotations

import socket

import pytest

from rowcall.service.sockets.peers import Presence


@pytest.mark.parametrize(
    ("family", "host", "forwarded"),
    [
        (socket.AF_INET, "127.0.0.1", "127.0.0.1:{}"),
        (socket.AF_INET6, "::1", "[::1]:{}"),
        (socket.AF_INET6, "::1", "[::1%4]:{}"),
    ],
)
def test_a_client_is_connected_until_its_connection_ends(family: int, host: str, forwarded: str) -> None:
    try:
        listening = socket.create_server((host, 0), family=family)
    except OSError as error:
        pytest.skip(f"{host} is no address of this machine: {error}")
    with listening:
        client = socket.create_connection(listening.getsockname()[:2])
        ours, _ = listening.accept()
        presence = Presence(forwarded.format(client.getsockname()[1]))
        assert not presence.is_disconnected()
        ours.close()
        assert presence.is_disconnected()
        client.close()


def test_a_client_without_address_counts_as_connected() -> None:
    assert not Presence("").is_disconnected()
