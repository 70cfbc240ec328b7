"""How the service stops, and how another process replaces it (operations-2)."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.expect import problem
from tests.harness.launcher import service_environment
from tests.harness.load import Load
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="listening sockets are handed over on Linux only")

LOCK = 31
SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
comment on function echo(int) is 'HTTP GET /echo';
create function wait_for(_lock int) returns int language plpgsql volatile as $$
begin perform pg_advisory_xact_lock_shared(_lock); return _lock; end $$;
comment on function wait_for(int) is 'HTTP GET /wait-for
timeout 1 hour';
create function publish() returns int language plpgsql volatile as $$
begin raise info 'published'; return 1; end $$;
comment on function publish() is 'HTTP GET /publish
sse';
"""
NEW = {"HttpServer:AddServerHeader": "false"}
"""Distinguishes the later version from the first one for clients."""


def echo(number: int) -> tuple[str, str, bytes]:
    return "GET", f"/echo?id={number}", b""


@contextlib.contextmanager
def request_blocked(database: Database) -> Iterator[None]:
    """A request to /wait-for does not end while the block runs."""
    with psycopg.connect(database.conninfo) as session:
        session.execute("select pg_advisory_xact_lock(%s)", [LOCK])
        yield


def wait_for_lock(service: Service) -> httpx.Response:
    return service.request_once("GET", f"/wait-for?lock={LOCK}", timeout=120)


def waiting(database: Database) -> bool:
    return bool(database.backends("wait_event_type = 'Lock'"))


@pytest.mark.slow
def test_zero_downtime_restart_loses_no_request(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    """More workers than before, then fewer: sockets are added, and distributed."""
    port, path = free_port(), tmp_path / "api.sock"
    admin = f"http://127.0.0.1:{free_port()}"
    settings = {
        "Admin:Url": admin,
        "Metrics:Enabled": "true",
        "Urls": f"http://127.0.0.1:{port};http://unix:{path}",
        "HttpServer:HandoverSocket": str(tmp_path / "handover"),
        "HttpServer:Shutdown:ConnectionCloseTime": "1 second",
    }
    first = serve_once(own_database, SQL, settings, workers=2, port=port)
    with ThreadPoolExecutor() as pool:
        with (
            Load(first.port, echo, 8) as stored,
            Load(first.port, echo, 4, keep_alive=False) as new,
            request_blocked(own_database),
        ):
            slow = pool.submit(wait_for_lock, first)
            wait_until(lambda: waiting(own_database), "a request runs that is to survive")
            stored.wait_for(100)
            second = serve_once(own_database, "", {**settings, **NEW}, workers=3, port=first.port)
            first.wait_for_log("another process serves; this one finishes what runs")
            new.wait_for(100)
            third = serve_once(own_database, "", settings, workers=1, port=first.port)
            assert second.process.wait(60) == 0
            assert first.running, "a client still waits for it"
            new.wait_for(100)
            stored.wait_for(100)
        assert slow.result().text == str(LOCK)
    assert first.process.wait(60) == 0
    assert stored.statuses().keys() == new.statuses().keys() == {200}, [
        item for item in stored.outcomes if item.status != 200
    ]
    assert third.get("/echo?id=1").text == "1"
    third.wait_for_log(f"the admin listener is at {admin}")
    assert "rowcall_workers 1.0" in httpx.get(f"{admin}/metrics", trust_env=False, timeout=60).text
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=60) as client:
        assert client.get("http://service/echo?id=2").text == "2"
    assert third.stop() == 0
    assert not path.exists()
    assert not (tmp_path / "handover").exists()


@pytest.mark.slow
def test_invalidated_response_is_not_served_by_the_previous_process(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    settings = {
        "HttpServer:HandoverSocket": str(tmp_path / "handover"),
        "HttpServer:Shutdown:ConnectionCloseTime": "1 minute",
        "CacheOptions:Enabled": "true",
        "CacheOptions:InvalidateCacheSuffix": "forget",
    }
    cached = """create sequence runs;
    create function kept() returns bigint language sql volatile as $$ select nextval('runs') $$;
    comment on function kept() is e'HTTP GET /kept\ncached';"""
    first = serve_once(own_database, cached, settings, workers=2)
    clients = [first.new_client() for _ in range(32)]
    assert {client.get("/kept").text for client in clients} == {"1"}
    second = serve_once(own_database, "", settings, workers=2, port=first.port)
    first.wait_for_log("another process serves; this one finishes what runs")
    stored = wait_until(
        lambda: _response_after_invalidation(second), "the new process invalidates its cached response", 30
    )
    wait_until(lambda: _closes_the_connection(clients.pop()), "the previous process asks its clients to close")
    assert min(int(client.get("/kept").text) for client in clients[:2]) > int(stored)
    for client in clients[2:4]:
        refused = problem(client.post("/kept/forget"), 503)
        assert "another process has replaced this one" in refused["detail"]
    with second.new_client() as client:
        assert client.get("/kept").text == stored
    for client in clients:
        client.close()
    first.signal(signal.SIGTERM)
    assert first.process.wait(60) == 0


def _response_after_invalidation(service: Service) -> str:
    """Return the response; empty if a worker of the old process accepted the connection before it learned that it
    stops."""
    with service.new_client() as client:
        before = client.get("/kept").text
        if client.post("/kept/forget").json() != {"invalidated": True}:
            return ""
        text = client.get("/kept").text
    assert int(text) > int(before)
    return text


def _closes_the_connection(client: httpx.Client) -> bool:
    response = client.get("/kept")
    client.close()
    connection: str | None = response.headers.get("connection")
    return connection == "close"


def test_failed_successor_does_not_affect_the_running_process(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    settings = {"HttpServer:HandoverSocket": str(tmp_path / "handover")}
    service = serve_once(own_database, SQL, settings)
    nowhere = {**settings, "ConnectionStrings:Default": "host=/nowhere"}  # the start waits for it
    broken = Service(tmp_path / "broken", nowhere, service.port)
    service.wait_for_log("another process takes over: it has the listening sockets and starts", 60)
    broken.process.kill()
    broken.process.wait()
    service.wait_for_log("this process goes on serving")
    assert service.get("/echo?id=3").text == "3"
    assert (tmp_path / "handover").stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@pytest.mark.parametrize("change", ["reload", "killed worker"])
def test_previous_process_accepts_no_connection_after_handover(
    own_database: Database, serve_once: Serve, tmp_path: Path, change: str
) -> None:
    settings = {
        "HttpServer:HandoverSocket": str(tmp_path / "handover"),
        "HttpServer:Shutdown:ConnectionCloseTime": "1 hour",
    }
    first = serve_once(own_database, SQL, settings, workers=2, port=free_port())
    second = serve_once(own_database, "", settings, workers=2, port=first.port)
    first.wait_for_log("another process serves; this one finishes what runs")
    if change == "killed worker":
        worker = first.pids()[0]
        os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(first.pids()) == 2 and worker not in first.pids(), "the worker is replaced", 20)
    first.signal(signal.SIGHUP)
    first.wait_for_log("schema snapshot 2 is served")
    responses = [second.request_once("GET", "/echo?id=1") for _ in range(60)]
    assert not any("connection" in response.headers for response in responses), "all are of the second process"
    first.signal(signal.SIGTERM)
    assert first.process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("address", ["port", "unix"])
def test_postgrest_admin_server_is_taken_over_by_the_successor(
    own_database: Database, serve_once: Serve, tmp_path: Path, address: str
) -> None:
    own_database.execute("create table item (id int)")
    port, admin = free_port(), free_port()
    settings = {
        "PostgRest:Enabled": "true",
        "PostgRest:Path": "/tables",
        "PostgRest:Schemas": "public",
        "PostgRest:AdminServerHost": "127.0.0.1",
        **({"PostgRest:AdminServerPort": str(admin)} if address == "port" else {}),
        **({"PostgRest:AdminServerUnixSocket": str(tmp_path / "admin")} if address == "unix" else {}),
        "HttpServer:HandoverSocket": str(tmp_path / "handover"),
        "HttpServer:Shutdown:ConnectionCloseTime": "0 seconds",
    }
    first = serve_once(own_database, "", settings, workers=2, port=port)
    second = serve_once(own_database, "", settings, workers=2, port=port)
    assert first.process.wait(60) == 0
    second.wait_for_log("the admin server of PostgREST's interface is at")
    transport = httpx.HTTPTransport(uds=str(tmp_path / "admin")) if address == "unix" else None
    with httpx.Client(base_url=f"http://127.0.0.1:{admin}", transport=transport, trust_env=False) as client:
        assert client.get("/ready").status_code == 200
        assert 'pgrst_schema_cache_loads_total{status="SUCCESS"} 1' in client.get("/metrics").text


def test_starting_successor_accepts_no_connection(own_database: Database, serve_once: Serve, tmp_path: Path) -> None:
    """It has more workers, so it adds sockets: the system would distribute connections over listening sockets.
    Connections that ended with unread sockets (a reset) are equivalent to those that were read."""
    settings = {"HttpServer:HandoverSocket": str(tmp_path / "handover")}
    service = serve_once(own_database, SQL, settings)
    nowhere = {**settings, "ConnectionStrings:Default": "host=/nowhere", "HttpServer:Workers": "8"}
    starting = Service(tmp_path / "starting", nowhere, service.port)
    starting.wait_for_log("/nowhere", 60)
    for number in range(32):  # each on a connection of its own
        with service.new_client() as client:
            assert client.get(f"/echo?id={number}").text == str(number)
    starting.process.kill()
    starting.process.wait()
    service.wait_for_log("this process goes on serving")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as asking:
        asking.connect(settings["HttpServer:HandoverSocket"])
        asking.sendall(b"rowcall handover 1")
        service.wait_for_log("another process takes over: it has the listening sockets and starts")
        wait_until(lambda: service.log.count("it has the listening sockets") == 2, "sockets are sent")
    wait_until(lambda: service.log.count("has ended before it served") == 2, "the log reports the second one too")
    assert service.get("/echo?id=3").text == "3"


def test_readiness_fails_before_the_shutdown_begins(own_database: Database, serve_once: Serve) -> None:
    settings = {"HealthChecks:Enabled": "true", "HttpServer:Shutdown:Delay": "1 hour"}
    service = serve_once(own_database, SQL, settings, workers=2)
    assert service.get("/health/ready").text == "Healthy", "the connection is kept alive"
    service.signal(signal.SIGTERM)
    service.wait_for_log("not ready any more; requests are served for another 3600 s")

    def ask(path: str) -> int:
        return service.request_once("GET", path).status_code

    wait_until(lambda: {ask("/health/ready") for _ in range(8)} == {503}, "all workers say so")
    assert (ask("/health"), ask("/health/live"), ask("/echo?id=1")) == (503, 200, 200)
    (worker, _) = wait_until(lambda: len(service.pids()) == 2 and service.pids(), "both workers run")
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: len(service.pids()) == 2 and worker not in service.pids(), "the worker is replaced", 20)
    assert {ask("/health/ready") for _ in range(8)} == {503}, "a new worker knows too"
    with ThreadPoolExecutor() as pool, request_blocked(own_database):
        running = pool.submit(wait_for_lock, service)
        wait_until(lambda: waiting(own_database), "a request runs")
        service.signal(signal.SIGTERM)
        assert service.process.wait(30) == 0, "the second signal waits for no client"
        assert isinstance(running.exception(), httpx.TransportError)


def test_responses_send_connection_close_during_shutdown(own_database: Database, serve_once: Serve) -> None:
    """Prevents that a request is on its way on a connection that is closed."""
    settings = {"HttpServer:Shutdown:Delay": "100 milliseconds", "HttpServer:Shutdown:ConnectionCloseTime": "1 hour"}
    service = serve_once(own_database, SQL, settings)
    with EventStream(service, "/publish/info") as stream:
        assert "connection" not in service.get("/echo?id=1").headers
        service.signal(signal.SIGTERM)
        wait_until(
            lambda: service.get("/echo?id=1").headers.get("connection") == "close", "responses send Connection: close"
        )
        assert service.get("/publish").text == "1"
        stream.wait(lambda: stream.messages == ["published"], "streams go on meanwhile")
    service.signal(signal.SIGTERM)
    assert service.process.wait(30) == 0


@pytest.mark.slow
def test_running_requests_finish_and_streams_end_cleanly(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    with ThreadPoolExecutor() as pool, EventStream(service, "/publish/info") as stream:
        with request_blocked(own_database):
            running = pool.submit(wait_for_lock, service)
            wait_until(lambda: waiting(own_database), "a request runs")
            service.signal(signal.SIGTERM)
            stream.wait_for_end(60)
            assert (stream.ended, stream.cut) == (True, False), "with its last chunk"
            assert not running.done()
        assert running.result().text == str(LOCK)
    assert service.process.wait(60) == 0


class Systemd:
    """The protocol of systemd for a service with sockets: it opens them, hands them over, and receives messages."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._folder = folder
        self._database = database
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.path = str(folder / "api.sock")
        self.sockets = [socket.create_server(("127.0.0.1", self.port)), socket.socket(socket.AF_UNIX)]
        self.sockets[1].bind(self.path)
        self.sockets[1].listen()
        self.notifications = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notifications.bind(str(folder / "notify"))
        self.notifications.settimeout(60)

    def start(self, urls: str = "", **settings: str) -> subprocess.Popen[bytes]:
        chosen = {
            "Urls": urls or f"{self.url};http://unix:{self.path}",
            "ConnectionStrings:Default": self._database.conninfo,
            "Service:RequiresAuthorization": "false",
            "HttpServer:Workers": "2",
            "HttpServer:HandoverSocket": str(self._folder / "handover"),
            "HttpServer:Shutdown:ConnectionCloseTime": "100 milliseconds",
            **settings,
        }
        arguments = [f"--{key}={value}" for key, value in chosen.items()]
        places = " ".join(f"{number}<&{item.fileno()}" for number, item in enumerate(self.sockets, 3))
        environment = {"LISTEN_FDS": "2", "NOTIFY_SOCKET": str(self._folder / "notify"), "WATCHDOG_USEC": "200000"}
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                [
                    *("bash", "-c", f'LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@" {places}', "bash"),
                    *(sys.executable, "-m", "rowcall.service.cli", *arguments),
                ],
                env=service_environment() | environment,
                pass_fds=[item.fileno() for item in self.sockets],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    def receive_message(self, line: str) -> dict[str, str]:
        """Return the next message that begins with `line`."""
        return dict(item.split("=", 1) for item in self.receive_until(line)[-1].splitlines())

    def receive_until(self, line: str) -> list[str]:
        """Return the messages up to the next one that begins with `line`."""
        messages = [self.notifications.recv(4096).decode()]
        while not messages[-1].startswith(line):
            messages.append(self.notifications.recv(4096).decode())
        return messages


@pytest.fixture
def systemd(own_database: Database, tmp_path: Path) -> Iterator[Systemd]:
    own_database.execute(SQL)
    manager = Systemd(tmp_path, own_database)
    yield manager
    for item in (*manager.sockets, manager.notifications):
        item.close()


@contextlib.contextmanager
def killed_afterwards(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.slow
def test_systemd_keeps_sockets_open_during_a_restart(systemd: Systemd) -> None:
    with killed_afterwards(systemd.start()) as first:
        assert systemd.receive_message("READY=1")["MAINPID"] == str(first.pid)
        systemd.receive_message("WATCHDOG=1")
        with httpx.Client(transport=httpx.HTTPTransport(uds=systemd.path), timeout=60) as client:
            assert client.get("http://service/echo?id=2").text == "2"
        first.send_signal(signal.SIGHUP)
        assert systemd.receive_message("RELOADING=1")["MONOTONIC_USEC"].isdecimal()
        systemd.receive_message("READY=1")
        with Load(systemd.port, echo, 4) as stored, Load(systemd.port, echo, 4, keep_alive=False) as new:
            stored.wait_for(50)
            first.send_signal(signal.SIGTERM)
            assert first.wait(60) == 0
            systemd.receive_message("STOPPING=1")
            with killed_afterwards(systemd.start()) as second:
                systemd.receive_message("READY=1")
                stored.wait_for(50)
                new.wait_for(50)
                second.send_signal(signal.SIGUSR2)
                successor = int(systemd.receive_message("READY=1")["MAINPID"])
                assert successor != second.pid
                assert second.wait(60) == 0
                new.wait_for(50)
                stored.wait_for(50)
        assert stored.statuses().keys() == new.statuses().keys() == {200}
        os.kill(successor, signal.SIGTERM)
        systemd.receive_message("STOPPING=1")
        wait_until(lambda: not Path(f"/proc/{successor}").exists(), "the successor has ended", 60)
    assert Path(systemd.path).exists(), "it is systemd's"


@pytest.mark.slow
def test_systemd_is_notified_by_the_successor_alone(systemd: Systemd) -> None:
    phase = {"HttpServer:Shutdown:ConnectionCloseTime": "1 hour"}
    with killed_afterwards(systemd.start(**phase)) as first:
        systemd.receive_message("READY=1")
        first.send_signal(signal.SIGUSR2)
        successor = int(systemd.receive_message("READY=1")["MAINPID"])
        first.send_signal(signal.SIGHUP)
        wait_until(lambda: "schema snapshot 2 is served" in systemd.log, "the first process reads the schema again")
        first.send_signal(signal.SIGTERM)
        assert first.wait(60) == 0
        systemd.receive_message("WATCHDOG=1")
        os.kill(successor, signal.SIGTERM)
        assert not any(f"MAINPID={first.pid}" in message for message in systemd.receive_until("STOPPING=1"))
        os.kill(successor, signal.SIGTERM)
        wait_until(lambda: not Path(f"/proc/{successor}").exists(), "the successor has ended", 60)


@pytest.mark.slow
def test_systemd_socket_without_a_configured_url_is_logged(systemd: Systemd) -> None:
    with killed_afterwards(systemd.start(urls=systemd.url)) as process:
        assert process.wait(60) == 1
    assert f"systemd has opened {systemd.path}, and neither Urls" in (Path(systemd.path).parent / "log").read_text()
