"""Byte streams as clients and attackers send them on one connection: requests by the grammar of RFC 9112, mutated or
not, and where they are split.

Streams are numbered: the same seed and number give the same stream, so that a run can be resumed, and a difference
repeated. Every `SPLIT_EVERY`th stream is also sent split at each of its positions, and byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tests.fuzz.mutation import mutate

SPLIT_EVERY = 120
LAST = b"GET /echo?v=last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
"""Behind a stream: answered if the connection is in a state in which it takes another request."""

SQL = """
create function echo(_v text) returns text language sql stable as 'select _v';
create function keep(_v text) returns text language sql stable as 'select _v';
create function seen(_headers json default null) returns text language sql stable as $$
    select string_agg(key || '=' || value, E'\\n' order by key) from json_each_text(_headers) where key like 'x-%'
$$;
comment on function echo(text) is 'HTTP GET /echo
cached
cache_expires 1 hour';
comment on function keep(text) is 'HTTP POST /keep
body_parameter_name _v';
comment on function seen(json) is 'HTTP GET /seen
request_headers_mode parameter';
"""
"""What the streams are sent to."""

_METHODS = (b"GET", b"POST", b"GET", b"POST", b"HEAD", b"OPTIONS", b"PUT", b"DELETE", b"BREW", b"PATCH")
_TARGETS = (
    *(b"/echo?v=a", b"/keep", b"/seen", b"/echo?v=b", b"/keep", b"/nowhere", b"/echo", b"/keep?v=q", b"/", b"*"),
    *(b"http://x/echo?v=abs", b"http://x", b"/echo?v=%41+b", b"/%65cho?v=a", b"/echo?v=a&v=b", b"//echo?v=a"),
    *(b"/echo?v=" + b"z" * 40, b"/./echo?v=a", b"/echo;p=1?v=a", b"/echo?", b"x:80", b"/echo?v=\xc3\xa9"),
)
_HEADERS = (
    *(b"X-A: b", b"X-B:", b"X-C:\t c \t", b"x-D: \xc3\xa9", b"Accept: */*", b"Cookie: a=b", b"X-E: a, b", b"X-E: c"),
    *(b"User-Agent: t", b"Accept-Encoding: gzip", b"Content-Type: text/plain", b"Content-Type: application/json"),
    *(b"Upgrade: websocket", b"Upgrade: h2c", b"TE: trailers", b"Trailer: X-T", b"X-F: \xff", b'X-G: "q\\""'),
    *(b"If-None-Match: *", b"Range: bytes=0-1", b"Transfer-Encoding: identity", b"Host: y", b"X-H: " + b"h" * 60),
)
_CONNECTIONS = (
    *(b"close", b"keep-alive", b"Close", b"x, close", b"upgrade", b"keep-alive, Upgrade", b"", b"close, keep-alive"),
    *(b"transfer-encoding", b"te", b"HTTP2-Settings"),
)
_HOSTS = (*(b"x",) * 40, *(b"x:80", b"[::1]:8080", b"127.0.0.1", b"X."), *(b"", b"x y", b"x:8a", b"u@x", b"x/y"))
_BODIES = (b"abc", b"", b"a", b'{"a": 1}', b"GET /echo?v=smuggled HTTP/1.1\r\nHost: x\r\n\r\n", b"0\r\n\r\n", b"\r\n")
_LENGTHS = (
    b"%d, %d",
    b"+%d",
    b"-%d",
    b"0%d",
    b"%d ",
    b"0x%d",
    b"%d.0",
    b"%d;",
    b" %d",
    b"%d\t",
    b"99999999999999999999%d",
)
_CODINGS = (
    *(b"chunked", b"chunked", b"chunked", b"Chunked", b" chunked ", b"gzip, chunked", b"chunked, gzip", b"identity"),
    *(b"chunked, chunked", b"\x0bchunked", b"chunked;q=1", b"xchunked", b"", b",chunked", b"chunked,", b'"chunked"'),
)
_EXTENSIONS = (b"", b"", b"", b";a", b";a=b", b';a="b;c"', b" ;a", b";", b";a\x01", b"\t", b" ")
_TRAILERS = (b"", b"", b"X-T: 1\r\n", b"Host: y\r\n", b"X-T:\r\n", b"bad\r\n", b"X T: 1\r\n", b"Content-Length: 5\r\n")
SYNTAX = (
    *(bytes([byte]) for byte in b"\r\n :\t\0\x0b\x0c\x1f\x7f\x80\xff-,;09aAfF*/?#[]%&=\"'<>\\^`{|}"),
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"\n\n",
        b" HTTP/1.1",
        b" HTTP/1.0",
        b" HTTP/2.0",
        b" HTTP/1.2",
        b" http/1.1",
    ),
    *(b"Content-Length: 2\r\n", b"Content-Length: 0\r\n", b"Transfer-Encoding: chunked\r\n", b"Host: y\r\n"),
    *(b"Transfer-Encoding : chunked\r\n", b" folded\r\n", b"\tfolded\r\n", b"99999999999999999999", b"0\r\n\r\n"),
    *(b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Upgrade: h2c\r\n", b"Expect: 100-continue\r\n"),
    *(
        b"Expect: tea\r\n",
        b"GET /echo?v=z HTTP/1.1\r\n",
        b"GET ",
        b"Content-Length: 3, 3\r\n",
        b"1\r\nz\r\n",
        b"X: y\r\n",
    ),
    *(b"CONNECT x:80 HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"TRACE / HTTP/1.1\r\n"),
)


@dataclass(frozen=True, slots=True)
class Stream:
    """number, part: which one it is; part 0 is the stream itself, others are its splits. pieces: what is sent at a
    time."""

    number: int
    part: int
    pieces: tuple[bytes, ...]

    @property
    def data(self) -> bytes:
        return b"".join(self.pieces)


def streams(seed: int, first: int = 0) -> Iterator[Stream]:
    """Yield streams without end, from a number on."""
    number = first
    while True:
        yield from numbered(seed, number)
        number += 1


def numbered(seed: int, number: int) -> Iterator[Stream]:
    """Yield the stream of this number, and its splits if it is one that is split everywhere."""
    dice = Random(seed * 2**40 + number)
    data = _stream(dice)
    yield Stream(number, 0, _pieces(data, dice))
    if number % SPLIT_EVERY == 0:
        for part, place in enumerate(range(1, len(data)), 1):
            yield Stream(number, part, (data[:place], data[place:]))
        yield Stream(number, len(data), tuple(data[place : place + 1] for place in range(len(data))))


def _pieces(data: bytes, dice: Random) -> tuple[bytes, ...]:
    if dice.random() < 0.7:
        return (data,)
    places = sorted(dice.randrange(len(data) + 1) for _ in range(dice.randint(1, 3)))
    return tuple(data[start:end] for start, end in zip((0, *places), (*places, len(data)), strict=True) if end > start)


def _stream(dice: Random) -> bytes:
    data = b"".join(_request(dice) for _ in range(dice.choice((1, 1, 1, 2, 3))))
    if dice.random() < 0.6:
        data = mutate(data, SYNTAX, dice)
    return data + LAST if dice.random() < 0.9 else data or LAST


def _request(dice: Random) -> bytes:
    method, target = dice.choice(_METHODS), dice.choice(_TARGETS)
    version = dice.choices((b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0"), (40, 6, 1, 1))[0]
    headers = [b"Host: " + dice.choice(_HOSTS)] if dice.random() < 0.97 else []
    headers += (dice.choice(_HEADERS) for _ in range(dice.choice((0, 0, 1, 2))))
    if dice.random() < 0.2:
        headers.append(b"Connection: " + dice.choice(_CONNECTIONS))
    if dice.random() < 0.04:
        headers.append(b"Expect: " + dice.choice((b"100-continue", b"100-Continue", b"tea", b"")))
    body = b""
    framing = dice.random()
    if method == b"POST" or framing < 0.2:
        if framing < 0.5:
            body = dice.choice(_BODIES)
            headers.append(b"Content-Length: " + _length(len(body), dice))
        elif framing < 0.9:
            body = _chunks(dice)
            headers.append(b"Transfer-Encoding: " + (dice.choice(_CODINGS) if dice.random() < 0.5 else b"chunked"))
            if dice.random() < 0.06:
                headers.append(b"Content-Length: %d" % len(body))
    dice.shuffle(headers)
    head = method + b" " + target + b" " + version + b"\r\n" + b"".join(header + b"\r\n" for header in headers)
    return (b"\r\n" if dice.random() < 0.03 else b"") + head + b"\r\n" + body


def _length(size: int, dice: Random) -> bytes:
    if dice.random() < 0.8:
        return b"%d" % size
    form = dice.choice(_LENGTHS)
    return form % ((size,) * form.count(b"%d"))


def _chunks(dice: Random) -> bytes:
    parts = []
    for body in _some(_BODIES, dice):
        if body:
            size = b"%x" % len(body) if dice.random() < 0.9 else b"000%X" % len(body)
            parts.append(size + dice.choice(_EXTENSIONS) + b"\r\n" + body + b"\r\n")
    return b"".join(parts) + b"0" + dice.choice(_EXTENSIONS) + b"\r\n" + dice.choice(_TRAILERS) + b"\r\n"


def _some(choices: Sequence[bytes], dice: Random) -> list[bytes]:
    return [dice.choice(choices) for _ in range(dice.randint(0, 3))]
