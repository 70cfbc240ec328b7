"""What is being downloaded when the service stops: it is finished in the time that there is, and cut with a word after
that."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded

from tests.harness.database import Database
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SIZE = 40_000_000
"""More than all buffers between the service and a reader that reads nothing."""

SQL = routines([
    ("rows_of() returns table (filler text) stable",
     "select repeat('x', 1000) from generate_series(1, 40000)", "HTTP GET /rows"),
    ("value_of() returns text stable", f"select repeat('x', {SIZE})", "HTTP GET /value"),
    ("passed() returns void", "", "HTTP GET /passed\nproxy"),
])  # fmt: skip


class Download:
    """A download that reads the head of the response immediately, and the body with `rest`."""

    def __init__(self, service: Service, path: str) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        self._socket.settimeout(60)
        self._socket.connect(("127.0.0.1", service.port))
        self._socket.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        self._read = b""
        while b"\r\n\r\n" not in self._read:
            self._read += self._socket.recv(1024)
        assert self._read.startswith(b"HTTP/1.1 200 ")

    def rest(self) -> int:
        """Number of bytes that come in all."""
        size = len(self._read)
        with self._socket:
            while piece := self._socket.recv(1_000_000):
                size += len(piece)
        return size


@pytest.fixture
def passing(upstream: Upstream) -> Upstream:
    def large(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE)
        connection.sendall(bytes(SIZE))

    upstream.on("/passed", large)
    return upstream


@pytest.fixture
def settings(passing: Upstream, tmp_path: Path) -> dict[str, str]:
    (tmp_path / "file.bin").write_bytes(bytes(SIZE))
    return {
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": passing.url,
        "StaticFiles:Enabled": "true",
        "StaticFiles:RootPath": str(tmp_path),
    }


PATHS = ("/rows", "/value", "/passed", "/file.bin")


@pytest.mark.slow
def test_downloads_are_finished_when_the_service_stops(
    own_database: Database, serve_once: Serve, settings: dict[str, str]
) -> None:
    service = serve_once(own_database, SQL, settings)
    downloads = [Download(service, path) for path in PATHS]
    service.signal(signal.SIGTERM)
    wait_until(lambda: _refused(service.port), "no new connections are taken")
    assert [item.rest() >= SIZE for item in downloads] == [True] * len(PATHS)
    wait_until(lambda: not service.running, "the service ends", 30)
    assert "cut off" not in service.log


@pytest.mark.slow
def test_downloads_beyond_the_shutdown_timeout_are_cut_off_and_logged(
    own_database: Database, serve_once: Serve, settings: dict[str, str]
) -> None:
    service = serve_once(own_database, SQL, {**settings, "ConnectionSettings:Pool:ShutdownTimeout": "1 second"})
    downloads = [Download(service, path) for path in PATHS]
    service.signal(signal.SIGTERM)
    wait_until(lambda: not service.running, "the service ends", 30)
    service.wait_for_log("are cut off, with the responses that clients are still reading")
    assert all(item.rest() < SIZE for item in downloads)


def _refused(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.slow
def test_a_silent_http2_client_does_not_delay_shutdown(own_database: Database, serve_once: Serve) -> None:
    """The client never confirms the end of the connection. The stop, which may take longer than the test waits, goes
    on without it."""
    patient = {"ConnectionSettings:Pool:ShutdownTimeout": "10 minutes"}
    service = serve_once(own_database, SQL, patient, workers=2)
    protocol = H2Connection(H2Configuration(client_side=True))
    protocol.initiate_connection()
    headers = [(":method", "GET"), (":path", "/missing"), (":scheme", "http"), (":authority", "x")]
    protocol.send_headers(1, headers, end_stream=True)
    with service.connect() as connection:
        connection.sendall(protocol.data_to_send())
        ended = False
        while not ended:
            events = protocol.receive_data(connection.recv(65_536))
            ended = any(isinstance(event, StreamEnded) for event in events)
        assert service.stop() == 0
    assert "did not finish" not in service.log
