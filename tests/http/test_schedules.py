"""Schedules: one job for each time, over all workers and hosts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from rowcall.core.endpoint.capabilities import Schedule
from rowcall.service.installation.script import install_sql
from rowcall.service.jobs.schedules import Schedules
from tests.harness.clock import WORKS, WallClock
from tests.harness.collector import collect_over_http
from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table ticks (name text, at timestamptz default clock_timestamp());
create function tick() returns void language sql as $$ insert into ticks values ('tick') $$;
comment on function tick() is 'schedule "* * * * * *"';
create function slow_tick() returns void language sql as $$ insert into ticks values ('slow'); select pg_sleep(2.5) $$;
comment on function slow_tick() is 'schedule "* * * * * *"';
create function yearly() returns void language sql as $$ insert into ticks values ('yearly') $$;
comment on function yearly() is 'Closes the year.
schedule @yearly timezone Europe/Berlin if missed run overlap run';
create function also(_n int default 7) returns int language sql as
$$ insert into ticks values ('also ' || _n); select _n $$;
comment on function also(int) is 'HTTP POST /also
schedule 0 3 * * 1-5';
create function needs(_n int) returns int language sql as 'select 1';
comment on function needs(int) is 'HTTP POST /needs
schedule @daily';
create function five() returns int language sql as 'select 1';
comment on function five() is 'HTTP POST /five
schedule 61 * * * *';
create function zone() returns int language sql as 'select 1';
comment on function zone() is 'HTTP POST /zone
schedule @daily timezone Europe/Berlim';
create function words() returns int language sql as 'select 1';
comment on function words() is 'HTTP POST /words
schedule @daily if missed panic';
create function as_caller() returns int language sql as 'select 1';
comment on function as_caller() is 'HTTP POST /as-caller
role_from_claim
schedule @daily';
create table things (id int primary key);
comment on table things is 'HTTP
schedule @daily';
"""
OVERLOADS = """
create function totals() returns void language sql as $$ insert into ticks values ('totals') $$;
comment on function totals() is 'HTTP POST /totals
schedule "* * * * * *"';
create function totals_since(_days int default 30) returns void language sql as
$$ insert into ticks values ('totals since ' || _days) $$;
comment on function totals_since(int) is 'HTTP POST /totals
schedule "* * * * * *"';
"""
"""Endpoints with the same method and path."""
DUE_LOG = """
create table due_log (due timestamptz);
create function log_due() returns trigger language plpgsql as
$$ begin insert into public.due_log values (new.due); return null; end $$;
create trigger log_due after update of job on rowcall.schedule for each row execute function log_due();
"""
"""Records the times for which jobs are enqueued."""
SETTINGS = {
    "Jobs:Enabled": "true",
    "Service:CrudSource:Enabled": "true",
    "Service:RequiresAuthorization": "false",
}


@pytest.fixture(scope="module")
def hosts(database: Database, serve: Serve) -> list[Service]:
    database.execute(install_sql())
    database.execute(SQL + OVERLOADS)
    return [serve(database, settings=SETTINGS, workers=2) for _ in range(2)]


def count(database: Database, name: str) -> int:
    result: int = database.value("select count(*) from ticks where name = %s", name)
    return result


@pytest.mark.slow
def test_one_job_for_each_time_over_two_hosts(hosts: list[Service], database: Database) -> None:
    wait_until(lambda: count(database, "tick") >= 4, "the schedule has been due four times", 20)
    jobs = "select count(*) from rowcall.job where endpoint = 'POST /api/tick'"
    seconds = "select extract(epoch from max(at) - min(at)) from ticks where name = 'tick'"
    assert database.value(jobs) <= float(database.value(seconds)) + 3


@pytest.mark.slow
def test_scheduled_runs_are_recorded_in_the_audit_trail_with_separate_traces(
    own_database: Database, serve_once: Serve
) -> None:
    own_database.execute(install_sql() + SQL)
    own_database.execute(
        "create table call (entry jsonb); create procedure audit_trail(_calls json) language sql "
        "begin atomic insert into call select c::jsonb from json_array_elements(_calls) c; end"
    )
    with collect_over_http() as collector:
        observed = {
            "Service:AuditTrail:Enabled": "true",
            "Service:AuditTrail:Interval": "100 milliseconds",
            "Tracing:Enabled": "true",
            "Tracing:SampleRatio": "1",
            "Tracing:Interval": "50ms",
            "Tracing:Endpoint": collector.url,
        }
        serve_once(own_database, settings=SETTINGS | observed, workers=2)

        def runs() -> list[Span]:
            return [span for span in collector.spans if span.name == "POST /api/tick"]

        spans = wait_until(lambda: len(runs()) >= 2 and runs(), "two runs have spans", 30)
        assert {(span.kind, span.parent_span_id) for span in spans} == {(Span.SPAN_KIND_CONSUMER, b"")}
        assert len({span.trace_id for span in spans}) == len(spans)
    entries = "select count(*) from call where entry ->> 'endpoint' = 'POST /api/tick'"
    wait_until(lambda: own_database.value(entries) >= 2, "two runs are in the audit trail", 20)
    assert own_database.fetch(
        "select distinct entry ->> 'status', entry ->> 'userId', job.endpoint from call "
        "left join rowcall.job on job.id::text = entry ->> 'job' where entry ->> 'endpoint' = 'POST /api/tick'"
    ) == [("204", None, "POST /api/tick")]


@pytest.mark.slow
def test_without_overlap_a_job_waits_for_the_previous_one(hosts: list[Service], database: Database) -> None:
    wait_until(lambda: count(database, "slow") >= 2, "the slow routine has run twice", 20)
    gap = database.value(
        "select min(gap) from (select at - lag(at) over (order by at) as gap from ticks where name = 'slow') g"
    )
    assert gap >= timedelta(seconds=2)


def test_schedules_of_overloads_all_run(hosts: list[Service], database: Database) -> None:
    names = ["totals", "totals since 30"]
    wait_until(lambda: all(count(database, name) for name in names), "each schedule has run", 20)
    assert database.fetch("select endpoint from rowcall.schedule where endpoint like '%/totals%' order by 1") == [
        ("POST /totals public.totals()",), ("POST /totals public.totals_since(integer)",)
    ]  # fmt: skip


def test_a_scheduled_routine_has_no_path(hosts: list[Service]) -> None:
    assert hosts[0].post("/api/tick").status_code == 404
    assert hosts[0].post("/also", json={"n": 1}).json() == 1


def test_mistakes_are_named(hosts: list[Service]) -> None:
    log = hosts[0].log
    assert "POST /needs: schedule has no effect: nothing gives it n" in log
    assert "POST /as-caller: schedule has no effect: it has no claims that name a database role" in log
    assert "'61 * * * *' is no cron expression: Bad minute" in log
    assert "there is no time zone 'Europe/Berlim'" in log
    assert "'if missed panic' is none of timezone <zone>, if missed run|skip, overlap run|skip" in log
    assert "things: schedule has no effect: it is for functions, procedures and SQL files" in log
    assert hosts[0].post("/zone").status_code == 200


@pytest.mark.slow
def test_a_missed_time_is_run_once_after_the_start(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql())
    own_database.execute(SQL)
    for name in ("tick", "slow_tick"):
        own_database.execute(f"drop function {name}")
    first = serve_once(own_database, settings=SETTINGS, workers=2)
    known = "select count(*) from rowcall.schedule"
    wait_until(lambda: own_database.value(known) == 2, "the schedules are known")
    first.stop()
    assert own_database.value("select count(*) from rowcall.job") == 0
    own_database.execute("update rowcall.schedule set due = due - interval '1 year'")
    services = [serve_once(own_database, settings=SETTINGS, workers=2) for _ in range(2)]
    wait_until(lambda: count(own_database, "yearly") == 1, "the missed job has run")
    assert all(service.post("/also").status_code == 200 for service in services)
    assert own_database.value("select count(*) from rowcall.job") == 1


@pytest.mark.slow
def test_jobs_without_the_schema_rowcall(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, settings=SETTINGS)
    assert "POST /also: schedule needs the schema rowcall, which is not in the database" in service.log
    own_database.execute(install_sql() + "notify rowcall, 'reload'")
    wait_until(lambda: count(own_database, "tick") >= 1, "the schedule is due", 30)


@pytest.mark.slow
def test_killed_workers_enqueue_each_time_once(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(install_sql() + DUE_LOG + SQL.partition("create function slow_tick")[0])
    own_database.execute("comment on function tick() is 'schedule \"* * * * * *\" overlap run'")
    services = [serve_once(own_database, settings=SETTINGS, workers=2) for _ in range(2)]
    for _ in range(10):
        time.sleep(0.5)
        for service in services:
            for pid in service.pids()[:1]:
                os.kill(pid, signal.SIGKILL)
    killed = count(own_database, "tick")
    wait_until(lambda: count(own_database, "tick") >= killed + 3, "the schedule goes on", 60)
    for service in services:
        service.stop()
    times, different = own_database.fetch("select count(*), count(distinct due) from due_log")[0]
    assert times == different
    jobs, done = own_database.fetch("select count(*), count(*) filter (where state = 'done') from rowcall.job")[0]
    assert jobs == times
    assert count(own_database, "tick") == done


@pytest.mark.slow
@pytest.mark.skipif(not WORKS, reason="the clock of a process can be moved on Linux only")
@pytest.mark.parametrize(
    ("begin", "expected"),
    [
        # Daylight saving time ends: 02:30 is there at 00:30 and at 01:30 UTC.
        ("2026-10-25T00:29:50+00:00", {"POST /api/once", "POST /api/twice"}),
        ("2026-10-25T01:29:50+00:00", {"POST /api/twice"}),
        # It begins: 02:30 does not exist, and is made up for at 03:00, which is 01:00 UTC.
        ("2026-03-29T00:59:50+00:00", {"POST /api/once"}),
    ],
)
def test_hosts_whose_clocks_change_to_and_from_daylight_saving_time(
    own_database: Database,
    serve_once: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    begin: str,
    expected: set[str],
) -> None:
    own_database.execute(install_sql() + DUE_LOG)
    for name, expression in (("once", "30 2 * * *"), ("twice", "*/30 2 * * *")):
        own_database.execute(
            f"create function {name}() returns void language sql as '';"
            f"comment on function {name}() is 'schedule \"{expression}\" timezone Europe/Berlin'"
        )
    clock = WallClock(tmp_path)
    for name, value in clock.environment.items():
        monkeypatch.setenv(name, value)
    ahead = int(datetime.fromisoformat(begin).timestamp() - time.time())
    clock.move(ahead - 3000)
    for _ in range(2):
        serve_once(own_database, settings=SETTINGS, workers=2)
    clock.move(ahead)
    found = "select endpoint from rowcall.job"
    wait_until(lambda: {name for (name,) in own_database.fetch(found)} == expected, "the jobs are enqueued", 60)
    times, different = own_database.fetch("select count(*), count(distinct due) from due_log")[0]
    assert (times, different) == (len(expected), 1)


@pytest.mark.slow
def test_schedules_are_listed(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(SQL)
    settings = [f"--ConnectionStrings:Default={own_database.conninfo}", "--Jobs:Enabled=true"]
    done = rowcall(tmp_path, "--schedules", *settings)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []
    assert (
        "yearly: schedule needs the schema rowcall, which is not in the database: run rowcall --install" in done.stderr
    )
    assert rowcall(tmp_path, "--install", *settings).returncode == 0
    own_database.execute("select rowcall.enqueue_due('POST /api/yearly', '2025-12-31 23:00Z', 'default', 0, false)")
    done = rowcall(tmp_path, "--schedules", *settings)
    listed: dict[str, dict[str, Any]] = {entry["endpoint"]: entry for entry in json.loads(done.stdout)}
    year = datetime.now(UTC).year
    assert listed["POST /api/yearly"] == {
        "endpoint": "POST /api/yearly",
        "schedule": "@yearly",
        "timezone": "Europe/Berlin",
        "ifMissed": "run",
        "overlap": "run",
        "next": [f"{year + n}-01-01T00:00:00+01:00" for n in (1, 2, 3)],
        "last": "2026-01-01T00:00:00+01:00",
        "lastState": "waiting",
    }
    assert (listed["POST /also"]["last"], listed["POST /also"]["lastState"]) == (None, None)


@pytest.mark.slow
def test_crontab_expressions_are_supported(own_database: Database, tmp_path: Path) -> None:
    """Expressions with the same times have the same next ones, and those that crontab(5) does not know are named."""
    groups = (
        ("0 0 * * 0", "0 0 * * 7", "0 0 * * sun", "0 0 * * SUN", "@weekly", "@Weekly", "00 00 * * 7"),
        ("0 0 * * *", "@daily", "@midnight", "0 0 * * 0-7", "0 0 1-31 * *", "0 0 * 1-12 *"),
        ("0 9-17/4 * * 1-5", "0 9,13,17 * * mon-fri", "0 9,13,17 * * Mon,Tue,Wed,Thu,Fri"),
        ("0 0 1 1 *", "0 0 1 jan *", "@yearly", "@annually"),
        ("*/20 * * * *", "0,20,40 * * * *", "0-59/20 * * * *"),
        ("0 0 1 * *", "@monthly"),
        # Day of month and day of week: one of them suffices.
        ("0 0 1 * 7", "0 0 1 * sun"),
    )
    wrong = {
        "@reboot": "'@reboot' is none of @hourly, @daily",
        "60 * * * *": "Bad minute",
        "0 24 * * *": "Bad hour",
        "0 0 31 2 *": "Bad day-of-month",
        "* * * *": "is no cron expression",
        "*/0 * * * *": "Bad minute",
    }
    names: dict[str, int] = {}
    for text in (*(item for group in groups for item in group), *wrong):
        name = f"at_{len(names)}"
        names[text] = len(names)
        own_database.execute(
            f"create function {name}() returns void language sql as '';"
            f"comment on function {name}() is 'schedule \"{text}\" timezone Europe/Berlin'"
        )
    settings = [f"--ConnectionStrings:Default={own_database.conninfo}", "--Jobs:Enabled=true"]
    assert rowcall(tmp_path, "--install", *settings).returncode == 0
    done = rowcall(tmp_path, "--schedules", *settings)
    times = {entry["endpoint"]: entry["next"] for entry in json.loads(done.stdout)}
    for group in groups:
        found = [times[f"POST /api/at-{names[text]}"] for text in group]
        assert found == [found[0]] * len(group), group
    for text, reason in wrong.items():
        assert f"POST /api/at-{names[text]}" not in times
        assert any(text in line and reason in line for line in done.stderr.splitlines()), (text, done.stderr)


def test_schedules_are_left_out_if_jobs_are_disabled(
    hosts: list[Service], database: Database, serve_once: Serve
) -> None:
    service = serve_once(database, settings={"Service:RequiresAuthorization": "false"})
    assert "POST /also: schedule is switched off (Jobs:Enabled); the endpoint is left out" in service.log
    assert service.post("/also").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "day", "expected"),
    [
        # Daylight saving time begins at 01:00 UTC on 29 March 2026, and ends at 01:00 UTC on 25 October.
        ("30 2 * * *", "2026-03-29", ["01:00"]),
        ("30 2 * * *", "2026-10-25", ["00:30"]),
        ("*/30 2 * * *", "2026-03-29", []),
        ("30 2 * * *", "2026-03-30", ["00:30"]),
        ("30 2 * * *", "2026-10-26", ["01:30"]),
        ("*/30 2 * * *", "2026-10-25", ["00:00", "00:30", "01:00", "01:30"]),
        ("0 * * * *", "2026-03-29", [f"{hour:02}:00" for hour in range(24)]),
    ],
)
def test_jobs_are_scheduled_across_daylight_saving_time_changes(
    own_database: Database, expression: str, day: str, expected: list[str]
) -> None:
    """The clocks of two hosts, one a little slow, run over the day of the change."""
    own_database.execute(install_sql())
    asyncio.run(_run_over(own_database, Schedule(expression, "Europe/Berlin", overlap=True), day))
    at = "to_char(due at time zone 'UTC', 'HH24:MI')"
    found = own_database.fetch(f"select {at} from due_log order by due")
    assert [row[0] for row in found] == expected


async def _run_over(database: Database, schedule: Schedule, day: str) -> None:
    database.execute(DUE_LOG)
    start = datetime.fromisoformat(f"{day}T00:00:00+00:00")
    now = start - timedelta(hours=1)

    def clock(lag: float) -> Callable[[], datetime]:
        return lambda: now - timedelta(seconds=lag)

    async with await psycopg.AsyncConnection.connect(database.conninfo, autocommit=True) as connection:

        async def query(sql: str, *values: object) -> list[tuple[Any, ...]]:
            return await (await connection.execute(sql.encode(), values)).fetchall()

        endpoint: Any = SimpleNamespace(name="POST /e", options=SimpleNamespace(schedule=schedule, job=None))
        schedules = [Schedules({"POST /e": endpoint}, clock(lag)) for lag in (0, 7)]
        while now < start + timedelta(days=1):
            for each in schedules:
                await each.enqueue_due(query)
            now += timedelta(seconds=43)
    database.execute(f"delete from due_log where due < '{start}'")
