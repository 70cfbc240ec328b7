"""A read whose time limit passes while it is queued behind another execution on a shared connection runs again alone
(execution on pipelined connections, `QueuedTooLongError`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table locked as select 1 as n;
create table free as select 2 as n;
create function read_locked() returns int language sql stable as 'select n from locked';
create function read_free() returns int language sql stable as 'select n from free';
comment on function read_locked() is 'HTTP GET';
comment on function read_free() is 'HTTP GET
command_timeout 50 milliseconds';
"""
SETTINGS = {
    "ConnectionSettings:Pool:SharedConnections": "1",
    # On a busy machine calls are slow now and then; and executions may queue behind one that has run for long.
    "ConnectionSettings:Pool:SlowThreshold": "5 s",
}


@pytest.mark.slow
def test_read_that_timed_out_while_queued_runs_again_alone(database: Database, serve: Serve) -> None:
    service = serve(database, SQL, SETTINGS)

    def share(name: str, text: str) -> bool:
        service.get(f"/api/{name.replace('_', '-')}")
        return bool(database.backends(f"query like 'with rowcall_guard%\"{name}\"(%'"))

    wait_until(lambda: share("read_free", "2"), "the short read shares connections")
    wait_until(lambda: share("read_locked", "1"), "the read that will wait shares connections")
    with psycopg.connect(database.conninfo) as blocker, ThreadPoolExecutor(1) as threads:
        blocker.execute("lock table locked in access exclusive mode")
        head = threads.submit(service.get, "/api/read-locked")
        wait_until(lambda: database.backends("wait_event_type = 'Lock'"), "the first read waits for the lock")
        try:
            queued = answer(service.get("/api/read-free"))
        finally:
            blocker.rollback()
        assert queued == (200, TEXT, "2")
        assert answer(head.result(30)) == (200, TEXT, "1")
