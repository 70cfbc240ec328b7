"""One timer for every idle connection. Runs where the system reports the age of a socket."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.harness.postgres import free_port
from tests.harness.raw_http import read_response
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sockets report their age on Linux only")

SQL = """
create function echo(_v text) returns text language sql stable as 'select _v';
create function keep(_v text) returns text language sql volatile as 'select _v';
create function wait_for(_lock int) returns int language plpgsql volatile as $$
begin perform pg_advisory_xact_lock_shared(_lock); return _lock; end $$;
comment on function echo(text) is 'HTTP GET /echo';
comment on function keep(text) is 'HTTP POST /keep
body_parameter_name _v';
comment on function wait_for(int) is 'HTTP GET /wait-for';
"""

CLOCK = {"HttpServer:Limits:RequestHeadersTimeout": "1 second"}
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
LOCK = 17


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SETTINGS = frame(4, 0, 0)
HEADERS_WITHOUT_END = frame(1, 0, 1, b"\x82\x84\x86")
"""`:method GET`, `:path /`, `:scheme http`; no END_HEADERS."""
HALF_BODY_2 = frame(1, 4, 1, b"\x83\x86\x44\x05/keep\x41\x01x") + frame(0, 0, 1, b"abc")
"""`:method POST`, END_HEADERS, three bytes, no END_STREAM."""

POST = b"POST /keep HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n"

SILENT = {
    "nothing": b"",
    "half a line": b"GET /echo",
    "half a head": b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\n",
    "half a body": POST + b"Content-Length: 10\r\n\r\nabc",
    "half a chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "half a preface": PREFACE[:10],
    "preface": PREFACE,
    "settings": PREFACE + SETTINGS,
    "headers without end": PREFACE + SETTINGS + HEADERS_WITHOUT_END,
    "half a body of HTTP/2": PREFACE + SETTINGS + HALF_BODY_2,
    "an answered request": b"GET /echo?v=a HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, CLOCK)


def until_closed(connection: socket.socket) -> None:
    """Read until the connection is closed; a connection that stays open times out."""
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(65536):
            pass


@pytest.mark.slow
@pytest.mark.parametrize("name", SILENT)
def test_idle_connection_is_closed(service: Service, name: str) -> None:
    with service.connect() as connection:
        connection.sendall(SILENT[name])
        until_closed(connection)
    # Over a new connection: the service may close an idle one at the moment at which a request arrives.
    assert answer(service.request_once("GET", "/echo?v=a")) == (200, TEXT, "a")


def send_piece(connection: socket.socket, piece: Callable[[], bytes]) -> bool:
    """Send a little more. True if the service does not accept it any more."""
    try:
        connection.sendall(piece())
        connection.settimeout(0.1)
        return connection.recv(65536) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /echo HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"a"),
        (PREFACE + SETTINGS + HEADERS_WITHOUT_END, frame(9, 0, 1, b"\x40\x01a\x01b")),
    ],
    ids=["header", "continuation"],
)
def test_occasional_bytes_do_not_extend_the_idle_timeout(service: Service, begin: bytes, piece: bytes) -> None:
    with service.connect() as connection:
        connection.sendall(begin)
        wait_until(lambda: send_piece(connection, lambda: piece), "the connection is closed", 20)


@pytest.mark.slow
def test_connection_with_a_running_request_is_not_closed(database: Database, service: Service) -> None:
    """Longer than the timer, which is proved by another connection that is closed meanwhile."""
    with ThreadPoolExecutor(1) as clients:
        with database.locked(LOCK):
            running = clients.submit(service.get, f"/wait-for?lock={LOCK}")
            wait_until(database.waiting, "the query runs")
            for _ in range(2):
                with service.connect() as idle:
                    until_closed(idle)
        assert answer(running.result()) == (200, TEXT, str(LOCK))


def link_local_address() -> str | None:
    """Return a link-local address of this machine with its zone; None: it has none."""
    with contextlib.suppress(FileNotFoundError):
        for line in Path("/proc/net/if_inet6").read_text("ascii").splitlines():
            digits, *_, zone = line.split()
            if digits.startswith("fe80"):
                return f"{IPv6Address(int(digits, 16))}%{zone}"
    return None


@pytest.mark.slow
@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("engine", ["Granian", "Loop"])
def test_connection_of_a_link_local_client_is_not_closed_while_in_use(
    database: Database, serve_once: Serve, engine: str
) -> None:
    host, port = link_local_address(), free_port()
    if host is None:
        pytest.skip("this machine has no link-local address")
    service = serve_once(database, "", {**CLOCK, "Urls": f"http://*:{port}", "HttpServer:Engine": engine}, port=port)
    request = f"GET /wait-for?lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection((host, port), timeout=60) as connection:
        with database.locked(LOCK):
            connection.sendall(request.encode())
            wait_until(database.waiting, "the query runs")
            for _ in range(2):
                with service.connect() as idle:
                    until_closed(idle)
        response = read_response(connection)
        assert response is not None
        assert response.body == str(LOCK).encode()


@pytest.mark.slow
def test_keep_alive_connection_stays_open_while_in_use(service: Service) -> None:
    with service.connect() as used:
        for _ in range(3):
            with service.connect() as idle:
                connection_closed = False
                while not connection_closed:
                    used.sendall(b"GET /echo?v=b HTTP/1.1\r\nHost: x\r\n\r\n")
                    response = read_response(used)
                    assert response is not None
                    assert response.body == b"b"
                    connection_closed = send_piece(idle, lambda: b"")


@pytest.mark.slow
def test_event_stream_without_events_is_not_closed(database: Database, serve_once: Serve) -> None:
    """The response has begun long ago, and nothing is sent over it."""
    sql = """
    create or replace function publish(_text text) returns void language plpgsql volatile as $$
    begin raise info '%', _text; end $$;
    comment on function publish(text) is E'HTTP POST /publish\\nsse';
    """
    quiet = CLOCK | {"Service:ServerSentEvents:Heartbeat": "1 hour"}
    service = serve_once(database, SQL.replace("create function", "create or replace function") + sql, quiet)
    with service.connect() as stream:
        stream.sendall(b"GET /publish/info HTTP/1.1\r\nHost: x\r\n\r\n")
        received = stream.recv(65536)
        assert received.startswith(b"HTTP/1.1 200")
        for _ in range(2):
            with service.connect() as idle:
                until_closed(idle)
        assert service.post("/publish", json={"text": "still here"}).status_code == 204
        while b"still here" not in received:
            piece = stream.recv(65536)
            assert piece, "the stream was closed"
            received += piece
