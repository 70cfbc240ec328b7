"""Fuzz heads of HTTP/1.1: no read out of bounds, the same results as llhttp, and written heads of valid headers have as
many lines as headers.

python -m tests.fuzz.fuzz_heads [seconds]

Reads out of bounds are detected if the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc.
"""

from __future__ import annotations

from rowcall.ext.base.http_heads import are_sound, lowercase_headers, request_head
from tests.ext.twins.heads import assert_read_as_llhttp_reads
from tests.fuzz.mutation import main

SEEDS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 404 \r\ncontent-length: 0\r\nX-A:  b c\r\nConnection: keep-alive\r\n\r\n",
    b"HTTP/1.1 500 Oh\r\nX:\r\nDate: Thu, 01 Jan 1970\r\nContent-Length: 12\r\n\r\n0123456789abHTTP/1.1 200",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
)
SYNTAX = (
    *(bytes([byte]) for byte in b"\r\n :\t\0\x7f\x80\xff-,09aZ"),
    *(b"\r\n", b"\r\n\r\n", b"HTTP/1.1 ", b"Content-Length: ", b"99999999999999999999", b"\r\nConnection: close"),
    *(b"\r\nTransfer-Encoding: ", b"\r\nHost: x", b"\xc3\xa9", b"\xe2\x82\xac", b"x" * 70),
)


def check(data: bytes) -> None:
    assert_read_as_llhttp_reads(data)
    for text in (data.decode("latin-1"), data.decode("utf-8", "replace")):
        lines = [line.partition(": ") for line in text.split("\r\n")]
        check_written([(name, value) for name, _, value in lines])


def check_written(headers: list[tuple[str, str]]) -> None:
    sound = are_sound(headers)
    lowercase_headers(headers, frozenset(("host", "x")))
    head = request_head("GET", "/", "h", headers, [])
    if not sound or head is None:
        return
    named = any(name.lower() == "host" for name, _ in headers)
    lines = head.decode("latin-1").split("\r\n")
    assert lines[-2:] == ["", ""]
    assert lines[1 if named else 2 : -2] == [f"{name}: {value}" for name, value in headers]


if __name__ == "__main__":
    main(check, SEEDS, SYNTAX)
