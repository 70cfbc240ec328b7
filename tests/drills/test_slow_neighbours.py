"""A promoted read waits for a lock: calls that do not depend on it are not delayed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table locked (id int);
insert into locked values (1);
create table free (id int);
insert into free values (2);
create function of_locked() returns int language sql stable as 'select id from locked';
create function of_free() returns int language sql stable as 'select id from free';
create function maybe_wait(_id int, _lock int default null) returns int language plpgsql stable as $$
begin
  if _lock is not null then perform pg_advisory_xact_lock_shared(_lock); end if;
  return _id;
end $$;
create function echo(_id int) returns int language sql stable as 'select _id';
comment on function of_locked() is 'HTTP GET
timeout 1s';
comment on function of_free() is 'HTTP GET';
comment on function maybe_wait(int, int) is 'HTTP GET';
comment on function echo(int) is 'HTTP GET';
create function echo_hurried(_id int) returns int language sql stable as 'select _id from free';
comment on function echo_hurried(int) is 'HTTP GET
timeout 100ms';
"""

LOCK = 13
HURRIED = 3.0
"""Timeout of a client in seconds: well above one limit of a second, well below the sum of the limits of others."""


@contextmanager
def table_locked(database: Database, name: str) -> Iterator[None]:
    with psycopg.connect(database.conninfo) as connection:
        connection.execute(f"lock table {name} in access exclusive mode".encode())
        yield


def promote(service: Service, *paths: str) -> None:
    """Call often and fast enough that later calls share connections."""
    for _ in range(200):
        for path in paths:
            assert service.get(path).status_code == 200


def test_a_locked_table_does_not_stop_other_reads(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    promote(service, "/api/of-locked", "/api/of-free")

    def hurried(path: str) -> int:
        return httpx.get(service.url + path, timeout=HURRIED).status_code

    with ThreadPoolExecutor(16) as clients, table_locked(own_database, "locked"):
        for _ in range(3):
            stuck = [clients.submit(hurried, "/api/of-locked") for _ in range(14)]
            wait_until(lambda: own_database.backends("wait_event_type = 'Lock'"), "a session waits for the lock")
            others = [clients.submit(hurried, "/api/of-free") for _ in range(2)]
            assert [future.result() for future in others] == [200, 200]
            assert {future.result() for future in stuck} <= {503, 504}
    wait_until(lambda: service.get("/api/of-locked").status_code == 200, "the lock is gone")


def test_the_time_limit_of_a_request_begins_with_it(own_database: Database, serve_once: Serve) -> None:
    """Without another connection, calls behind a slow one wait, but each no longer than its own limit."""
    narrow = {"ConnectionSettings:Pool:SharedConnections": "1", "ConnectionSettings:Pool:ExclusiveConnections": "1"}
    service = serve_once(own_database, SQL, narrow)
    promote(service, "/api/of-locked")
    with ThreadPoolExecutor(14) as clients, table_locked(own_database, "locked"):
        sent = [clients.submit(httpx.get, f"{service.url}/api/of-locked", timeout=HURRIED) for _ in range(14)]
        assert {future.result().status_code for future in sent} <= {503, 504}


@pytest.fixture
def one_shared(own_database: Database, serve_once: Serve) -> Service:
    """All fast calls share one connection."""
    service = serve_once(own_database, SQL, {"ConnectionSettings:Pool:SharedConnections": "1"})
    promote(service, "/api/maybe-wait?id=1", "/api/echo?id=1")
    return service


def test_the_query_of_a_disconnected_client_is_cancelled_on_a_shared_connection(
    own_database: Database, one_shared: Service
) -> None:
    with own_database.locked(LOCK):
        with one_shared.connect() as connection:
            connection.sendall(f"GET /api/maybe-wait?id=1&lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            wait_until(own_database.waiting, "the query waits")
        wait_until(lambda: not own_database.waiting(), "the query is cancelled")
    assert answer(one_shared.get("/api/maybe-wait?id=7")) == (200, TEXT, "7")


def test_requests_behind_a_query_of_a_disconnected_client_are_served(
    own_database: Database, one_shared: Service
) -> None:
    """It can't be cancelled alone, so those behind it go elsewhere, and its connection ends with it."""
    with own_database.locked(LOCK):
        with one_shared.connect() as slow, one_shared.connect() as behind:
            slow.sendall(f"GET /api/maybe-wait?id=1&lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            behind.sendall(b"GET /api/echo?id=5 HTTP/1.1\r\nHost: x\r\n\r\n")
            slow.close()
            assert behind.recv(4096).endswith(b"5")
        wait_until(lambda: not own_database.waiting(), "the query has ended")
    assert answer(one_shared.get("/api/echo?id=7")) == (200, TEXT, "7")


def test_a_call_with_a_short_time_limit_is_served_beside_a_waiting_query(
    own_database: Database, one_shared: Service
) -> None:
    """On any connection, its limit is not used up by the query that waits for a lock."""
    promote(one_shared, "/api/echo-hurried?id=1")
    with own_database.locked(LOCK), one_shared.connect() as slow, one_shared.connect() as behind:
        slow.sendall(f"GET /api/maybe-wait?id=1&lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        wait_until(own_database.waiting, "the query waits")
        behind.sendall(b"GET /api/echo-hurried?id=5 HTTP/1.1\r\nHost: x\r\n\r\n")
        response = behind.recv(4096)
        assert response.startswith(b"HTTP/1.1 200"), response
        assert response.endswith(b"5")
