"""Requests by the byte, against the HTTP/1.1 server of the event loop: status, and whether the connection goes on
(RFC 9112). The same table holds for granian where a row does not name another result."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass

import pytest

from tests.harness.database import Database
from tests.harness.raw_http import RawResponse, parse_head, read_response
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function echo(_v text) returns text language sql stable as 'select _v';
create function keep(_v text) returns text language sql volatile as 'select _v';
create function slow(_seconds float) returns text language sql volatile as $$ select 'late' from pg_sleep(_seconds) $$;
comment on function echo(text) is 'HTTP GET /echo';
comment on function keep(text) is 'HTTP POST /keep
body_parameter_name _v';
comment on function slow(float) is 'HTTP GET /slow';
"""

GET = b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /keep HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"
NEXT = b"GET /echo?v=next HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@dataclass(frozen=True)
class Row:
    """status: of the first response; 0: the connection is closed without one. stays: a second request is answered."""

    data: bytes
    status: int
    stays: bool = False
    body: bytes | None = None


ROWS = {
    "plain": Row(GET + b"\r\n", 200, True, b"a"),
    "empty line in front": Row(b"\r\n" + GET + b"\r\n", 200, True),
    "line feed alone behind the request line": Row(b"GET /echo?v=a HTTP/1.1\nHost: x\r\n\r\n", 400),
    "line feed alone behind a header": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: x\n\r\n", 400),
    "line feed alone at the end": Row(GET + b"\n", 400),
    "carriage return alone": Row(GET + b"X: a\rb\r\n\r\n", 400),
    "NUL in a value": Row(GET + b"X: a\0b\r\n\r\n", 400),
    "folded header": Row(GET + b"X: a\r\n b\r\n\r\n", 400),
    "space before the colon": Row(GET + b"X : a\r\n\r\n", 400),
    "header without a name": Row(GET + b": a\r\n\r\n", 400),
    "header without a colon": Row(GET + b"abc\r\n\r\n", 400),
    "space in front of the first header": Row(b"GET /echo?v=a HTTP/1.1\r\n Host: x\r\n\r\n", 400),
    "two spaces in the request line": Row(b"GET  /echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "tab in the request line": Row(b"GET\t/echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "no version": Row(b"GET /echo?v=a\r\nHost: x\r\n\r\n", 400),
    "version in small letters": Row(b"GET /echo?v=a http/1.1\r\nHost: x\r\n\r\n", 400),
    "version 2.0": Row(b"GET /echo?v=a HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    "version 1.2": Row(b"GET /echo?v=a HTTP/1.2\r\nHost: x\r\n\r\n", 200, True),
    "fragment": Row(b"GET /echo?v=a#b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "target that is no UTF-8": Row(b"GET /echo?v=\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "no Host": Row(b"GET /echo?v=a HTTP/1.1\r\n\r\n", 400),
    "empty Host": Row(b"GET /echo?v=a HTTP/1.1\r\nHost:\r\n\r\n", 400),
    "two Hosts": Row(GET + b"Host: x\r\n\r\n", 400),
    "Host with a path": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: x/y\r\n\r\n", 400),
    "Host with a user": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: u@x\r\n\r\n", 400),
    "Host with a port that is none": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: x:8a\r\n\r\n", 400),
    "Host with an incomplete percent-encoding": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: x%2\r\n\r\n", 400),
    "Host with a percent-encoding": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: x%2Dy\r\n\r\n", 200, True),
    "Host of IPv6": Row(b"GET /echo?v=a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", 200, True),
    "absolute form": Row(b"GET http://x/echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n", 200, True, b"a"),
    "absolute form with another host": Row(b"GET http://y/echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "absolute form with an incomplete percent-encoding": Row(b"GET http://x%/echo HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "absolute form without a host": Row(b"GET http:///echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "asterisk form": Row(b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 204, True),
    "asterisk form of GET": Row(b"GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "relative target": Row(b"GET echo HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "CONNECT": Row(b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 501),
    "unknown method": Row(b"BREW /echo HTTP/1.1\r\nHost: x\r\n\r\n", 405, True),
    "HEAD": Row(b"HEAD /echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n", 200, True, b""),
    "HTTP/1.0": Row(b"GET /echo?v=a HTTP/1.0\r\n\r\n", 200),
    "HTTP/1.0 that is kept": Row(b"GET /echo?v=a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, True),
    "Connection: close": Row(GET + b"Connection: close\r\n\r\n", 200),
    "Connection with close among others": Row(GET + b"Connection: x, Close\r\n\r\n", 200),
    "upgrade is refused": Row(GET + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n", 200, True, b"a"),
    "body with a length": Row(POST + b"Content-Length: 3\r\n\r\nabc", 200, True, b"abc"),
    "body with leading zeros": Row(POST + b"Content-Length: 003\r\n\r\nabc", 200, True, b"abc"),
    "two equal lengths": Row(POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    "two lengths in one header": Row(POST + b"Content-Length: 3, 3\r\n\r\nabc", 400),
    "length with a sign": Row(POST + b"Content-Length: +3\r\n\r\nabc", 400),
    "hexadecimal length": Row(POST + b"Content-Length: 0x3\r\n\r\nabc", 400),
    "empty length": Row(POST + b"Content-Length:\r\n\r\n", 400),
    "length beyond 64 bits": Row(POST + b"Content-Length: 18446744073709551619\r\n\r\nabc", 400),
    "chunks": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200, True, b"abc"),
    "chunks with extensions": Row(
        POST + b"Transfer-Encoding: Chunked\r\n\r\n3;a=b;c\r\nabc\r\n0;d\r\n\r\n", 200, True, b"abc"
    ),
    "trailers": Row(
        POST + b"Trailer: X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", 200, True, b"abc"
    ),
    "chunks and a length": Row(POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks in HTTP/1.0": Row(b"POST /keep HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "another coding": Row(POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "chunked that is not last": Row(POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    "chunked twice": Row(POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400),
    "chunked in two headers": Row(
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400
    ),
    "vertical tab before chunked": Row(POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    "space behind a chunk size": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n", 400),
    "chunk size with a prefix": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", 400),
    "chunk size without digits": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n", 400),
    "chunk size of 17 digits": Row(
        POST + b"Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n", 400
    ),
    "chunk that is longer": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
    "line feed alone behind a chunk size": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", 400),
    "line feed alone behind a chunk": Row(POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n", 400),
    "line feed alone in a chunk extension": Row(
        POST + b"Transfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n", 400
    ),
    "other expectation": Row(POST + b"Expect: tea\r\nContent-Length: 3\r\n\r\nabc", 417),
    "100 headers": Row(GET + b"X: y\r\n" * 99 + b"\r\n", 200, True),
    "101 headers": Row(GET + b"X: y\r\n" * 100 + b"\r\n", 431),
    "head that is too large": Row(GET + b"X: " + b"y" * 41_000 + b"\r\n\r\n", 431),
    "target that is too long": Row(b"GET /" + b"y" * 41_000, 431),
    "preface of HTTP/2 behind a request": Row(GET + b"\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 200),
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    headers = {"SecurityHeaders:Enabled": "true", "HttpServer:AddServerHeader": "false"}
    return serve(database, SQL, {"HttpServer:Engine": "Auto", **headers})


def send_and_receive(service: Service, data: bytes) -> tuple[RawResponse | None, RawResponse | None]:
    """The response to some bytes, and the one to a request behind them on the same connection."""
    with service.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(data)
        first = read_response(connection, bodiless=data.startswith(b"HEAD "))
        if first is None or first.rest:
            return first, None
        with contextlib.suppress(OSError):
            connection.sendall(NEXT)
        return first, read_response(connection)


@pytest.mark.parametrize("name", ROWS)
def test_request_bytes_get_the_expected_status(service: Service, name: str) -> None:
    row = ROWS[name]
    first, second = send_and_receive(service, row.data)
    assert (0 if first is None else first.status, second is not None) == (row.status, row.stays)
    assert first is not None
    assert "content-length" in first.headers or first.status == 204 or row.data.startswith(b"HEAD ")
    assert row.body is None or first.body == row.body
    if second is None and not first.rest:
        assert first.headers.get("connection") == "close"
    assert (first.headers["x-content-type-options"], first.headers["server"]) == ("nosniff", "")
    if first.status >= 400:
        assert first.headers["content-type"] == "application/problem+json"
        assert first.body


def test_pipelined_requests_are_answered_in_order(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(
            b"".join(b"GET /echo?v=%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(300)) + NEXT
        )
        received = b""
        while data := connection.recv(65_536):
            received += data
    bodies = [part.partition(b"HTTP/1.1")[0] for part in received.split(b"\r\n\r\n")[1:]]
    assert bodies == [*(b"%d" % number for number in range(300)), b"next"]


def test_expect_100_continue_is_answered_if_the_body_is_needed(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(POST + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"abc")
        response = read_response(connection)
        assert response is not None
        assert response.body == b"abc"


def test_expect_100_continue_is_not_answered_if_the_body_is_not_needed(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        response = read_response(connection)
        assert response is not None
        assert (response.status, response.headers["connection"]) == (404, "close")


def test_client_that_closes_its_sending_half_gets_its_response(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(GET + b"\r\n" + GET + b"\r\n")
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(65_536):
            received += data
    assert received.count(b"HTTP/1.1 200 OK") == 2


@pytest.mark.slow
def test_half_closed_client_gets_a_slow_response(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"GET /slow?seconds=1.5 HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(65_536):
            received += data
    heads = [parse_head(head) for head in received.split(b"\r\n\r\n")[:-1]]
    assert [status for status, _ in heads if status >= 200] == [200]
    assert received.endswith(b"late")
