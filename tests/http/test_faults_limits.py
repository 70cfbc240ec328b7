"""More requests than the limits permit, or requests that take longer than their client waits."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.raw_http import read_response
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function echo(_id int) returns int language sql stable as 'select _id';
create function wait_for(_lock int) returns int language plpgsql volatile as $$
begin perform pg_advisory_xact_lock_shared(_lock); return _lock; end $$;
create function maybe_wait(_id int, _lock int default null) returns int language plpgsql stable as $$
begin
  if _lock is not null then perform pg_advisory_xact_lock_shared(_lock); end if;
  return _id;
end $$;
create function many(_rows int) returns table(n int, filler text) language sql stable
  as $$select n, repeat('x', 100) from generate_series(1, _rows) n$$;
create function pausing(_lock int) returns table(n int, filler text) language sql stable
  as $$select n, repeat('x', 100) from generate_series(1, 50000) n
  where n < 40000 or pg_advisory_xact_lock_shared(_lock) is not null$$;
comment on function echo(int) is 'HTTP';
comment on function pausing(int) is 'HTTP GET /pausing';
comment on function wait_for(int) is 'HTTP GET /wait-for';
comment on function maybe_wait(int, int) is 'HTTP GET /maybe-wait';
comment on function many(int) is 'HTTP GET /many';
"""
ENDLESS = b"GET /many?rows=3000000 HTTP/1.1\r\nHost: x\r\n\r\n"
"""More than the buffers on the way to the client hold, but few enough that PostgreSQL, which computes all rows before
it sends the first one, does not need seconds."""

LOCK = 7

NARROW = {
    "ConnectionSettings:Pool:Sharing": "false",
    "ConnectionSettings:Pool:ExclusiveConnections": "1",
    "ConnectionSettings:Pool:QueueLimit": "2",
    "ConnectionSettings:Pool:QueueTimeout": "60 seconds",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


def test_full_queue_gets_503_with_retry_after_at_once(database: Database, service: Service, serve_once: Serve) -> None:
    """One runs, two wait, the others are refused; the admitted ones get responses."""
    narrow = serve_once(database, settings=NARROW)
    with ThreadPoolExecutor(6) as clients:
        with database.locked(LOCK):
            sent = [clients.submit(narrow.get, f"/wait-for?lock={LOCK}") for _ in range(6)]
            wait_until(lambda: sum(future.done() for future in sent) == 3, "three of six are refused")
            refused = [future.result() for future in sent if future.done()]
        answered = [future.result() for future in sent if future.result() not in refused]
    for response in refused:
        problem(response, 503)
        assert int(response.headers["retry-after"]) > 0
    assert [answer(response) for response in answered] == [(200, TEXT, str(LOCK))] * 3


def test_waiting_for_a_connection_is_bounded(database: Database, service: Service, serve_once: Serve) -> None:
    narrow = serve_once(database, settings={**NARROW, "ConnectionSettings:Pool:QueueTimeout": "200ms"})
    with ThreadPoolExecutor(1) as clients:
        with database.locked(LOCK):
            running = clients.submit(narrow.get, f"/wait-for?lock={LOCK}")
            wait_until(database.waiting, "the first request holds the connection")
            response = narrow.get("/api/echo?id=1")
            problem(response, 503)
            assert int(response.headers["retry-after"]) > 0
        assert answer(running.result()) == (200, TEXT, str(LOCK))
    assert answer(narrow.get("/api/echo?id=2")) == (200, TEXT, "2")


@pytest.mark.slow
def test_fast_routines_are_not_delayed_by_slow_ones(database: Database, service: Service) -> None:
    with ThreadPoolExecutor(8) as clients:
        with database.locked(LOCK):
            slow = [clients.submit(service.get, f"/wait-for?lock={LOCK}") for _ in range(8)]
            wait_until(lambda: len(database.waiting()) == 8, "eight slow requests run")
            for number in range(200):
                assert answer(service.get(f"/api/echo?id={number}")) == (200, TEXT, str(number))
            assert not any(future.done() for future in slow)
        assert [answer(future.result())[2] for future in slow] == [str(LOCK)] * 8


@pytest.mark.slow
def test_routine_that_becomes_slow_does_not_block_later_requests(database: Database, service: Service) -> None:
    """It has been promoted to a shared connection when it begins to wait there (driver-2)."""
    for number in range(300):
        assert answer(service.get(f"/maybe-wait?id={number}"))[2] == str(number)
        assert answer(service.get(f"/api/echo?id={number}"))[2] == str(number)
    with ThreadPoolExecutor(1) as clients:
        with database.locked(LOCK):
            slow = clients.submit(service.get, f"/maybe-wait?id=1&lock={LOCK}")
            wait_until(database.waiting, "the promoted routine waits")
            for number in range(50):
                assert answer(service.get(f"/api/echo?id={number}", timeout=10))[2] == str(number)
            assert not slow.done()
        assert answer(slow.result())[2] == "1"


def test_query_of_a_disconnected_client_is_cancelled(database: Database, service: Service) -> None:
    with database.locked(LOCK):
        with service.connect() as connection:
            connection.sendall(f"GET /wait-for?lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            wait_until(database.waiting, "the query runs")
        wait_until(lambda: not database.waiting(), "the query is cancelled")
    assert answer(service.get("/api/echo?id=1")) == (200, TEXT, "1")


@pytest.mark.slow
def test_cancelling_one_query_does_not_affect_another(database: Database, service: Service) -> None:
    with ThreadPoolExecutor(4) as clients:
        with database.locked(LOCK):
            staying = [clients.submit(service.get, f"/wait-for?lock={LOCK}") for _ in range(4)]
            wait_until(lambda: len(database.waiting()) == 4, "four queries run")
            for _ in range(5):
                with service.connect() as connection:
                    connection.sendall(f"GET /wait-for?lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                    wait_until(lambda: len(database.waiting()) == 5, "the fifth query runs")
                wait_until(lambda: len(database.waiting()) == 4, "the fifth query is cancelled")
        assert [answer(future.result()) for future in staying] == [(200, TEXT, str(LOCK))] * 4


def test_query_of_a_client_disconnected_in_mid_stream_is_cancelled(database: Database, service: Service) -> None:
    with service.connect(receive_buffer=4096) as connection:
        connection.sendall(ENDLESS)
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert streaming(database)
    wait_until(lambda: not streaming(database), "the query ends", 20)
    assert answer(service.get("/api/echo?id=1")) == (200, TEXT, "1")


def streaming(database: Database) -> list[int]:
    return database.backends("state = 'active' and query like '%many%'")


@pytest.mark.slow
def test_large_set_streams_to_a_slow_reader_in_bounded_memory(database: Database, service: Service) -> None:
    rows = 500_000
    [worker] = [psutil.Process(pid) for pid in service.pids()]
    before = worker.memory_info().rss
    with service.connect(receive_buffer=4096) as connection:
        connection.sendall(f"GET /many?rows={rows} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        wait_until(lambda: database.backends("wait_event = 'ClientWrite'"), "PostgreSQL has to wait for the reader")
        response = read_response(connection)
        grown = worker.memory_info().rss - before
    assert response is not None
    assert response.status == 200
    assert response.body.startswith(b'[{"n":1,"filler":"xxx')
    assert response.body.endswith(b"}]")
    assert response.body.count(b'{"n":') == rows
    assert grown <= 32 * 1024 * 1024


@pytest.mark.slow
def test_client_that_never_reads_is_disconnected(database: Database, service: Service, serve_once: Serve) -> None:
    strict = serve_once(database, settings={"ConnectionSettings:Pool:SlowClientTimeout": "500ms"})
    with strict.connect(receive_buffer=4096) as connection:
        connection.sendall(ENDLESS)
        wait_until(lambda: streaming(database), "the query runs")
        wait_until(lambda: not streaming(database), "the query is ended", 60)
    assert answer(strict.get("/api/echo?id=1")) == (200, TEXT, "1")


@pytest.mark.slow
def test_body_truncated_for_a_slow_reader_does_not_look_complete(
    database: Database, service: Service, serve_once: Serve
) -> None:
    strict = serve_once(database, settings={"ConnectionSettings:Pool:SlowClientTimeout": "500ms"})
    with strict.connect(receive_buffer=4096) as connection:
        connection.sendall(ENDLESS)
        wait_until(lambda: streaming(database), "the query runs")
        wait_until(lambda: not streaming(database), "the query is ended", 60)
        with pytest.raises((EOFError, ConnectionError)):
            read_response(connection)


def test_query_paused_in_mid_stream_is_cancelled_with_its_client(database: Database, service: Service) -> None:
    with database.locked(LOCK):
        with service.connect() as connection:
            connection.sendall(f"GET /pausing?lock={LOCK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")
            while not database.waiting():
                assert connection.recv(65536)
        wait_until(lambda: not database.waiting(), "the query is ended", 60)


def pipes(service: Service) -> set[str]:
    """Return the pipes that the worker has open, each once."""
    folder = Path(f"/proc/{service.pids()[0]}/fd")
    return {target for entry in folder.iterdir() if (target := read_link(entry)).startswith("pipe:")}


def read_link(entry: Path) -> str:
    try:
        return os.readlink(entry)
    except FileNotFoundError:  # closed in the meantime
        return ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at open files in /proc")
def test_early_disconnects_leak_no_file_descriptor(database: Database, service: Service, serve_once: Serve) -> None:
    """The whole result fits into the pipe between PostgreSQL and client, so that an unread one is not noticed."""
    # A new worker: in a used one, earlier streams may still be closing.
    fresh = serve_once(database, settings={"ConnectionSettings:Pool:StreamAfterBytes": "65536"})
    idle = pipes(fresh)
    for _ in range(50):
        with fresh.connect() as connection:
            connection.sendall(b"GET /many?rows=1800 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(50_000).startswith(b"HTTP/1.1 200")
    wait_until(lambda: pipes(fresh) == idle, "every pipe is closed", 30)


@pytest.mark.slow
def test_slow_readers_do_not_block_other_requests(database: Database, service: Service) -> None:
    readers = [service.connect(receive_buffer=4096) for _ in range(8)]
    try:
        for reader in readers:
            reader.sendall(ENDLESS)
        wait_until(lambda: len(streaming(database)) == 8, "eight streams run")
        for number in range(100):
            assert answer(service.get(f"/api/echo?id={number}")) == (200, TEXT, str(number))
    finally:
        for reader in readers:
            reader.close()
    wait_until(lambda: not streaming(database), "every stream ended with its reader", 20)


def test_no_connection_is_leaked(database: Database, service: Service) -> None:
    """After all tests above, connections are limited and idle. It runs last because it is the last test of the file."""
    wait_until(lambda: not database.backends("state <> 'idle'"), "every session is idle", 20)
    assert len(database.backends()) <= 2 + 2 + 16 + 16 + 2
