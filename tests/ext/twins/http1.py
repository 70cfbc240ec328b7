"""Requests as the HTTP/1.1 server of `ext.http1` takes them from a stream of bytes, and as llhttp takes them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httptools
import orjson

from rowcall.ext.http1.connection import Connection, Http1Server

Headers = list[tuple[str, str]]


@dataclass
class Request:
    method: str
    target: str
    """Path and query."""
    headers: Headers
    body: bytes | None = None
    """None: its end has not come."""


class Transport:
    """Records what a connection sends."""

    def __init__(self) -> None:
        self.sent = b""
        self.ended = False
        self.paused = False

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("192.0.2.1", 4711), "sockname": ("192.0.2.2", 80)}.get(name)

    def write(self, data: bytes) -> None:
        self.sent += data

    def writelines(self, parts: Sequence[bytes]) -> None:
        self.sent += b"".join(parts)

    def write_eof(self) -> None:
        self.ended = True

    close = abort = write_eof

    def is_closing(self) -> bool:
        return self.ended

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def get_write_buffer_size(self) -> int:
        return 0


@dataclass
class Outcome:
    """What a stream of bytes has led to."""

    requests: list[Request] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    """Of the responses, in order."""
    ended: bool = False
    """The server closes the connection."""


class _Closed(Exception):
    pass


def check_headers_as_json(headers: Any) -> None:
    """The JSON of the headers is what orjson makes of them, or there is a reason for none."""
    text, items = headers.as_json(), headers.decoded_items()
    names = [name for name, _ in items]
    for name in names:
        assert headers.decoded_all(name) == [value for other, value in items if other == name]
    if text is None:
        assert "cookie" in names or len(set(names)) < len(names) or not all(value.isascii() for _, value in items)
    else:
        assert text == orjson.dumps(dict(items))


def outcome_of(parts: Sequence[bytes], *, head_limit: int = 40_960) -> Outcome:
    """What the server makes of bytes that come in these parts; every request is answered once its body is there."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(_outcome(loop, parts, head_limit))
    finally:
        loop.close()


async def _outcome(loop: asyncio.AbstractEventLoop, parts: Sequence[bytes], head_limit: int) -> Outcome:
    outcome = Outcome()

    def handle(scope: Any, protocol: Any) -> None:
        query = f"?{scope.query_string}" if scope.query_string else ""
        request = Request(scope.method, scope.path + query, scope.headers.items())
        outcome.requests.append(request)
        check_headers_as_json(scope.headers)
        future = protocol()

        def answer(done: asyncio.Future[bytes]) -> None:
            if done.exception() is None:
                request.body = done.result()
                protocol.response_bytes(200, [], b"")
            else:
                protocol.response_bytes(400, [], b"")

        if future.done():
            answer(future)
        else:
            future.add_done_callback(answer)

    server = Http1Server(
        loop,
        handle,
        lambda status, detail: b"",
        lambda *_: None,
        None,
        _Closed,
        lambda _: None,
        head_limit=head_limit,
        line_limit=0,
        body_buffer=0,
        keep_alive=True,
        idle_seconds=60,
        unread_seconds=60,
        gather_seconds=60,
        gather_from=1,
    )
    transport = Transport()
    connection = Connection(server)
    connection.connection_made(transport)
    for part in parts:
        if transport.ended:
            break
        if part:
            connection.data_received(part)
        await asyncio.sleep(0)
    outcome.ended = transport.ended
    outcome.statuses = _statuses(transport.sent)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    return outcome


def _statuses(sent: bytes) -> list[int]:
    """Bodies are empty, so heads follow each other."""
    heads = [head for head in sent.split(b"\r\n\r\n") if head]
    return [int(head.split(b" ", 2)[1]) for head in heads if not head.startswith(b"HTTP/1.1 100 ")]


class LlhttpRequests:
    """What llhttp, in its strict mode, reads from the same bytes."""

    def __init__(self, data: bytes) -> None:
        self.requests: list[tuple[str, bytes, Headers, bytes | None]] = []
        self._url = b""
        self._headers: Headers = []
        self._body = b""
        self.parser: Any = httptools.HttpRequestParser(self)
        self.failed = ""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as error:
            self.failed = f"upgrade {error}"
        except (httptools.HttpParserError, httptools.HttpParserCallbackError) as error:
            self.failed = str(error) or type(error).__name__

    def on_message_begin(self) -> None:
        self._url, self._headers, self._body = b"", [], b""
        self._announced = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._announced:
            self._headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._announced = True
        self.requests.append((self.parser.get_method().decode(), self._url, self._headers, None))

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self.requests[-1] = (*self.requests[-1][:3], self._body)
