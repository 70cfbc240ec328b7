"""Processes of other users neither get the listening sockets nor hand any over."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator

import pytest

from rowcall.service.sockets.listeners import Address, ListenerPlan, Listeners
from rowcall.service.supervisor import socket_handover
from rowcall.service.supervisor.socket_handover import SuccessorListener


@pytest.fixture
def pair(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection; the process at the other end always belongs to another user, who is not root."""
    monkeypatch.setattr(socket_handover, "_owner", lambda _connection: os.geteuid() + 1)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with here, there:
        here.settimeout(30)
        there.setblocking(False)
        yield here, there


def test_another_user_gets_no_sockets(
    pair: tuple[socket.socket, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    here, there = pair
    here.send(socket_handover._HELLO)
    listeners = Listeners([ListenerPlan(Address.parse("http://127.0.0.1:0"))], 1)
    try:
        handing_over = SuccessorListener("/nowhere", listeners, lambda: None)._hand_over(there)
        asyncio.run(asyncio.wait_for(handing_over, 30))
    finally:
        listeners.close()
    here.setblocking(False)
    with pytest.raises(BlockingIOError):
        here.recv(64)
    assert "it belongs to another user" in caplog.text


def test_no_sockets_of_another_user_are_used(pair: tuple[socket.socket, socket.socket]) -> None:
    here, there = pair
    with pytest.raises(PermissionError):
        socket_handover._receive_sockets(here)
    with pytest.raises(BlockingIOError):
        there.recv(64)
