"""Responses over one HTTP/2 connection are independent: a client that leaves one unread ends that one only."""

from __future__ import annotations

import socket

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import DataReceived, Event, StreamEnded, StreamReset
from h2.settings import SettingCodes

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function many(_rows int) returns table (n int, filler text) language sql stable
as $$select n, repeat('x', 100) from generate_series(1, _rows) n$$;
comment on function many(int) is 'HTTP GET /many';
create function echo(_id int) returns int language sql stable as 'select _id';
comment on function echo(int) is 'HTTP GET /echo';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"ConnectionSettings:Pool:SlowClientTimeout": "500ms"})


class Client:
    """A connection of HTTP/2 with a wide window, whose streams have narrow ones that are never widened."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._h2 = H2Connection(H2Configuration(client_side=True))
        self._h2.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = 65_535
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(100_000_000)
        self.events: list[Event] = []
        self._flush()

    def get(self, stream: int, path: str) -> None:
        headers = [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "x")]
        self._h2.send_headers(stream, headers, end_stream=True)
        self._flush()

    def body(self, stream: int) -> bytes:
        """Of an answer that is complete."""
        while not any(isinstance(event, StreamEnded) and event.stream_id == stream for event in self.events):
            self.receive()
        data = (event for event in self.events if isinstance(event, DataReceived) and event.stream_id == stream)
        return b"".join(event.data for event in data)

    def resets(self) -> list[tuple[int, int]]:
        return [(event.stream_id, event.error_code) for event in self.events if isinstance(event, StreamReset)]

    def read_on(self, stream: int) -> None:
        self._h2.increment_flow_control_window(1_000_000, stream)
        self._flush()

    def receive(self) -> None:
        received = self._connection.recv(65_536)
        assert received, "the connection has ended"
        self.events += self._h2.receive_data(received)
        self._flush()

    def _flush(self) -> None:
        self._connection.sendall(self._h2.data_to_send())


def streaming(database: Database) -> list[int]:
    return database.backends("state = 'active' and query like '%many%'")


def test_an_unread_http2_stream_does_not_stop_the_others(database: Database, service: Service) -> None:
    with service.connect() as connection:
        client = Client(connection)
        client.get(1, "/many?rows=1000000")
        client.get(3, "/echo?id=3")
        assert client.body(3) == b"3"
        wait_until(lambda: streaming(database), "the query runs")
        wait_until(lambda: not streaming(database), "the query is ended", 20)
        client.get(5, "/echo?id=5")
        assert client.body(5) == b"5"
        client.read_on(1)
        while not client.resets():
            client.receive()
        assert client.resets() == [(1, ErrorCodes.INTERNAL_ERROR)]
        client.get(7, "/many?rows=3")
        assert client.body(7).count(b'"n":') == 3
