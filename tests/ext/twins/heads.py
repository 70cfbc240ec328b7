"""Heads of responses as llhttp parses them."""

from __future__ import annotations

from typing import Any

import httptools

from rowcall.ext.base.http_heads import plain_head

Plain = tuple[int, list[tuple[str, str]], int, int]


class FirstAnswer:
    """What llhttp reports about the first response in some bytes."""

    def __init__(self, data: bytes) -> None:
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self.complete = False
        self.parser: Any = httptools.HttpResponseParser(self)
        self.failed = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.failed = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.complete:
            self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if not self.complete:
            self.status = self.parser.get_status_code()
            self.keeps = self.parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self.body += data

    def on_message_complete(self) -> None:
        self.complete = True


def assert_read_as_llhttp_reads(data: bytes) -> None:
    """Check that a head is parsed as by llhttp, if it is parsed at all."""
    result: Plain | None = plain_head(data)
    if result is None:
        return
    status, headers, length, begin = result
    twin = FirstAnswer(data)
    body = data[begin : begin + length]
    assert (twin.status, twin.headers, twin.body) == (status, headers, body)
    assert twin.keeps
    assert twin.complete == (len(body) == length)
    assert twin.complete or not twin.failed
