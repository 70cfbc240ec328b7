"""What a service has made of a stream: its responses, and the state of the connection behind them."""

from __future__ import annotations

import re
from dataclasses import dataclass

import orjson

from tests.harness.raw_http import parse_head

_START = re.compile(rb"HTTP/1\.[01] \d\d\d ")
_DATE = re.compile(rb"date: [^\r]*\r\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Response:
    """framing: how the end of its body is found: `length`, `chunked`, `close`, `none` (no body by its status). stays:
    what it says about the connection. body: of a success, otherwise empty. detail: why it is an error."""

    status: int
    framing: str
    stays: bool
    body: bytes
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.status} {self.framing} {'stays' if self.stays else 'close'}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """ended: the service has closed the connection. rest: what is not a complete response."""

    responses: tuple[Response, ...]
    ended: bool
    rest: bytes = b""

    def missing(self) -> str:
        """What there is behind the last response, as a short text."""
        return "rest" if self.rest else "closed" if self.ended else "open"


class Outcomes:
    """Parses what was received. Most is received often, and parsed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bool], Outcome] = {}

    def parse(self, received: bytes, *, ended: bool) -> Outcome:
        key = (_DATE.sub(b"", received), ended)
        outcome = self._known.get(key)
        if outcome is None:
            if len(self._known) > 20_000:
                self._known.clear()
            outcome = self._known[key] = _parse(key[0], ended)
        return outcome


def _parse(received: bytes, ended: bool) -> Outcome:
    responses = []
    place = 0
    while place < len(received):
        end = received.find(b"\r\n\r\n", place)
        if end < 0 or not _START.match(received, place):
            break
        found = _response(received, received[place:end], end + 4, ended)
        if found is None:
            break
        response, place = found
        responses.append(response)
    return Outcome(tuple(responses), ended, received[place:])


def _response(received: bytes, head: bytes, place: int, ended: bool) -> tuple[Response, int] | None:
    """Return the response and the offset behind it; None if it is incomplete. place: behind its head."""
    status, headers = parse_head(head)
    tokens = [token.strip() for token in headers.get("connection", "").lower().split(",")]
    stays = "close" not in tokens and (head.startswith(b"HTTP/1.1") or "keep-alive" in tokens)
    body = b""
    if status < 200:
        # An interim response says nothing about the connection.
        return Response(status, "none", True, b""), place
    if headers.get("transfer-encoding") == "chunked":
        framing = "chunked"
        if not _is_bodiless(received, place):
            end = received.find(b"0\r\n\r\n", place)
            if end < 0:
                return None
            body, place = received[place:end], end + 5
    elif "content-length" in headers:
        framing = "length"
        size = int(headers["content-length"])
        if size and not _is_bodiless(received, place):
            body, place = received[place : place + size], place + size
            if len(body) < size:
                return None
    elif status in (204, 304):
        framing = "none"
    else:
        framing = "close"
        if not ended:
            return None
        body, place = received[place:], len(received)
    return Response(status, framing, stays, body if status < 300 else b"", _detail(body, status)), place


def _is_bodiless(received: bytes, place: int) -> bool:
    """Whether the response has no body although its head announces one, as to HEAD: the next response follows it."""
    return place == len(received) or _START.match(received, place) is not None


def _detail(body: bytes, status: int) -> str:
    if status < 300 or not body:
        return ""
    try:
        return str(orjson.loads(body).get("detail", ""))
    except orjson.JSONDecodeError:
        return ""
