"""The HTTP server section over real sockets: limits, protocols, Unix sockets (browsers-12, server-1 to server-5)."""

from __future__ import annotations

import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.raw_http import read_response
from tests.harness.service import ENGINE, NO_TLS, Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.test_tls import start_and_fail

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
create function many(_rows int) returns table(n int, filler text) language sql stable
  as $$select n, repeat('x', 100) from generate_series(1, _rows) n$$;
comment on function echo(int) is 'HTTP GET /echo';
comment on function many(int) is 'HTTP GET /many';
"""
LIMITS = "HttpServer:Limits:"


@pytest.fixture(scope="module")
def limited(database: Database, serve: Serve) -> Service:
    return serve(
        database,
        SQL,
        {
            LIMITS + "RequestHeadersTimeout": "00:00:00.5",
            LIMITS + "MaxRequestLineSize": "200",
            LIMITS + "MaxRequestHeadersTotalSize": "1000",
            LIMITS + "MaxRequestHeaderCount": "12",
            LIMITS + "MaxRequestBodySize": "50",
            LIMITS + "MaxRequestBufferSize": "262144",
            "HttpServer:AddServerHeader": "false",
        },
    )


def closed_without_answer(connection: socket.socket) -> bool:
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


def test_connection_with_incomplete_headers_is_closed(limited: Service) -> None:
    with limited.connect() as connection:
        connection.sendall(b"GET /echo?id=1 HTTP/1.1\r\nHost: x\r\nX-Slow:")
        assert closed_without_answer(connection)


def test_idle_connection_is_closed(limited: Service) -> None:
    with limited.connect() as connection:
        connection.sendall(b"GET /echo?id=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        response = read_response(connection)
        assert response is not None
        assert response.body == b"1"
        assert closed_without_answer(connection)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a socket does not report what it has received")
def test_silent_connection_is_closed(limited: Service) -> None:
    with limited.connect() as connection:
        assert closed_without_answer(connection)
    assert answer(limited.get("/echo?id=1")) == (200, TEXT, "1")


def test_long_request_line_is_414(limited: Service) -> None:
    assert problem(limited.get("/echo?id=1&x=" + "y" * 180), 414)["detail"] == (
        "the request line is longer than 200 bytes"
    )
    problem(limited.get("/" + "y" * 190), 414)
    assert answer(limited.get("/echo?id=" + "0" * 160 + "1")) == (200, TEXT, "1")


def status_of(service: Service, data: bytes) -> int:
    """Return the status of the response to a head that arrives in one piece."""
    with service.connect() as connection:
        connection.sendall(data)
        response = read_response(connection)
    assert response is not None
    return response.status


@pytest.mark.parametrize(
    ("target", "unit"),
    [("/", "%C3%A4"), ("/", "%61"), ("/?x=", "%61"), ("http://x/", "y")],
    ids=["letter", "ascii", "query", "absolute"],
)
def test_request_line_limit_counts_encoded_bytes(limited: Service, target: str, unit: str) -> None:
    if (target, unit) == ("/", "%61") and ENGINE.get("HttpServer:Engine") == "Granian":
        pytest.skip("granian passes the path decoded only")
    most = (200 - len(f"GET {target} HTTP/1.1\r\n")) // len(unit)
    for count, status in ((most, 404), (most + 1, 414)):
        line = f"GET {target}{unit * count} HTTP/1.1\r\n"
        assert status_of(limited, line.encode() + b"Host: x\r\n\r\n") == status


def test_header_limit_counts_bytes_as_sent(limited: Service) -> None:
    if ENGINE.get("HttpServer:Engine") == "Granian":
        pytest.skip("granian removes blanks around values, and passes no values that are not ASCII")
    head = b"GET /echo?id=1 HTTP/1.1\r\nHost: x\r\n"
    for header in (b"X-Wide:" + b" " * 990 + b"y\r\n", b"X-Foreign: " + b"\xc3\xa4" * 490 + b"\r\n"):
        assert status_of(limited, head + header + b"\r\n") == 431
    assert status_of(limited, head + b"X-Foreign: \xc3\xa4\r\n" * 12 + b"\r\n") == 431


def test_large_headers_are_431(limited: Service) -> None:
    problem(limited.get("/echo?id=1", headers={"X-Large": "y" * 900}), 431)
    assert answer(limited.get("/echo?id=1", headers={"X-Large": "y" * 500})) == (200, TEXT, "1")


def test_many_headers_are_431(limited: Service) -> None:
    problem(limited.get("/echo?id=1", headers={f"X-{number}": "y" for number in range(12)}), 431)


def test_server_header_is_empty(limited: Service) -> None:
    assert limited.get("/echo?id=1").headers["server"] == ""
    assert limited.get("/nowhere").headers["server"] == ""


def test_connections_beyond_the_limit_wait(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {LIMITS + "MaxConcurrentConnections": "2"})
    service.client.close()
    open_ones = [service.connect() for _ in range(2)]
    for connection in open_ones:
        connection.sendall(b"GET /echo?id=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_response(connection) is not None
    with service.connect() as third:
        third.sendall(b"GET /echo?id=3 HTTP/1.1\r\nHost: x\r\n\r\n")
        # The two accepted ones are served all the time.
        for connection in open_ones:
            connection.sendall(b"GET /echo?id=2 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_response(connection) is not None
        third.settimeout(0.3)
        with pytest.raises(TimeoutError):
            third.recv(1)
        open_ones[0].close()
        third.settimeout(30)
        response = read_response(third)
        assert response is not None
        assert response.body == b"3"
    open_ones[1].close()


def test_closing_connection_at_the_limit_admits_the_next(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {LIMITS + "MaxConcurrentConnections": "2"})
    service.client.close()
    request = b"GET /echo?id=1 HTTP/1.1\r\nHost: x\r\n\r\n"
    for _ in range(10):
        ending = service.connect()
        ending.sendall(request)
        assert read_response(ending) is not None
        # The worker sees the end of one and the beginning of the other in one turn of its event loop.
        with stopped(service):
            ending.close()
            first = service.connect()
            first.sendall(request)
        with first, service.connect() as second:
            second.sendall(request)
            for connection in (first, second):
                assert read_response(connection) is not None


@contextmanager
def stopped(service: Service) -> Iterator[None]:
    pids = service.pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_http2_prior_knowledge_is_supported(limited: Service) -> None:
    with httpx.Client(http1=False, http2=True, trust_env=False, timeout=30) as client:
        response = client.get(f"{limited.url}/echo?id=2")
    assert (response.http_version, response.text) == ("HTTP/2", "2")


@pytest.mark.parametrize("protocols", ["Http1", "Http2"])
def test_protocol_can_be_disabled_per_endpoint(own_database: Database, serve_once: Serve, protocols: str) -> None:
    port, other = free_ports()
    endpoints = {
        "HttpServer:Endpoints:All:Url": f"http://127.0.0.1:{port}",
        "HttpServer:Endpoints:Some:Url": f"http://127.0.0.1:{other}",
        "HttpServer:Endpoints:Some:Protocols": protocols,
    }
    serve_once(own_database, SQL, endpoints, 1, port)
    http1 = protocols == "Http1"
    with httpx.Client(http1=http1, http2=not http1, trust_env=False, timeout=60) as client:
        assert client.get(f"http://127.0.0.1:{other}/echo?id=1").text == "1"
    refused = httpx.Client(http1=not http1, http2=http1, trust_env=False, timeout=60)
    with refused as client, pytest.raises(httpx.TransportError):
        client.get(f"http://127.0.0.1:{other}/echo?id=1")


def free_ports() -> tuple[int, int]:
    from tests.harness.postgres import free_port

    return free_port(), free_port()


def test_keep_alive_can_be_switched_off(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {LIMITS + "KeepAliveTimeout": "0"})
    with service.connect() as connection:
        connection.sendall(b"GET /echo?id=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        response = read_response(connection)
        assert response is not None
        assert response.headers["connection"] == "close"
        assert closed_without_answer(connection)


def on_socket(path: Path) -> httpx.Client:
    transport = httpx.HTTPTransport(uds=str(path), verify=NO_TLS)
    return httpx.Client(transport=transport, verify=NO_TLS, base_url="http://x", timeout=30)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("socket") / "rowcall.sock"


@pytest.fixture(scope="module")
def unix(database: Database, serve: Serve, limited: Service, path: Path) -> Service:
    port, _ = free_ports()
    settings = {
        "Urls": f"http://127.0.0.1:{port};http://unix:{path}",
        "HttpServer:UnixSocketPermissions": "660",
        "ConnectionSettings:Pool:SlowClientTimeout": "500ms",
    }
    return serve(database, settings=settings, workers=2, port=port)


def test_unix_socket_serves_like_a_port(unix: Service, path: Path) -> None:
    for number in range(20):
        with on_socket(path) as client:
            assert answer(client.get(f"/echo?id={number}")) == (200, TEXT, str(number))
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o660
    unix.wait_for_log(f"http://unix:{path}")


def test_large_result_streams_over_a_unix_socket(unix: Service, path: Path) -> None:
    with on_socket(path) as client:
        assert len(client.get("/many?rows=20000").json()) == 20_000


@pytest.mark.slow
def test_truncated_body_does_not_look_complete_over_a_unix_socket(
    database: Database, unix: Service, path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(str(path))
        # Far more than all buffers on the way, and few enough that generate_series computes them at once: PostgreSQL
        # stores the whole series before it sends the first row, and only a client that was sent something counts as
        # slow.
        connection.sendall(b"GET /many?rows=2000000 HTTP/1.1\r\nHost: x\r\n\r\n")
        streaming = "state = 'active' and query like '%many%'"
        wait_until(lambda: database.backends(streaming), "the query runs")
        wait_until(lambda: not database.backends(streaming), "the query is ended", 20)
        with pytest.raises((EOFError, ConnectionError)):
            read_response(connection)
    with on_socket(path) as client:
        assert client.get("/echo?id=1").text == "1"


def test_stale_unix_socket_is_replaced_and_a_used_one_is_not(
    own_database: Database, serve_once: Serve, unix: Service, path: Path, tmp_path: Path
) -> None:
    log = start_and_fail(tmp_path / "second", own_database, {"Urls": f"http://unix:{path}"})
    assert f"cannot listen on http://unix:{path}: Address already in use" in log
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(left))
    port, _ = free_ports()
    service = serve_once(own_database, SQL, {"Urls": f"http://127.0.0.1:{port};http://unix:{left}"}, 1, port)
    with on_socket(left) as client:
        assert client.get("/echo?id=1").text == "1"
    assert service.stop() == 0
    assert not left.exists()


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("Urls", "https://unix:/x", "a Unix socket is written http://unix:/absolute/path"),
        ("Urls", "ftp://x", "is not an http or https URL"),
        ("Urls", " ; ", "there is nothing to listen on"),
        ("HttpServer:Endpoints:A:Protocols", "Http1", "HttpServer:Endpoints:A: Url is missing"),
        ("HttpServer:UnixSocketPermissions", "abc", "are not permissions"),
        ("HttpServer:Limits:Http2:MaxFrameSize", "5", "the least allowed is 16384"),
        (LIMITS + "MaxConcurrentConnections", "0", "the least allowed is 1"),
    ],
)
def test_invalid_server_setting_stops_the_start(
    database: Database, tmp_path: Path, key: str, value: str, message: str
) -> None:
    assert message in start_and_fail(tmp_path, database, {key: value})


def test_unsupported_kestrel_keys_are_logged_once(own_database: Database, serve_once: Serve) -> None:
    settings = {
        "Kestrel:AllowSynchronousIO": "true",
        "Kestrel:Limits:Http3:MaxRequestHeaderFieldSize": "1000",
        "Kestrel:Limits:KeepAliveTimeout": "00:02:10",
        "Kestrel:Limits:RequestHeadersTimeout": "00:00:30",
        "Kestrel:Limits:Http2:InitialStreamWindowSize": "786432",
        "ThreadPool:MinWorkerThreads": "4",
        "ThreadPool:MaxWorkerThreads": "8",
    }
    service = serve_once(own_database, SQL, settings, 2)
    [line] = [line for line in service.log.splitlines() if "have no effect in this HTTP server" in line]
    assert line.partition("in this HTTP server: ")[2].removesuffix(" [rowcall]").split(", ") == [
        "HttpServer:Limits:Http3:MaxRequestHeaderFieldSize",
        "HttpServer:AllowSynchronousIO",
        "ThreadPool:MinWorkerThreads",
        "HttpServer:Limits:KeepAliveTimeout (RequestHeadersTimeout holds for idle connections too)",
    ]


@pytest.mark.slow
def test_several_threads_serve_connections(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"HttpServer:Threads": "3"})
    with ThreadPoolExecutor(8) as clients:
        # Each over a connection of its own: the pool of the client closes idle ones while another thread takes them.
        texts = list(clients.map(lambda number: service.request_once("GET", f"/echo?id={number}").text, range(200)))
    assert texts == [str(number) for number in range(200)]
