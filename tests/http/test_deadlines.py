"""Deadlines of requests, set by endpoint and client, which include all work of the request."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.request_tables import ask, check
from tests.harness.routines import routines
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

PASSED = "504 the deadline of the request has passed"
UNSURE = f"{PASSED}; it is not known whether it took effect"
SETTINGS = {
    "Service:Deadlines:RequestHeaders:0": "Request-Timeout",
    "Service:Deadlines:RequestHeaders:1": "Deadline",
    "Service:Deadlines:RequestHeaders:2": "grpc-timeout",
    "Service:ProxyOptions:Enabled": "true",
    "Service:HttpClientOptions:Enabled": "true",
    "Log:CorrelationIdHeader": "X-Request-ID",
}


def schema(url: str) -> str:
    return f"""
create table written(who text);
create type silent as (body text, status_code int, error_message text);
comment on type silent is 'GET {url}/silent';
create type nested as (body text, status_code int);
comment on type nested is 'GET /inner';
""" + routines([
        ("nap(_s float8) returns text language plpgsql stable",
         "begin perform pg_sleep(_s); return 'slept'; end", "HTTP GET /nap"),
        ("nap_short(_s float8) returns text language plpgsql",
         "begin perform pg_sleep(_s); return 'slept'; end", "HTTP POST /nap-short\ndeadline 200ms"),
        ("nap_limited(_s float8) returns text language plpgsql stable",
         "begin perform pg_sleep(_s); return 'slept'; end", "HTTP GET /nap-limited\ntimeout 100ms"),
        ("procedure nap_call(_s float8) language plpgsql",
         "begin perform pg_sleep(_s); end", "HTTP POST /nap-call\ndeadline 200ms"),
        ("nap_long(_s float8) returns text language plpgsql",
         "begin perform pg_sleep(_s); return 'slept'; end", "HTTP POST /nap-long\ndeadline 2s"),
        ("procedure nap_call_long(_s float8) language plpgsql",
         "begin perform pg_sleep(_s); end", "HTTP POST /nap-call-long\ndeadline 2s"),
        ("note(_who text) returns void", "insert into written values (_who)", "HTTP POST /note"),
        ("held() returns text language plpgsql", "begin perform pg_advisory_xact_lock(7); return 'held'; end",
         "HTTP POST /held"),
        ("fast() returns text stable", "select 'quick'::text", "HTTP GET /fast"),
        ("asks(_r silent) returns text stable", "select (_r).error_message",
         "HTTP GET /asks\ndeadline 300ms"),
        ("asks_long(_r silent) returns text stable", "select (_r).error_message", "HTTP GET /asks-long"),
        ("passes() returns void", "", f"HTTP GET /silent\nproxy {url}\ndeadline = 300 ms"),
        ("echoes(_x text) returns void", "",
         f"HTTP GET /echo\nproxy {url}\n_x = select 'x' from pg_sleep(1.1)"),
        ("streams() returns void", "", f"HTTP GET /streams\nproxy {url}\ndeadline 300ms"),
        ("inner(_s float8 default 60) returns text language plpgsql stable",
         "begin perform pg_sleep(_s); return 'slept'; end", "HTTP GET /inner\ninternal"),
        ("outer_call(_r nested) returns text stable", "select (_r).body", "HTTP GET /outer\ndeadline 300ms"),
    ])  # fmt: skip


COMMITS_SLOWLY = """
create table kept (about json);
create function hold() returns trigger language plpgsql as
    $$ begin perform pg_advisory_xact_lock(7); return null; end $$;
create constraint trigger hold after insert on kept deferrable initially deferred for each row execute function hold();
""" + routines([
    ("keep(_meta json) returns text", "insert into kept values (_meta) returning 'kept'",
     "HTTP POST /keep\nupload for file_system\nparam _meta is upload metadata"),
    ("nap(_s float8) returns text language plpgsql stable",
     "begin perform pg_sleep(_s); return 'slept'; end", "HTTP GET /nap"),
])  # fmt: skip


def respond_after_disconnect(_seen: Seen, connection: socket.socket) -> None:
    """Do not respond until the client has disconnected."""
    connection.recv(1)


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    server = Upstream()
    server.on("/silent", respond_after_disconnect)
    return server


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    return serve(database, schema(upstream.url), SETTINGS)


CASES: list[tuple[str, str, dict[str, str]]] = [
    ("GET /nap?s=0", "200T slept", {"Request-Timeout": "30"}),
    ("GET /nap?s=60", PASSED, {"Request-Timeout": "0.2"}),
    ("GET /nap?s=60", PASSED, {"grpc-timeout": "200m"}),
    ("GET /nap?s=60", PASSED, {"Request-Timeout": "200ms", "grpc-timeout": "1H"}),
    ("GET /nap?s=0", PASSED, {"Deadline": "2020-01-01T00:00:00Z"}),
    ("GET /nap?s=0", "400 request-timeout|how long", {"Request-Timeout": "soon"}),
    ("POST /nap-short {\"s\":60}", UNSURE, {}),
    ("POST /nap-short {\"s\":60}", UNSURE, {"Request-Timeout": "60"}),
    ("POST /nap-call {\"s\":60}", UNSURE, {}),
    ("GET /nap-limited?s=60", "504 Command execution timed out", {"Request-Timeout": "60"}),
    ("GET /asks", PASSED, {}),
    ("GET /asks-long", PASSED, {"Request-Timeout": "0.2"}),
    ("GET /silent", PASSED, {}),
    ("GET /outer", PASSED, {}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("request_", "expected", "headers"), CASES, ids=[f"{one[0]} {one[2]}" for one in CASES])
def test_deadline_cancels_the_request_and_its_work(
    service: Service, database: Database, upstream: Upstream, request_: str, expected: str, headers: dict[str, str]
) -> None:
    check(service, (request_, expected), headers)
    wait_until(lambda: not database.backends("wait_event = 'PgSleep'"), "nothing runs any more")
    wait_until(lambda: upstream.open_connections == 0, "no outgoing request is open any more")


@pytest.mark.slow
def test_deadline_response_is_independent_of_the_detecting_component(own_database: Database, serve_once: Serve) -> None:
    """Delayed workers receive the server's timeout before their own timer has run. The delayed parts stop for longer
    than a deadline, repeatedly, while requests run."""
    service = serve_once(own_database, schema("http://127.0.0.1:1"), SETTINGS)
    (worker,) = (psutil.Process(pid) for pid in service.pids())
    for _ in range(200):  # until it shares a connection, where errors are reported at once
        assert ask(service, "GET /nap?s=0", {"Request-Timeout": "30"}).text == "slept"
    # The deadlines are so long that a statement is found while it runs, also on a busy machine.
    for request in ("GET /nap?s=60", 'POST /nap-long {"s":60}', 'POST /nap-call-long {"s":60}'):
        with ThreadPoolExecutor(1) as threads:
            requested = threads.submit(ask, service, request, {"Request-Timeout": "2"})
            wait_until(lambda: own_database.backends("wait_event = 'PgSleep'"), "it runs")
            worker.suspend()
            try:
                wait_until(lambda: not own_database.backends("wait_event = 'PgSleep'"), "the server has ended it")
            finally:
                worker.resume()
        assert "the deadline of the request has passed" in problem(requested.result(), 504)["detail"]


def test_deadline_ends_the_wait_for_a_request_body(service: Service, database: Database) -> None:
    head = b"POST /note HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 15\r\n"
    response = service.raw(head + b'Request-Timeout: 0.2\r\n\r\n{"who"')
    assert response is not None
    assert response.status == 504
    assert b"the deadline of the request has passed" in response.body
    assert service.post("/note", json={"who": "after"}, headers={"Request-Timeout": "30"}).status_code == 204
    assert database.fetch("select who from written where who = 'after'") == [("after",)]


def test_deadline_applies_on_shared_connections(service: Service) -> None:
    for _ in range(40):
        assert ask(service, "GET /fast", {"Request-Timeout": "20"}).text == "quick"
    # Known to be fast by now, and about to be delayed.
    assert service.get("/fast").text == "quick"


def test_response_that_has_begun_continues_after_the_deadline(service: Service, upstream: Upstream) -> None:
    go_on = threading.Event()

    def slow(_seen: Seen, connection: socket.socket) -> bytes:
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        assert go_on.wait(30)
        return b"3\r\ntwo\r\n0\r\n\r\n"

    upstream.on("/streams", slow)
    with service.client.stream("GET", "/streams") as response:
        pieces = response.iter_bytes()
        assert next(pieces) == b"one"
        # Longer than its deadline: another request of the same duration has ended.
        problem(service.post("/nap-short", json={"s": 60}), 504)
        go_on.set()
        assert b"".join(pieces) == b"two"


def test_request_queued_beyond_its_deadline_is_not_run(own_database: Database, serve_once: Serve) -> None:
    pool = "ConnectionSettings:Pool:"
    service = serve_once(
        own_database,
        schema("http://127.0.0.1:1"),
        {**SETTINGS, pool + "ExclusiveConnections": "1", pool + "Sharing": "false"},
    )
    with httpx.Client(base_url=service.url, timeout=60) as other:
        holder = threading.Thread(target=lambda: other.post("/held"))
        with own_database.locked(7):
            holder.start()
            wait_until(own_database.waiting, "the only connection is busy")
            late = service.post("/note", json={"who": "late"}, headers={"Request-Timeout": "0.2"})
            assert problem(late, 504)["detail"] == "the deadline of the request has passed"
        holder.join()
    assert service.post("/note", json={"who": "in time"}).status_code == 204
    assert own_database.fetch("select who from written") == [("in time",)]


@pytest.mark.slow
def test_uploaded_files_and_commit_stay_consistent_at_the_deadline(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """The commit waits for longer than the deadline: another request of the same duration, begun later, has ended."""
    uploads = {"Enabled": "true", "UploadHandlers:FileSystemPath": str(tmp_path)}
    settings = {f"Service:UploadOptions:{key}": value for key, value in uploads.items()}
    service = serve_once(own_database, COMMITS_SLOWLY, {**SETTINGS, **settings})
    late = {"Request-Timeout": "1"}
    with ThreadPoolExecutor(1) as threads:
        with own_database.locked(7):
            files = {"file": ("a.txt", b"content")}
            requested = threads.submit(httpx.post, f"{service.url}/keep", files=files, headers=late, timeout=60)
            wait_until(lambda: requested.done() or own_database.waiting(), "it is committed, or was too slow for that")
            problem(service.get("/nap?s=60", headers=late), 504)
        response = requested.result()
    stored = own_database.fetch("select about from kept")
    assert len(list(tmp_path.rglob("*.txt"))) == len(stored)
    assert response.status_code == (200 if stored else 504)


def test_outgoing_requests_are_cancelled_when_the_client_disconnects(service: Service, upstream: Upstream) -> None:
    for number, path in enumerate(("/asks-long", "/silent", "/asks")):
        received = len(upstream.to("/silent"))
        with service.connect() as connection:
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nX-Request-ID: left-{number}\r\n\r\n".encode())
            wait_until(lambda: len(upstream.to("/silent")) > received, "the other service has received the request")  # noqa: B023
        wait_until(lambda: upstream.open_connections == 0, "the outgoing request is cancelled", 5)
    wait_until(lambda: service.log.count(" responded 499 ") == 3, "each is logged as left")


@pytest.mark.slow
def test_an_unknown_deadline_header_stops_the_start(database: Database) -> None:
    command = [sys.executable, "-m", "rowcall.service.cli", f"--ConnectionStrings:Default={database.conninfo}",
               "--Service:Deadlines:RequestHeaders:0=X-Timeout", "--validate"]  # fmt: skip
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "'x-timeout' is none of request-timeout" in ended.stdout + ended.stderr


@pytest.mark.usefixtures("service")
def test_deadline_headers_are_ignored_by_default(database: Database, serve_once: Serve) -> None:
    service = serve_once(database)
    assert service.get("/nap?s=0.2", headers={"Request-Timeout": "0.01", "Deadline": "1"}).text == "slept"


@pytest.mark.slow
def test_remaining_time_is_forwarded_to_other_services(service: Service) -> None:
    """1.1 seconds have passed before the outgoing request."""
    moment = "2100-01-01T00:00:00Z"
    sent = {"Request-Timeout": "100", "grpc-timeout": "100S", "Deadline": moment}
    body = service.get("/echo", headers=sent).json()["headers"]
    assert 1 <= int(body["request-timeout"]) <= 99
    assert body["grpc-timeout"].endswith("m")
    assert 1 <= int(body["grpc-timeout"][:-1]) <= 98_900
    assert body["deadline"] == moment
    fine = service.get("/echo", headers={"Request-Timeout": "100000 ms"}).json()["headers"]["request-timeout"]
    assert fine.endswith("ms")
    assert 1 <= int(fine[:-2]) <= 98_900
