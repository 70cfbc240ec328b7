"""The last check of a response before the HTTP server."""

from __future__ import annotations

from typing import Any

import pytest

from rowcall.ext.base.response_guard import GuardedProtocol, InvalidResponseError


class _Sink:
    """Records the parts of a response that would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.sent.append((name, *arguments))


TEXT = [("content-type", "text/plain")]

INVALID: list[tuple[Any, Any, bytes, str]] = [
    (status, TEXT, b"x", "its status") for status in (0, 7, 99, 100, 101, 199, 600, 999, 10**20, "200", None, True)
]
INVALID += [
    (200, [("a b", "c")], b"", "token"),
    (200, [("", "c")], b"", "token"),
    (200, [(":status", "200")], b"", "token"),
    (200, [("ü", "c")], b"", "token"),
    (200, [("a", "b\r\nc: d")], b"", "control character"),
    (200, [("a", "\0")], b"", "control character"),
    (200, [("a", "\x7f")], b"", "control character"),
    (200, [("a", "\u20ac\n")], b"", "control character"),
    (200, [("a", "\ud800")], b"", "control character"),
    (200, [("a", "1")] * 1_001, b"", "more than 1000 headers"),
    (200, [("a", "1" * 2_000_000)], b"", "larger than"),
    (200, [("a", None)], b"", "no text"),
    (200, [("a", b"b")], b"", "no text"),
    (200, [["a", "b"]], b"", "no pair"),
    (200, [("a", "b", "c")], b"", "no pair"),
    (200, [("Content-Length", "3")], b"ab", "differs"),
    (200, [("content-length", "2"), ("content-length", "2")], b"ab", "single number"),
    (200, [("content-length", "-1")], b"ab", "single number"),
    (200, [("Transfer-Encoding", "chunked")], b"ab", "transfer-encoding"),
]


@pytest.mark.parametrize(("status", "headers", "body", "reason"), INVALID)
def test_an_invalid_response_is_rejected_unsent(status: Any, headers: Any, body: bytes, reason: str) -> None:
    sink = _Sink()
    protocol = GuardedProtocol(sink)
    with pytest.raises(InvalidResponseError, match=reason):
        protocol.response_bytes(status, headers, body)
    assert sink.sent == []
    protocol.response_bytes(500, TEXT, b"instead")
    assert sink.sent == [("response_bytes", 500, TEXT, b"instead")]


def test_after_a_second_invalid_response_a_plain_500_is_sent() -> None:
    sink = _Sink()
    protocol = GuardedProtocol(sink)
    with pytest.raises(InvalidResponseError):
        protocol.response_empty(0, TEXT)
    protocol.response_bytes(500, [("a", "\n")], b"x")
    assert [call[:2] for call in sink.sent] == [("response_bytes", 500)]


@pytest.mark.parametrize("status", [200, 204, 304, 404, 599])
def test_valid_responses_are_sent(status: int) -> None:
    sink = _Sink()
    protocol = GuardedProtocol(sink)
    headers = [("content-length", "1"), ("x-a", "\u20ac\t~"), ("set-cookie", "a=b")]
    protocol.response_bytes(status, headers, b"x")
    protocol.response_empty(status, headers)
    protocol.response_file(status, headers, "/x")
    protocol.response_file_range(status, headers, "/x", 1, 2)
    protocol.response_stream(status, headers)
    protocol.response_str(status, headers, "x")
    names = ("bytes", "empty", "file", "file_range", "stream", "bytes")
    assert [call[0] for call in sink.sent] == [f"response_{name}" for name in names]
