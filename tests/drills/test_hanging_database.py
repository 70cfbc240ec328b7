"""PostgreSQL accepts connections and does not respond: a stopped host, a full disk, hanging storage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest

from tests.harness.database import Database, create_database
from tests.harness.expect import TEXT, answer
from tests.harness.load import Load
from tests.harness.postgres import PostgresServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
create function slow_echo(_id int) returns int language plpgsql stable as $$
begin perform pg_sleep(0.01); return _id; end $$;
create table written (id int);
create function write(_id int) returns int language sql volatile as 'insert into written values (_id) returning id';
comment on function echo(int) is 'HTTP GET';
comment on function slow_echo(int) is 'HTTP GET';
comment on function write(int) is 'HTTP POST';
"""

MOST_SESSIONS = 2 + 2 + 16 + 16 + 1 + 1
"""docs/performance.md: the pools of a worker, one of its own, and one of the supervisor."""
CANCELS = 4
"""Maximum number of concurrent cancel requests of a worker. They are connections, and no sessions."""

HASTY = {
    "Service:CommandTimeout": "1 second",
    "ConnectionSettings:Pool:QueueTimeout": "1 second",
}


def hasty(server: PostgresServer, serve_once: Serve, **settings: str) -> tuple[Database, Service]:
    """Provide a service with short timeouts: a second for each request, two for each attempt to connect."""
    database = create_database(server)
    conninfo = f"{database.conninfo}?connect_timeout=2"
    return database, serve_once(database, SQL, {**HASTY, "ConnectionStrings:Default": conninfo, **settings})


def mixed(number: int) -> tuple[str, str, bytes]:
    paths = (f"/api/echo?id={number}", f"/api/slow-echo?id={number}")
    return ("POST", "/api/write", b'{"id":%d}' % number) if number % 3 == 2 else ("GET", paths[number % 3], b"")


def test_a_hanging_server_leaks_no_connections(own_postgres: PostgresServer, serve_once: Serve) -> None:
    """Point 1: each connection attempt that timed out leaked its socket, and its session when the server resumed."""
    database, service = hasty(own_postgres, serve_once)
    most = 0
    with Load(service.port, mixed, clients=24) as load:
        load.wait_for(300)
        with own_postgres.hanging():
            for _ in range(12):
                load.wait_for(20, status=503, seconds=60)
                most = max(most, service.connections_to(own_postgres.port))
        load.wait_for(300, seconds=60)
        sessions = len(database.backends())
    assert most <= MOST_SESSIONS + CANCELS
    assert sessions <= MOST_SESSIONS
    assert [o for o in load.outcomes if o.status not in (200, 503, 504)] == []
    wait_until(lambda: not database.backends("state <> 'idle'"), "every session is idle again", 30)
    written = [row for (row,) in database.fetch("select id from written")]
    assert len(written) == len(set(written))


def test_a_request_to_a_hanging_server_ends_within_its_time_limit(
    own_postgres: PostgresServer, serve_once: Serve
) -> None:
    """Point 9: a read was retried on a second connection that hung too, after the grace time of the first."""
    _, service = hasty(own_postgres, serve_once)
    for number in range(100):
        assert answer(service.get(f"/api/echo?id={number}")) == (200, TEXT, str(number))
    with own_postgres.hanging(), service.new_client(timeout=4) as client:
        for path in ("/api/echo?id=1", "/api/slow-echo?id=1", "/api/echo?id=2"):
            assert client.get(path).status_code in (503, 504)
    wait_until(lambda: service.get("/api/echo?id=3").status_code == 200, "the service is back", 30)


def test_sessions_of_hanging_backends_count_until_they_end(own_postgres: PostgresServer, serve_once: Serve) -> None:
    """The server works except for some backends, which cannot be ended, so nothing may take their place in the pool."""
    narrow = {"ConnectionSettings:Pool:ExclusiveConnections": "6"}
    database, service = hasty(own_postgres, serve_once, **narrow)
    with ThreadPoolExecutor(16) as clients, database.locked(3):
        database.execute(
            "create function hold() returns int language plpgsql volatile as"
            " $$begin perform pg_advisory_xact_lock_shared(3); return 1; end$$;"
            "comment on function hold() is 'HTTP GET'"
        )
        database.execute("notify rowcall, 'reload'")
        service.wait_for_log("added GET /api/hold")
        sent = [clients.submit(httpx.get, f"{service.url}/api/hold", timeout=20) for _ in range(10)]
        wait_until(lambda: len(database.waiting()) >= 5, "some hold")
        stuck = [psutil.Process(pid) for pid in database.waiting()[:5]]
        for process in stuck:
            process.suspend()
        try:
            assert {future.result().status_code for future in sent} <= {503, 504}
            service.wait_for_log("is given up", 30)
            sent = [clients.submit(httpx.get, f"{service.url}/api/slow-echo?id=1", timeout=20) for _ in range(60)]
            assert {future.result().status_code for future in sent} <= {200, 503, 504}
            assert len(database.backends()) <= MOST_SESSIONS - 16 + 6 + 1  # and the one that holds the lock
        finally:
            for process in stuck:
                process.resume()
    wait_until(lambda: not any(process.is_running() for process in stuck), "they have been ended", 30)
    assert answer(service.get("/api/echo?id=1")) == (200, TEXT, "1")


@pytest.mark.parametrize("path", ["/api/echo?id=1", "/api/slow-echo?id=1"])
def test_the_service_recovers_when_the_server_resumes(
    own_postgres: PostgresServer, serve_once: Serve, path: str
) -> None:
    _, service = hasty(own_postgres, serve_once)
    with own_postgres.hanging(), service.new_client(timeout=4) as client:
        assert client.get(path).status_code in (503, 504)
    wait_until(lambda: service.get(path).status_code == 200, "the service is back", 30)


def test_health_is_reported_while_the_database_hangs(own_postgres: PostgresServer, serve_once: Serve) -> None:
    """A check that waited for the server, also after it was cancelled, would hang with it."""
    settings = {"HealthChecks:Enabled": "true", "HealthChecks:Timeout": "1 second", "HealthChecks:CacheDuration": "0"}
    _, service = hasty(own_postgres, serve_once, **settings)
    assert service.get("/health/ready").status_code == 200
    with own_postgres.hanging(), service.new_client(timeout=6) as client:
        for _ in range(3):
            assert client.get("/health/ready").status_code == 503
        assert client.get("/health/live").status_code == 200
    wait_until(lambda: service.get("/health/ready").status_code == 200, "it is healthy again", 30)
