"""Responses to requests that the console sends to the service itself."""

from __future__ import annotations

import http.client
import socket
import time

import pytest

from rowcall.service.console.actions.send_request import _read


@pytest.mark.parametrize(
    ("head", "body", "complete"),
    [
        ("Content-Length: 5", b"12345", True),
        ("Content-Length: 5", b"123", False),
        ("Content-Length: 5", b"", False),
        ("Content-Length: 0", b"", True),
        ("Transfer-Encoding: chunked", b"3\r\n123\r\n0\r\n\r\n", True),
        ("Transfer-Encoding: chunked", b"3\r\n123\r\n", False),
        ("Connection: close", b"123", True),
    ],
)
def test_a_body_is_complete_unless_the_connection_ends_early(head: str, body: bytes, complete: bool) -> None:
    service, client = socket.socketpair()
    with client:
        with service:
            service.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)
        response = http.client.HTTPResponse(client)
        response.begin()
        content, whole = _read(response, client, time.monotonic() + 10)
        assert (content, whole) == (body if head != "Transfer-Encoding: chunked" else b"123", complete)
