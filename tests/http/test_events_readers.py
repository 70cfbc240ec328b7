"""Readers of streams: slow ones, large events, sessions that expire, subscription rights, notifications of
PostgreSQL."""

from __future__ import annotations

import socket
import time
from functools import partial
from pathlib import Path
from types import TracebackType

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, StreamEnded
from h2.exceptions import StreamClosedError
from h2.settings import SettingCodes

from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.postgres import free_port
from tests.harness.service import ENGINE, Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import member_sql, with_cookie

SQL = """
create function publish(_text text) returns text language plpgsql as
    $$begin raise info '%', _text; return 'published'; end$$;
comment on function publish(text) is E'HTTP POST\\nallow_anonymous\\nsse';
create function publish_long(_length int, _times int default 1) returns void language plpgsql as $$begin
    for n in 1 .. _times loop raise info '% %', n, repeat('x', _length); end loop;
end$$;
comment on function publish_long(int, int) is E'HTTP POST\\nallow_anonymous\\nsse_publish';
create function closed_stream() returns void language sql as '';
comment on function closed_stream() is E'HTTP GET\\nauthorize boss\\nsse_subscribe news';
"""
STREAM = "/api/publish/info"
ESTABLISHED = 1
"""State in Linux' `tcp_info`."""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"Service:ServerSentEvents:SlowReaderEvents": "50"})


def read_nothing(service: Service) -> EventStream:
    """Connect with a small receive buffer."""
    return EventStream(service, STREAM, receive_buffer=4096)


@pytest.mark.slow
def test_a_slow_reader_gets_the_newest_events_and_a_gap_is_logged(service: Service) -> None:
    with read_nothing(service) as slow, EventStream(service, STREAM) as fast:
        sent = flood(service, fast)
        service.post("/api/publish", json={"text": "end"})
        fast.wait(lambda: fast.body.endswith(b"end\n\n"), "the end")
        assert len(fast.messages) == sent + 1, "the fast one misses nothing"
        slow.wait(lambda: slow.body.endswith(b"end\n\n"), "the end", 30)
        got = [int(message.split(" ")[0]) for message in slow.messages[:-1]]
        missed = sum(int(part.split("}")[0]) for part in slow.text.split('{"missed":')[1:])
        assert missed > 0
        assert len(got) + missed == sent
        posted = [*range(1, BURST + 1)] * (sent // BURST)
        assert got[-49:] == posted[-49:], "the newest are there, in order"


@pytest.mark.slow
@pytest.mark.skipif(ENGINE.get("HttpServer:Engine") == "Granian", reason="it does not report what it could not send")
def test_slow_reader_over_a_unix_socket_gets_the_newest_events(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """A reverse proxy that is connected over a Unix socket stops to read when its client does."""
    port, path = free_port(), tmp_path / "rowcall.sock"
    settings = {
        "Urls": f"http://127.0.0.1:{port};http://unix:{path}",
        "Service:ServerSentEvents:SlowReaderEvents": "50",
    }
    service = serve_once(own_database, SQL, settings, port=port)
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    with EventStream(service, STREAM, connection=connection) as slow, EventStream(service, STREAM) as fast:
        sent = flood(service, fast)
        service.post("/api/publish", json={"text": "end"})
        slow.wait(lambda: slow.body.endswith(b"end\n\n"), "the end", 30)
        missed = sum(int(part.split("}")[0]) for part in slow.text.split('{"missed":')[1:])
        assert missed > 0
        assert len(slow.messages) - 1 + missed == sent


@pytest.mark.slow
def test_event_of_ten_megabytes_is_delivered(service: Service) -> None:
    with EventStream(service, STREAM) as item, EventStream(service, STREAM) as other:
        service.post("/api/publish-long", json={"length": 10_000_000})
        service.post("/api/publish", json={"text": "behind it"})
        for stream in (item, other):
            stream.wait(partial(stream.body.endswith, b"behind it\n\n"), "all of it", 30)
            assert len(stream.messages[0]) == 10_000_002


@pytest.mark.slow
def test_slow_reader_is_disconnected_if_configured(own_database: Database, serve_once: Serve) -> None:
    settings = {"Service:ServerSentEvents:SlowReaderEvents": "50", "Service:ServerSentEvents:SlowReaders": "End"}
    service = serve_once(own_database, SQL, settings)
    with read_nothing(service) as slow, EventStream(service, STREAM) as fast:
        flood(service, fast)
        slow.wait_for_end()
        assert slow.cut
        service.post("/api/publish", json={"text": "end"})
        fast.wait(lambda: fast.body.endswith(b"end\n\n"), "others go on")


@pytest.mark.slow
def test_stalled_reader_is_disconnected_after_the_timeout(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {"Service:ServerSentEvents:SlowReaderTimeout": "2s"})
    with read_nothing(service) as slow, EventStream(service, STREAM) as fast:
        service.post("/api/publish-long", json={"length": 4_000_000})
        fast.wait(lambda: fast.body.endswith(b"xx\n\n"), "all of it", 30)
        wait_until(lambda: _is_disconnected(slow), "the connection is cut", 20)
    with TwoStreams(service) as both, EventStream(service, STREAM) as other:
        for _ in range(30):
            service.post("/api/publish-long", json={"length": 2_000_000})
            other.wait(lambda: other.body.endswith(b"xx\n\n"), "others get everything", 30)
            del other.body[:-4]
            if not both.read(2_000_000):
                break
        assert both.ended, "unread data beside a stream that is read is buffered up to a bound"


class TwoStreams:
    """Two event streams of one HTTP/2 connection, of which only the first is read."""

    READ, UNREAD = 1, 3

    def __init__(self, service: Service) -> None:
        self._socket = service.connect()
        self._connection = H2Connection(H2Configuration(client_side=True))
        self._connection.initiate_connection()
        self._connection.update_settings({SettingCodes.MAX_FRAME_SIZE: 1 << 20})
        self._connection.increment_flow_control_window(2**31 - 65_536)
        self._taken = dict.fromkeys((self.READ, self.UNREAD), 0)
        self.ended = False
        for stream in self._taken:
            head = {":method": "GET", ":path": STREAM, ":scheme": "http", ":authority": "test"}
            self._connection.send_headers(stream, list(head.items()), end_stream=True)
        self._socket.sendall(self._connection.data_to_send())
        while min(self._taken.values()) < len(": connected\n\n"):
            assert self._receive()

    def __enter__(self) -> TwoStreams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def read(self, more: int) -> bool:
        """Read at least so many more bytes. False if the stream ends before."""
        enough = self._taken[self.READ] + more
        while not self.ended and self._taken[self.READ] < enough:
            self.ended = not self._receive()
        return not self.ended

    def _receive(self) -> bool:
        try:
            data = self._socket.recv(1 << 20)
            for event in self._connection.receive_data(data):
                if isinstance(event, StreamEnded):
                    return False
                if isinstance(event, DataReceived):
                    self._taken[event.stream_id] += len(event.data)
                    if event.stream_id == self.READ and event.data:
                        self._connection.increment_flow_control_window(event.flow_controlled_length, self.READ)
            self._socket.sendall(self._connection.data_to_send())
        except (ConnectionResetError, BrokenPipeError, StreamClosedError):
            return False
        return bool(data)


def _is_disconnected(stream: EventStream) -> bool:
    """Return whether the stream was cut, without reading."""
    state: int = stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return state != ESTABLISHED


BURST = 20
"""Events that are posted at once: fewer than the limits of waiting events and bytes, so that a client that reads after
each burst misses nothing, however busy the machine is."""


def flood(service: Service, fast: EventStream) -> int:
    """Post bursts until a slow reader has exceeded its time to catch up, and more events than may wait for it. Return
    the number of events."""
    sent, before = 0, fast.body.count(b"data: ")

    def all_received() -> bool:
        return fast.body.count(b"data: ") >= before + sent

    def publish_burst(bursts: int = 1) -> None:
        nonlocal sent
        for _ in range(bursts):
            service.post("/api/publish-long", json={"length": 20_000, "times": BURST})
            sent += BURST
            fast.wait(all_received, "everything")

    publish_burst(5)
    until = time.monotonic() + 2
    while time.monotonic() < until:
        publish_burst()
    publish_burst(5)
    return sent


# --- sessions and access -------------------------------------------------------------------------------------------

LISTENED = """
create function depots() returns void language sql as '';
comment on function depots() is
E'HTTP GET\\nauthorize\\nsse_listen depots\\nsse_filter depot\\nsse_filter number user_id';
create function orders() returns void language sql as '';
comment on function orders() is E'HTTP GET\\nauthorize boss\\nsse_listen Orders changes';
create function open_news() returns void language sql as '';
comment on function open_news() is E'HTTP GET\\nallow_anonymous\\nsse_listen news';
create function twice() returns void language sql as '';
comment on function twice() is E'HTTP GET\\nauthorize\\nsse_listen depots at';
create function twice(_of int) returns void language sql as '';
comment on function twice(int) is E'HTTP GET\\nauthorize boss\\nsse_listen depots at';
create function as_role() returns void language sql as '';
comment on function as_role() is E'HTTP GET\\nauthorize\\nrole_from_claim\\nsse_listen news news';
create function behind() returns int language sql as 'select 1';
comment on function behind() is 'HTTP GET /api/twice/at';
"""


@pytest.fixture(scope="module")
def members(service: Service, database: Database, serve: Serve) -> Service:
    """The second service of the database, whose schema `service` has created."""
    assert service.running
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:CookieValid": "4 seconds",
        "Auth:BearerTokenAuth": "true",
        "Service:ServerSentEvents:AuthorizeOnConnect": "true",
        "Service:AuthenticationOptions:DatabaseRoles:0": "pg_monitor",
    }
    return serve(database, member_sql() + LISTENED, settings, workers=2)


def test_stream_path_conflicts_are_logged(members: Service) -> None:
    assert members.log.count("public.twice(integer): the stream at /api/twice/at is also that of public.twice()") == 1
    hidden = "public.behind(): GET /api/twice/at is not reached: the stream of GET /api/twice is there"
    assert members.log.count(hidden) == 1
    assert members.get("/api/twice/at").status_code == 401


def test_subscription_requires_access_to_the_endpoint(members: Service) -> None:
    path = "/api/closed-stream/news"
    assert members.get(path).status_code == 401
    assert members.get(path, headers=with_cookie(members, "mo")).status_code == 403
    with EventStream(members, path, with_cookie(members)) as stream:
        members.post("/api/publish", json={"text": "hello"})
        stream.wait_for("hello")


def test_subscription_requires_the_database_role_of_the_endpoint(members: Service) -> None:
    for path in ("/api/as-role", "/api/as-role/news"):
        assert members.get(path).status_code == 401
        assert members.get(path, headers=with_cookie(members)).status_code == 403


@pytest.mark.slow
def test_a_stream_ends_with_its_session(members: Service) -> None:
    with EventStream(members, STREAM) as anonymous, EventStream(members, STREAM, with_cookie(members)) as signed_in:
        signed_in.wait_for_end(8)
        assert signed_in.ended
        members.post("/api/publish", json={"text": "still here"})
        anonymous.wait_for("still here")


def test_notifications_of_a_channel_are_a_stream(members: Service, database: Database) -> None:
    boss = with_cookie(members)
    assert members.get("/api/orders/changes").status_code == 401
    assert members.get("/api/orders/changes", headers=with_cookie(members, "mo")).status_code == 403
    with (
        EventStream(members, "/api/orders/changes", boss) as orders,
        EventStream(members, STREAM, boss) as others,
        EventStream(members, "/api/open-news/news") as news,
    ):
        database.execute("""notify "orders", '41'; notify "Orders", '42'; select pg_notify('news', E'a\\nb')""")
        orders.wait_for("42")
        news.wait_for("a\nb")
        members.post("/api/publish", json={"text": "end"})
        others.wait_for("end")
        database.execute("select pg_notify('news', 'end')")
        news.wait_for("a\nb", "end")


def test_payloads_are_filtered_by_claims(members: Service, database: Database) -> None:
    payloads = (
        '{"depot":"north","number":41,"n":1}',
        '{"depot":"north","number":"41","n":2}',
        '{"depot":"south","number":41}',
        '{"depot":"north","number":42}',
        '{"depot":"north"}',
        '{"depot":null,"number":41}',
        "north 41",
        "[1]",
        "",
        '{"number":41,"depot":"north","n":3}',
    )
    with EventStream(members, "/api/depots/depots", with_cookie(members)) as stream:
        for payload in payloads:
            database.fetch("select pg_notify('depots', %s)", payload)
        stream.wait_for(payloads[0], payloads[1], payloads[-1])


def test_restricting_an_endpoint_ends_only_its_streams(members: Service, database: Database) -> None:
    with EventStream(members, "/api/open-news/news") as news, EventStream(members, STREAM) as others:
        database.execute("comment on function open_news() is E'HTTP GET\\nauthorize boss\\nsse_listen news'")
        database.execute("notify rowcall, 'reload'")
        news.wait_for_end()
        assert news.ended
        members.post("/api/publish", json={"text": "still here"})
        others.wait_for("still here")
