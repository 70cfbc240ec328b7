"""Fuzzes the HTTP/1.1 server: no read outside of the received bytes, the same outcome wherever they are split, and no
request that llhttp in its strict mode parses in another way.

    python -m tests.fuzz.fuzz_http1 [seconds]

Reads out of bounds show when the extensions are built with ASAN=1 and Python runs with PYTHONMALLOC=malloc.
"""

from __future__ import annotations

from tests.ext.twins.http1 import LlhttpRequests, Outcome, outcome_of
from tests.fuzz.mutation import main

SEEDS = (
    b"GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x:80\r\nConnection: close\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /q HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
    b"PUT /p HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n"
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
    b"\r\nOPTIONS * HTTP/1.1\r\nHost: [::1]:8080\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nz",
    b"GET http://x/y HTTP/1.1\r\nHost: x\r\nX-A:\tb \r\nX-B:\r\n\r\n",
    b'GET / HTTP/1.1\r\nHost: x\r\nx-a: "\\\\\t"\\\r\nX-b: \r\nx-A: \xc3\xa9\r\ncookie: a=b\r\n\r\n',
)
SYNTAX = (
    *(bytes([byte]) for byte in b"\r\n :\t\0\x7f\x80\xff-,;09aAfF*/?#[]"),
    *(b"\r\n", b"\n", b"\r\n\r\n", b" HTTP/1.1", b" HTTP/1.0", b" HTTP/2.0", b"Content-Length: 2\r\n"),
    *(
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Host: y\r\n",
        b"Connection: close\r\n",
    ),
    *(
        b"Transfer-Encoding : chunked\r\n",
        b" folded\r\n",
        b"99999999999999999999",
        b"Upgrade: h2c\r\n",
        b"GET /z HTTP/1.1\r\n",
    ),
)


def check(data: bytes) -> None:
    whole = outcome_of((data,))
    middle = len(data) // 2
    assert outcome_of((data[:middle], data[middle:])) == whole
    assert outcome_of([data[place : place + 1] for place in range(len(data))]) == whole
    check_with_llhttp(data, whole)


def check_with_llhttp(data: bytes, whole: Outcome) -> None:
    """Each request that is served is one that llhttp reads. What only one of them refuses is named in
    `docs/internals/http-engine.md`."""
    twin = LlhttpRequests(data)
    for number, request in enumerate(whole.requests):
        if number == len(twin.requests):
            assert twin.failed, f"llhttp has not read {request}"
            assert is_known(twin.failed), f"llhttp refuses {request}: {twin.failed}"
            return
        method, _, headers, body = twin.requests[number]
        assert request.method == method
        assert request.headers == [(name, value.strip(" \t")) for name, value in headers if value.isascii()]
        if request.body is not None and body is not None:
            assert request.body == body


KNOWN = ("Invalid method", "Expected space after method", "Invalid HTTP version", "upgrade", "url", "Data after")
"""llhttp knows a list of methods and of versions; it stops at an upgrade, and behind `Connection: close`."""


def is_known(failure: str) -> bool:
    return any(text.lower() in failure.lower() for text in KNOWN)


if __name__ == "__main__":
    main(check, SEEDS, SYNTAX)
