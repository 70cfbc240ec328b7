"""The admin listener when the system has no further threads."""

from __future__ import annotations

import socket
import threading
import time
from itertools import chain, repeat

import httpx
import pytest

from rowcall.service.metrics import admin
from rowcall.service.metrics.admin import AdminListener, AdminRequest, AdminResponse
from rowcall.service.options.server.metrics import AdminOptions
from rowcall.service.sockets.listeners import Address


def _page(_request: AdminRequest) -> AdminResponse:
    return AdminResponse("text/plain", b"served")


def _refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_requests_without_a_free_thread_release_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    options = AdminOptions(Address("http", "127.0.0.1", 0), token=None, metrics_path=None)
    listener = AdminListener(options, {("GET", "/page"): _page})
    try:
        address = httpx.URL(listener.url)
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", _refuse)
            for _ in range(20):
                with socket.create_connection((address.host, address.port or 0), timeout=5) as connection:
                    assert connection.recv(1) == b""
        assert httpx.get(f"{listener.url}/page").text == "served"
    finally:
        listener.close()


@pytest.mark.attack
def test_a_request_that_arrives_byte_by_byte_has_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "_SECONDS", 0.2)
    options = AdminOptions(Address("http", "127.0.0.1", 0), token=None, metrics_path=None)
    listener = AdminListener(options, {("GET", "/page"): _page})
    began = time.monotonic()
    try:
        address = httpx.URL(listener.url)
        with socket.create_connection((address.host, address.port or 0), timeout=0.05) as connection:
            for byte in chain(b"GET /page HTTP/1.1\r\nX-Long: ", repeat(ord("x"), 200)):
                try:
                    connection.sendall(bytes([byte]))
                    received = connection.recv(1)
                except TimeoutError:
                    continue
                except OSError:
                    received = b""
                assert received == b""
                break
            else:
                pytest.fail("the connection is still open")
        assert time.monotonic() - began < 8
        assert httpx.get(f"{listener.url}/page").text == "served"
    finally:
        listener.close()
