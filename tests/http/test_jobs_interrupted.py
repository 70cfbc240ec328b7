"""Attempts of jobs that end for a reason of the service: they do not count, within a bound."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.events import EventStream
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table work (what text);
create function slow(_seconds float) returns int language plpgsql as $$
begin
  raise info 'begun';
  insert into work values ('slow');
  perform pg_sleep(_seconds);
  return 1;
end $$;
comment on function slow(float) is 'HTTP POST /slow
job retries 0 timeout 60s';
"""
SETTINGS = {"Jobs:Enabled": "true", "Service:RequiresAuthorization": "false"}
JOB = "select state, attempts, interruptions from rowcall.job"
BACKEND = "select pid from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"

Start = Callable[..., Service]


@pytest.fixture
def start(own_database: Database, serve_once: Serve) -> Start:
    own_database.execute(install_sql())
    own_database.execute(SQL)
    return lambda workers=1, **more: serve_once(own_database, settings={**SETTINGS, **more}, workers=workers)


def enqueue(database: Database, seconds: float, count: int = 1) -> None:
    arguments = f"jsonb_build_object('seconds', {seconds}::float)"
    database.execute(f"select rowcall.enqueue('POST /slow', {arguments}) from generate_series(1, {count})")


def wait_until_running(database: Database) -> int:
    """Wait until the routine of a job runs, and return the process id of its backend."""
    found = wait_until(lambda: database.fetch(BACKEND), "the routine runs", 30)
    assert found
    pid: int = found[0][0]
    return pid


def wait_until_ended(database: Database) -> list[tuple[Any, ...]]:
    left = "select count(*) from rowcall.job where state in ('waiting', 'running')"
    wait_until(lambda: database.value(left) == 0, "all jobs have ended", 60)
    return database.fetch(JOB)


@pytest.mark.slow
def test_job_is_repeated_after_a_lost_connection(start: Start, own_database: Database) -> None:
    start()
    enqueue(own_database, 2)
    own_database.execute(f"select pg_terminate_backend({wait_until_running(own_database)})")
    assert wait_until_ended(own_database) == [("done", 2, 1)]
    assert own_database.value("select count(*) from work") == 1


@pytest.mark.slow
def test_job_is_repeated_after_a_killed_worker(start: Start, own_database: Database) -> None:
    service = start(workers=1)
    enqueue(own_database, 3)
    wait_until_running(own_database)
    os.kill(service.pids()[0], signal.SIGKILL)
    assert wait_until_ended(own_database) == [("done", 2, 1)]
    assert own_database.value("select count(*) from work") == 1


@pytest.mark.slow
def test_job_of_a_killed_worker_can_be_cancelled(start: Start, own_database: Database) -> None:
    service = start(workers=1)
    job = service.post("/slow", json={"seconds": 3}).headers["location"]
    wait_until_running(own_database)
    os.kill(service.pids()[0], signal.SIGKILL)
    lost = "select not exists (select from pg_stat_activity where wait_event = 'PgSleep')"
    wait_until(lambda: own_database.value(lost), "the transaction of the job has ended", 30)
    response = service.request_once("DELETE", job)
    assert (response.status_code, response.json()["state"]) == (202, "running")
    assert wait_until_ended(own_database) == [("cancelled", 1, 1)]
    assert own_database.value("select count(*) from work") == 0
    assert own_database.value("select rowcall.retry_job(%s::uuid)", response.json()["id"]) == "waiting"
    assert wait_until_ended(own_database) == [("done", 1, 0)]


@pytest.mark.slow
def test_cancellation_without_a_notification_takes_effect(start: Start, own_database: Database) -> None:
    """As after a loss of the connection for notifications."""
    start()
    enqueue(own_database, 60)
    wait_until_running(own_database)
    own_database.execute("insert into rowcall.job_cancellation (job) select id from rowcall.job")
    assert wait_until_ended(own_database) == [("cancelled", 1, 0)]


@pytest.mark.slow
def test_job_is_repeated_after_a_killed_host(start: Start, own_database: Database) -> None:
    """Its supervisor is killed, too, so no process of the host releases the job."""
    lost = start(workers=2)
    enqueue(own_database, 3)
    wait_until_running(own_database)
    for process in lost.processes():
        process.kill()
    restarted = start(workers=2)
    assert wait_until_ended(own_database) == [("done", 2, 1)]
    assert own_database.value("select count(*) from work") == 1
    assert restarted.running


@pytest.mark.slow
def test_job_is_repeated_if_the_pool_has_no_connection(start: Start, own_database: Database) -> None:
    start(**{"ConnectionSettings:Pool:ExclusiveConnections": "1", "ConnectionSettings:Pool:QueueTimeout": "100ms"})
    enqueue(own_database, 0.4, 5)
    states = wait_until_ended(own_database)
    assert [state for state, _, _ in states] == ["done"] * 5
    assert any(interruptions for _, _, interruptions in states)
    assert all(attempts == interruptions + 1 for _, attempts, interruptions in states)


@pytest.mark.slow
def test_stopping_worker_waits_for_its_jobs(start: Start, own_database: Database) -> None:
    service = start(**{"Jobs:Concurrency": "1"})
    enqueue(own_database, 1, 2)
    wait_until_running(own_database)
    assert service.stop() == 0
    # The one that ran has ended, and the other one was not begun, unless the first had ended before the signal.
    states = own_database.fetch(JOB)
    assert ("done", 1, 0) in states
    assert set(states) <= {("done", 1, 0), ("waiting", 0, 0)}
    assert "has ended and is restarted" not in service.log


@pytest.mark.slow
def test_stopping_worker_releases_jobs_beyond_the_timeout(start: Start, own_database: Database) -> None:
    service = start(**{"Jobs:ShutdownTimeout": "100ms"})
    enqueue(own_database, 60)
    wait_until_running(own_database)
    assert service.stop() == 0
    # It is given back at once, without the search for jobs of lost workers.
    assert own_database.fetch(JOB) == [("waiting", 1, 1)]
    assert own_database.value("select error from rowcall.job") == "its worker has stopped"
    own_database.execute("update rowcall.job set arguments = '{\"seconds\": 0}'")
    start()
    assert wait_until_ended(own_database) == [("done", 2, 1)]


@pytest.mark.slow
def test_stopping_worker_releases_jobs_being_acquired(start: Start, own_database: Database) -> None:
    # A worker that takes a job waits for the lock of the test in the middle of that.
    own_database.execute(
        "create function wait() returns trigger language plpgsql as $$"
        "begin perform pg_advisory_xact_lock(7); return new; end $$;"
        "create trigger wait before update on rowcall.job for each row when (new.state = 'running')"
        " execute function wait()"
    )
    own_database.execute(
        "create function news() returns void language sql as '';"
        "comment on function news() is 'HTTP GET /news\nsse_listen x'"
    )
    service = start()
    with EventStream(service, "/news") as stream, own_database.locked(7):
        enqueue(own_database, 0)
        wait_until(own_database.waiting, "the worker is taking the job", 30)
        service.signal(signal.SIGTERM)
        # Streams end after the worker has stopped taking jobs.
        stream.wait_for_end(30)
    assert service.process.wait(30) == 0
    assert own_database.fetch(JOB) == [("waiting", 1, 1)], service.log
    assert own_database.value("select error from rowcall.job") == "its worker has stopped"
    start()
    assert wait_until_ended(own_database) == [("done", 2, 1)]


@pytest.mark.slow
def test_reload_does_not_affect_a_running_job(start: Start, own_database: Database) -> None:
    service = start()
    enqueue(own_database, 3)
    wait_until_running(own_database)
    own_database.execute(
        "create function other() returns int language sql as 'select 1';"
        "comment on function other() is 'HTTP GET /other';"
        "alter function slow(float) rename to slower; comment on function slower(float) is 'HTTP POST /slower\njob';"
        "notify rowcall, 'reload'"
    )
    wait_until(lambda: service.get("/other").status_code == 200, "the change is served", 30)
    assert wait_until_ended(own_database) == [("done", 1, 0)]


@pytest.mark.slow
def test_job_runs_after_its_routine_is_replaced(start: Start, own_database: Database) -> None:
    """Its statement is guarded after some runs, and refused by PostgreSQL when the definition has changed."""
    note = "create or replace function note() returns void language sql as $$ insert into work values ('{}') $$"
    own_database.execute(note.format("first"))
    own_database.execute("comment on function note() is 'HTTP POST /note\njob retries 0'")
    start(**{"Jobs:Concurrency": "2"})
    many = "select rowcall.enqueue('POST /note') from generate_series(1, 60)"
    own_database.execute(many)
    assert {state for state, _, _ in wait_until_ended(own_database)} == {"done"}
    own_database.execute(f"begin; {note.format('second')}; {many}; commit")
    assert {state for state, _, _ in wait_until_ended(own_database)} == {"done"}
    assert own_database.fetch("select what, count(*) from work group by 1 order by 1") == [
        ("first", 60),
        ("second", 60),
    ]


@pytest.mark.slow
def test_number_of_interruptions_is_limited(start: Start, own_database: Database) -> None:
    start()
    own_database.execute(
        "begin; select rowcall.enqueue('POST /slow', '{\"seconds\": 60}');"
        "update rowcall.job set interruptions = 20, attempts = 20; commit"
    )
    own_database.execute(f"select pg_terminate_backend({wait_until_running(own_database)})")
    assert wait_until_ended(own_database) == [("failed", 22, 21)]
    assert "it was interrupted too often" in own_database.value("select error from rowcall.job")


@pytest.mark.slow
def test_job_that_waits_for_another_service_is_not_lost(start: Start, own_database: Database) -> None:
    """It does not lock its row before the routine runs."""
    upstream = Upstream()
    after = "select clock_timestamp() - started > '17 seconds' from rowcall.job"

    def answer_late(_request: Seen, _connection: socket.socket) -> bytes:
        wait_until(lambda: own_database.value(after), "a job of a lost worker would run again", 60)
        return answer("rendered", content_type="text/plain")

    upstream.on("/render", answer_late)
    own_database.execute(
        "create type rendering as (status_code int, body text);"
        f"comment on type rendering is 'POST {upstream.url}/render';"
        "create function render(_rendering rendering) returns text language sql as $$"
        " insert into work values ('render'); select (_rendering).body $$;"
        "comment on function render(rendering) is 'HTTP POST /renders\njob retries 0'"
    )
    try:
        service = start(workers=2, **{"Service:HttpClientOptions:Enabled": "true"})
        assert service.post("/renders").status_code == 202
        assert wait_until_ended(own_database) == [("done", 1, 0)]
        assert len(upstream.to("/render")) == 1
    finally:
        upstream.close()


def test_job_lock_waits_for_a_concurrent_row_lock(own_database: Database) -> None:
    """A worker that looks for waiting jobs may lock a job for a moment that was taken after its snapshot."""
    own_database.execute(install_sql())
    own_database.execute("select rowcall.enqueue('POST /x')")
    with (
        psycopg.connect(own_database.conninfo) as worker,
        psycopg.connect(own_database.conninfo) as other,
        ThreadPoolExecutor(1) as pool,
    ):
        taken = worker.execute("select id, attempts from rowcall.take_jobs(array['POST /x'], null, 1)").fetchone()
        worker.commit()
        other.execute("select from rowcall.job for update")
        held = pool.submit(lambda: worker.execute("select rowcall.lock_job(%s, %s)", taken).fetchone())
        waits = f"select wait_event_type = 'Lock' from pg_stat_activity where pid = {worker.info.backend_pid}"
        wait_until(lambda: own_database.value(waits), "the worker waits for the row")
        other.rollback()
        assert held.result() is not None
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            worker.execute("select rowcall.lock_job(%s, %s + 1)", taken)
