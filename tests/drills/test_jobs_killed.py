"""Two hosts whose workers are killed every 500 ms run every job once."""

from __future__ import annotations

import os
import signal
import time
from itertools import cycle

import psutil

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SECONDS = float(os.environ.get("ROWCALL_DRILL_SECONDS") or 15)
"""Length of the drill. In 600 seconds there are 20,000 jobs."""
INTERVAL = 0.5
JOBS_PER_KILL = 17
SQL = """
create table work (n int);
create function count_up(_n int) returns void language plpgsql as $$
begin insert into work values (_n); perform pg_sleep(0.01); end $$;
comment on function count_up(int) is 'HTTP POST /count-up
job retries 0';
"""
SETTINGS = {"Jobs:Enabled": "true", "Service:RequiresAuthorization": "false"}
ENQUEUE = "select rowcall.enqueue('POST /count-up', jsonb_build_object('n', n)) from generate_series({}, {}) n"


def test_killed_workers_lose_no_job_and_repeat_no_committed_work(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute(SQL)
    hosts = cycle([serve_once(own_database, settings=SETTINGS, workers=2) for _ in range(2)])
    end = time.monotonic() + SECONDS
    due, number = time.monotonic(), 0
    while time.monotonic() < end:
        own_database.execute(ENQUEUE.format(number + 1, number + JOBS_PER_KILL))
        number += JOBS_PER_KILL
        for pid in next(hosts).pids()[:1]:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGKILL)
        due += INTERVAL
        # The pause between kills is the fault itself, and nothing is expected after it.
        time.sleep(max(0.0, due - time.monotonic()))
    left = "select count(*) from rowcall.job where state in ('waiting', 'running')"
    wait_until(lambda: own_database.value(left) == 0, "all jobs have ended", 60 + SECONDS)
    assert own_database.fetch("select state, error from rowcall.job where state <> 'done'") == []
    assert own_database.fetch("select count(*), count(distinct n) from work") == [(number, number)]
    interrupted = own_database.fetch("select count(*), max(interruptions) from rowcall.job where interruptions > 0")
    print(f"{number} jobs; interrupted ones, most interruptions of one: {interrupted[0]}")
