"""HTTP/1.1 heads parsed in Cython: accepted heads give the results of llhttp, all others are left to llhttp."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowcall.ext.base.http_heads import are_sound, plain_head, request_head
from tests.ext.twins.heads import assert_read_as_llhttp_reads
from tests.harness.effort import examples


def test_an_ordinary_head_is_parsed() -> None:
    head = b"HTTP/1.1 201 Made\r\nContent-Type: t/x\r\nX-A:  b c\r\nX-Empty:\r\ncontent-LENGTH: 3\r\n\r\n"
    headers = [("Content-Type", "t/x"), ("X-A", "b c"), ("X-Empty", ""), ("content-LENGTH", "3")]
    assert plain_head(head + b"abc") == (201, headers, 3, len(head))
    assert plain_head(head) == (201, headers, 3, len(head))


LINES = {
    "no length": b"X: y",
    "two lengths": b"Content-Length: 3\r\nContent-Length: 3",
    "lengths in a list": b"Content-Length: 3, 3",
    "no number": b"Content-Length: +3",
    "negative": b"Content-Length: -3",
    "huge": b"Content-Length: 99999999999999999999",
    "empty length": b"Content-Length:",
    "chunks": b"Transfer-Encoding: chunked",
    "length and chunks": b"Content-Length: 3\r\nTransfer-Encoding: chunked",
    "closes": b"Content-Length: 3\r\nConnection: close",
    "names a header": b"Content-Length: 3\r\nConnection: keep-alive, x",
    "upgrade": b"Content-Length: 3\r\nUpgrade: x",
    "folded": b"Content-Length: 3\r\nX: y\r\n z",
    "a space before the colon": b"Content-Length : 3",
    "no name": b"Content-Length: 3\r\n: y",
    "no colon": b"Content-Length: 3\r\nX",
    "a zero": b"Content-Length: 3\r\nX: a\0b",
    "a line feed alone": b"Content-Length: 3\nX: y",
    "a carriage return alone": b"Content-Length: 3\r\nX: a\rb",
    "space behind a value": b"Content-Length: 3\r\nX: y ",
    "tab before a value": b"Content-Length: 3\r\nX: \ty",
}


@pytest.mark.parametrize("lines", LINES.values(), ids=list(LINES))
def test_unusual_heads_are_left_to_llhttp(lines: bytes) -> None:
    assert plain_head(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\nabc") is None


@pytest.mark.parametrize("line", [
    b"HTTP/1.0 200 OK", b"HTTP/1.1 100 Continue", b"HTTP/1.1 103 Early Hints", b"HTTP/1.1 204 None",
    b"HTTP/1.1 304 Same", b"HTTP/1.1 600 What", b"HTTP/1.1 20 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1  200 OK",
    b"http/1.1 200 OK", b"HTTP/2 200 OK", b"", b"\r\nHTTP/1.1 200 OK", b"HTTP/1.1 200 O\0K",
])  # fmt: skip
def test_other_status_lines_are_left_to_llhttp(line: bytes) -> None:
    assert plain_head(line + b"\r\nContent-Length: 3\r\n\r\nabc") is None


def test_an_incomplete_head_is_left_to_llhttp() -> None:
    whole = b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 0\r\n\r\n"
    assert plain_head(whole) is not None
    assert [plain_head(whole[:size]) for size in range(len(whole))] == [None] * len(whole)


PIECES = [
    b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 404 \r\n", b"HTTP/1.1 500\r\n", b"Content-Length: 3\r\n",
    b"content-length:5\r\n",
    b"Content-Length: 03\r\n", b"Connection: keep-alive\r\n", b"Connection: Keep-Alive\r\n", b"Connection: close\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Keep-Alive: timeout=5\r\n",
    b"X: \xe9\r\n",
    b"X-A:\ty\r\n", b"X: y \r\n", b" z\r\n", b"\r\n", b"\r\n", b"abc", b"abcde",
    b"X-!#$%&'*+.^_`|~: y\r\n", b"\n", b":",
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(4000), deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), min_size=2, max_size=9), st.booleans())
def test_parsed_heads_equal_those_of_llhttp(pieces: list[bytes], begins: bool) -> None:
    assert_read_as_llhttp_reads((b"HTTP/1.1 200 OK\r\n" if begins else b"") + b"".join(pieces))


def test_a_request_head_is_written() -> None:
    framing = [("Content-Length", "3")]
    assert request_head("PUT", "/a?b", "x:1", [("accept", "*/*"), ("x", "e")], framing) == (
        b"PUT /a?b HTTP/1.1\r\nHost: x:1\r\naccept: */*\r\nx: e\r\nContent-Length: 3\r\n\r\n"
    )
    assert request_head("GET", "/", "x", [("HOST", "y")], []) == b"GET / HTTP/1.1\r\nHOST: y\r\n\r\n"
    assert request_head("GET", "/", "x", [("x", "€")], []) is None
    assert request_head("GET", "/", "x", [("x", "é")], []) is None


@pytest.mark.parametrize(("pairs", "sound"), [
    ([], True), ([("x-a", "b")], True), ([("x", "")], True), ([("x", "é€😀")], True),
    ([("!#$%&'*+-.^_`|~09aZ", "")], True),
    ([("", "b")], False), ([("a b", "")], False), ([("a:", "")], False), ([("é", "")], False), ([("€", "")], False),
    ([("x", "a\nb")], False), ([("x", "a\r")], False), ([("x", "\0")], False), ([("x", "€\n")], False),
    ([("x", "Ċ")], True), ([("x", "y"), ("x", "\r\n")], False),
])  # fmt: skip
def test_line_ends_in_headers_are_detected(pairs: list[tuple[str, str]], sound: bool) -> None:
    assert are_sound(pairs) is sound
