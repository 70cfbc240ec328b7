"""Clients that violate HTTP or UTF-8: a defined response, and the next client is served."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import Event, WindowUpdated

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.raw_http import RawResponse, read_response
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function echo(_v text) returns text language sql stable as 'select _v';
create function named(_name text) returns text language sql stable as 'select _name';
create function size(_v text) returns int language sql volatile as 'select length(_v)';
create table kept (v text);
create function keep(_v text) returns int language sql volatile as 'insert into kept values (_v) returning length(v)';
create function kind(_v jsonb) returns text language sql volatile as 'select jsonb_typeof(_v)';
comment on function echo(text) is 'HTTP GET /echo';
comment on function named(text) is 'HTTP GET /named/{_name}';
comment on function size(text) is 'HTTP POST /size';
comment on function keep(text) is 'HTTP POST /keep
body_parameter_name _v';
comment on function kind(jsonb) is 'HTTP POST /kind';
create function closed(_v text default '') returns text language sql as 'select _v';
comment on function closed(text) is 'HTTP POST /closed
authorize';
"""

BODY_LIMIT = 1_000_000


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"HttpServer:Limits:MaxRequestBodySize": str(BODY_LIMIT)})


@pytest.fixture(autouse=True)
def _still_serves(service: Service) -> Iterator[None]:
    """Whatever a test sent, the same worker serves the next client."""
    workers = service.pids()
    yield
    assert answer(service.get("/echo?v=alive")) == (200, TEXT, "alive")
    assert service.pids() == workers


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\r\n\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /echo?v=a\r\n\r\n",
        b"GET /echo?v=a HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /echo?v=a b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /echo?v=\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"G\xffT /echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /echo?v=a HTTP/1.1\r\nHost x\r\n\r\n",
        b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\nBad Name: 1\r\n\r\n",
        b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}{",
        b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
        b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 40 + b"\r\n\r\n",
    ],
    ids=range(17),
)
def test_malformed_request_is_refused(service: Service, request_bytes: bytes) -> None:
    response = _half_closed(service, request_bytes)
    assert response is None or 400 <= response.status < 500 or response.status == 505


def _half_closed(service: Service, data: bytes) -> RawResponse | None:
    """Send, and close the sending side, so that a server that waits for more gives up."""
    with service.connect() as connection:
        with contextlib.suppress(OSError):  # it may have been refused before all of it was sent
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        return read_response(connection)


def test_conflicting_body_lengths_do_not_smuggle_a_request(service: Service) -> None:
    """Content-Length with chunked: refused or parsed as chunked, but never two requests (RFC 9112, 6.3)."""
    smuggled = b"GET /echo?v=smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    head = b"POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n"
    end = b"Connection: close\r\n\r\n"
    with service.connect() as connection:
        connection.sendall(head + end + b'9\r\n{"v":"ab"\r\n1\r\n}\r\n0\r\n\r\n' + smuggled)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    assert b"smuggled" not in received


def test_incomplete_request_is_not_executed(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\n")


def test_incomplete_body_is_not_processed(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b'POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"v":')


def test_pipelined_requests_are_answered_in_order(service: Service) -> None:
    requests = b"".join(b"GET /echo?v=%d HTTP/1.1\r\nHost: x\r\n\r\n" % n for n in range(20))
    last = b"GET /echo?v=last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with service.connect() as connection:
        connection.sendall(requests + last)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    bodies = [part.partition(b"\r\n\r\n")[2] for part in received.split(b"HTTP/1.1 200")[1:]]
    assert [body.strip() for body in bodies] == [b"%d" % n for n in range(20)] + [b"last"]


def test_http_1_0_is_served(service: Service) -> None:
    response = service.raw(b"GET /echo?v=old HTTP/1.0\r\n\r\n")
    assert response is not None
    assert (response.status, response.body) == (200, b"old")


def test_options_asterisk_lists_methods_of_the_server(service: Service) -> None:
    response = service.raw(b"OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert response is not None
    assert (response.status, response.headers["allow"]) == (204, "GET, HEAD, OPTIONS, POST")


@pytest.mark.parametrize(
    "header",
    [b"X-Long: " + b"a" * 2_000_000, b"\r\n".join(b"X-%d: 1" % n for n in range(5000))],
    ids=["long", "many"],
)
def test_oversized_headers_are_refused(service: Service, header: bytes) -> None:
    response = _half_closed(service, b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n")
    assert response is None or response.status in (400, 431)


def test_overlong_target_is_refused(service: Service) -> None:
    response = _half_closed(service, b"GET /echo?v=" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
    assert response is None or response.status in (400, 414, 431)


@pytest.mark.parametrize(
    "header", [b"X-Odd: \xff\xfe\x80", b"X-Utf: \xd0\xb6", b"X-Tab: a\tb", b"X-Empty:", b"Accept: */*;q=nonsense"]
)
def test_unusual_header_values_do_not_affect_the_request(service: Service, header: bytes) -> None:
    response = service.raw(b"GET /echo?v=fine HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + header + b"\r\n\r\n")
    assert response is not None
    assert (response.status, response.body) == (200, b"fine")


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=1", "image/png"])
def test_accept_header_does_not_affect_the_response(service: Service, accept: str) -> None:
    assert answer(service.get("/echo?v=x", headers={"accept": accept})) == (200, TEXT, "x")


# UTF-8 and percent signs

BAD_UTF8 = ["%FF", "%C0%AF", "%ED%A0%80", "%F4%90%80%80", "a%E2%82", "%80"]


@pytest.mark.parametrize("text", BAD_UTF8)
@pytest.mark.parametrize("target", ["/echo?v={}", "/named/{}", "/echo?v=a&{}=1"])
def test_invalid_utf8_gets_400(service: Service, target: str, text: str) -> None:
    response = service.raw(f"GET {target.format(text)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert response is not None
    assert (response.status, response.headers["content-type"]) == (400, "application/problem+json")


@pytest.mark.parametrize("text", ["%zz", "%", "%4", "100%"])
def test_invalid_percent_encoding_is_literal_or_refused(service: Service, text: str) -> None:
    response = service.raw(f"GET /echo?v={text} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert response is not None
    assert (response.status, response.body) == (200, text.encode()) or response.status == 400


@pytest.mark.parametrize("target", ["/echo?v=a%00b", "/named/a%00b", "/named/%00", "/echo?v=%00"])
def test_nul_character_in_a_text_is_refused(service: Service, target: str) -> None:
    """PostgreSQL cannot store it, so no routine can receive it: an error of the client, not of the server."""
    response = service.get(target)
    problem(response, response.status_code)
    assert 400 <= response.status_code < 500


def test_nul_character_in_json_is_refused(service: Service) -> None:
    response = service.post("/size", content=b'{"v":"a\\u0000b"}')
    problem(response, response.status_code)
    assert 400 <= response.status_code < 500


# Bodies


def test_body_beyond_the_limit_is_refused_before_it_is_sent(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(b'POST /size HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n{"v":"')
        response = read_response(connection)
    assert response is not None
    assert (response.status, response.headers["content-type"]) == (413, "application/problem+json")


def test_chunked_body_beyond_the_limit_is_refused(service: Service) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with service.connect() as connection:
        connection.sendall(b"POST /size HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.sendall(chunk * (BODY_LIMIT // 65536 + 1))
        response = read_response(connection)
    assert response is not None
    assert response.status == 413


def test_body_within_the_limit_is_accepted(service: Service) -> None:
    text = "x" * (BODY_LIMIT - 100)
    assert answer(service.post("/size", json={"v": text})) == (200, TEXT, str(len(text)))


CHUNKED = b"POST /keep HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"


def stored_values(database: Database) -> list[str]:
    return [text for (text,) in database.fetch("select v from kept")]


@pytest.mark.parametrize(
    "request_bytes",
    [
        CHUNKED + b"\r\n5\r\nhalf \r\n",
        CHUNKED + b"\r\n9\r\nhalf ",
        CHUNKED + b"\r\n5\r\nhalf \r\nZZ\r\nmore\r\n0\r\n\r\n",
        CHUNKED + b"\r\n5\r\nhalf XX0\r\n\r\n",
        CHUNKED + b"\r\n-1\r\nhalf\r\n0\r\n\r\n",
        CHUNKED + b"\r\n5\r\nhalf \r\nFFFFFFFFFFFFFFFFF\r\nmore\r\n0\r\n\r\n",
        b"POST /keep HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf ",
    ],
    ids=["no-last-chunk", "in-a-chunk", "size", "end-of-chunk", "negative", "huge", "content-length"],
)
def test_truncated_or_malformed_body_gets_400(database: Database, service: Service, request_bytes: bytes) -> None:
    response = _half_closed(service, request_bytes)
    assert response is not None
    assert (response.status, response.headers["content-type"]) == (400, "application/problem+json")
    assert response.headers["connection"] == "close"
    assert "half " not in stored_values(database)


def test_chunks_may_end_in_announced_trailer_fields(database: Database, service: Service) -> None:
    head = CHUNKED + b"Trailer: X-Sum\r\nConnection: close\r\n\r\n"
    response = service.raw(head + b"3\r\nall\r\n6\r\n of it\r\n0\r\nX-Sum: 9\r\n\r\n")
    assert response is not None
    assert (response.status, response.body) == (200, b"9")
    assert "all of it" in stored_values(database)


def test_http2_stream_reset_during_its_body_is_not_executed(database: Database, service: Service) -> None:
    """Over HTTP/2, where there is no length to compare with."""
    client = H2Connection(H2Configuration(client_side=True))
    with service.connect() as connection:
        client.initiate_connection()
        _negotiate_settings(client, connection)
        request = [(":method", "POST"), (":path", "/keep"), (":scheme", "http"), (":authority", "x")]
        client.send_headers(1, request)
        for _ in range(BODY_LIMIT // 2 // 10_000):
            client.send_data(1, b"half " * 2_000)
        connection.sendall(client.data_to_send())
        _wait_for_event(client, connection, lambda event: isinstance(event, WindowUpdated) and event.stream_id == 1)
        client.reset_stream(1, ErrorCodes.CANCEL)
        connection.sendall(client.data_to_send())
        service.wait_for_log("POST /keep responded 400")
    assert [text for text in stored_values(database) if text.startswith("half ")] == []


def _negotiate_settings(client: H2Connection, connection: socket.socket) -> None:
    connection.sendall(client.data_to_send())
    _wait_for_event(client, connection, lambda event: isinstance(event, WindowUpdated) and event.stream_id == 0)
    connection.sendall(client.data_to_send())


def _wait_for_event(client: H2Connection, connection: socket.socket, wanted: Callable[[Event], bool]) -> None:
    """The window of a stream grows as the service reads."""
    while not any(wanted(event) for event in client.receive_data(connection.recv(65536))):
        connection.sendall(client.data_to_send())


@pytest.mark.parametrize("depth", [10_000, 400_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_too_deeply_nested_json_gets_400(service: Service, depth: int, opening: bytes, closing: bytes) -> None:
    depth = min(depth, (BODY_LIMIT - 100) // (len(opening) + len(closing)))
    body = b'{"v":' + opening * depth + b"1" + closing * depth + b"}"
    problem(service.post("/kind", content=body), 400)


def test_json_of_moderate_depth_is_accepted(service: Service) -> None:
    body = b'{"v":' + b"[" * 500 + b"]" * 500 + b"}"
    assert answer(service.post("/kind", content=body)) == (200, TEXT, "array")


@pytest.mark.parametrize("length", [5, 200_000])
@pytest.mark.parametrize("path", ["/nowhere", "/echo", "/closed"])
def test_refusal_before_the_body_sends_connection_close(service: Service, path: str, length: int) -> None:
    """Otherwise a client sends its next request on a connection that is being closed, and gets no response."""
    with service.connect() as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        response = read_response(connection)
        assert response is not None
        assert response.status in (401, 404, 405)
        if response.headers.get("connection") != "close":
            connection.sendall(b"x" * length + b"GET /echo?v=1 HTTP/1.1\r\nHost: x\r\n\r\n")
            following = read_response(connection)
            assert following is not None
            assert following.body == b"1"


def test_other_refusals_leave_the_connection_open(service: Service) -> None:
    with service.connect() as connection:
        for request in (b"GET /nowhere", b"POST /nowhere", b"GET /closed"):
            connection.sendall(request + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            response = read_response(connection)
            assert response is not None
            assert "connection" not in response.headers
