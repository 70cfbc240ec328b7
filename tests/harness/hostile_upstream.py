"""Replies of a hostile HTTP/1.1 server: malformed, surplus and mutated ones, drawn from a seeded generator."""

from __future__ import annotations

import hashlib
import random
import re
import socket
import threading

from tests.harness.upstream import Seen, answer

MALFORMED = {
    "status 000": b"HTTP/1.1 000 None\r\nContent-Length: 2\r\n\r\nno",
    "status of two digits": b"HTTP/1.1 99 Low\r\nContent-Length: 2\r\n\r\nno",
    "status of four digits": b"HTTP/1.1 2000 Long\r\nContent-Length: 2\r\n\r\nno",
    "status 600": b"HTTP/1.1 600 High\r\nContent-Length: 2\r\n\r\nno",
    "status 999": b"HTTP/1.1 999 High\r\nContent-Length: 2\r\n\r\nno",
    "status that is no number": b"HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\nno",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: chat\r\nConnection: upgrade\r\n\r\nno",
    "final 101": b"HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "25,000 headers": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"a:\r\n" * 25_000 + b"\r\nno",
    "600 headers": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + b"a:b\r\n" * 600 + b"\r\nno",
    "a header of 200 KB": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: " + b"b" * 200_000 + b"\r\n\r\nno",
    "25,000 trailers": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n" + b"a:b\r\n" * 25_000 + b"\r\n"
    ),
    "endless interim responses": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 10_000,
    "a space in a name": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\na b: c\r\n\r\nno",
    "a NUL in a value": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\na: \x00\r\n\r\nno",
    "an empty name": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n: c\r\n\r\nno",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nno",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nno",
    "a length beyond numbers": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nno",
    "length and chunks": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n"
    ),
    "a chunk size that is none": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nno\r\n0\r\n\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nno",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "nothing": b"",
}
"""Each reply gives 502 to the caller if the connection is closed after it."""

_SIGNED = re.compile(rb"<(\d+) ([0-9a-f]{16})>")


def signed(nonce: str) -> bytes:
    """Return a body that identifies its request; no mutation turns it into the body of another request."""
    digest = hashlib.sha256(nonce.encode()).hexdigest()[:16]
    return b"<%b %b>" % (nonce.encode(), digest.encode())


def owners(body: bytes) -> set[str]:
    """Return the nonces of all intact signed bodies in a body."""
    nonces = {nonce.decode() for nonce, _ in _SIGNED.findall(body)}
    return {nonce for nonce in nonces if signed(nonce) in body}


class Hostile:
    """A behaviour for `Upstream.on`: draws the reply to a request. The query must contain `n=NONCE`."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()

    def __call__(self, request: Seen, connection: socket.socket) -> bytes | None:
        match = re.search(r"[?&]n=(\d+)", request.target)
        honest = answer(signed(match[1] if match else "0"), content_type="text/plain")
        with self._lock:
            sent, closes = self._draw(honest)
        if closes:
            connection.sendall(sent)
            return None
        return sent

    def _draw(self, honest: bytes) -> tuple[bytes, bool]:
        """Return a reply, and whether the connection is closed after it."""
        draw = self._random
        match draw.randrange(6):
            case 0:
                return honest, False
            case 1:
                return draw.choice(list(MALFORMED.values())), True
            case 2:  # Surplus bytes: a whole response, a part of one, and other bytes.
                return honest + draw.choice(
                    (honest, honest[: draw.randrange(1, len(honest))], b"\r\n\r\n", b"x")
                ), False
            case 3:
                return self._mutated(honest), True
            case 4:
                return honest[: draw.randrange(len(honest))], True
        head = b"HTTP/1.1 %d X\r\n" % draw.choice((200, 204, 302, 304, 404, 500, 503))
        location = draw.choice((b"", b"Location: http://[::1\r\n", b"Location: //\r\n", b"Location: gopher://x/\r\n"))
        coding = draw.choice((b"", b"Content-Encoding: gzip\r\n", b"Content-Encoding: br, what\r\n"))
        return head + location + coding + b"Content-Length: 3\r\n\r\nabc", True

    def _mutated(self, honest: bytes) -> bytes:
        data = bytearray(honest)
        for _ in range(self._random.randrange(1, 6)):
            place = self._random.randrange(len(data))
            match self._random.randrange(3):
                case 0:
                    data[place] = self._random.randrange(256)
                case 1:
                    del data[place]
                case 2:
                    data.insert(place, self._random.choice(b"\r\n\0 :\t\x7f\xff0"))
        return bytes(data)
