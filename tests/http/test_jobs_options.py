"""What the words behind `job` and the section `Jobs` do: priority, time limit, delays, queues, retention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rowcall.service.installation.script import install_sql
from tests.harness.database import Database
from tests.harness.launcher import service_environment
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table work (id int generated always as identity, what text);
create function note(_what text) returns void language sql as $$ insert into work (what) values (_what) $$;
comment on function note(text) is 'HTTP POST /note
job';
create function urgent(_what text) returns void language sql as $$ insert into work (what) values (_what) $$;
comment on function urgent(text) is 'HTTP POST /urgent
job priority 5';
create function letter(_what text) returns void language sql as $$ insert into work (what) values (_what) $$;
comment on function letter(text) is 'HTTP POST /letter
job queue mail';
create function endless() returns void language sql as 'select pg_sleep(60)';
comment on function endless() is 'HTTP POST /endless
job retries 0 timeout 300ms';
create function at(_at timestamp) returns void language sql as $$ insert into work (what) values (_at::text) $$;
comment on function at(timestamp) is 'HTTP POST /at
job';
create function broken() returns int language sql as 'select 1 / (random() * 0)::int';
comment on function broken() is 'HTTP POST /broken
job retries 3 backoff 100s';
"""
SETTINGS = {"Jobs:Enabled": "true", "Service:RequiresAuthorization": "false"}

Start = Callable[..., Service]


@pytest.fixture
def start(own_database: Database, serve_once: Serve) -> Start:
    own_database.execute(install_sql())
    own_database.execute(SQL)
    return lambda **more: serve_once(own_database, settings={**SETTINGS, **more})


def enqueue(service: Service, path: str, **body: Any) -> str:
    response = service.post(path, json=body)
    assert response.status_code == 202, response.text
    location: str = response.headers["location"]
    return location


def ended(service: Service, location: str) -> dict[str, Any]:
    def members() -> dict[str, Any] | None:
        found: dict[str, Any] = service.get(location).json()
        return found if found["state"] in ("done", "failed", "cancelled") else None

    result = wait_until(members, "the job ends", 30)
    assert result is not None
    return result


def test_jobs_with_a_higher_priority_run_first(start: Start, own_database: Database) -> None:
    accepting = start(**{"Jobs:Concurrency": "0"})
    for n in range(3):
        enqueue(accepting, "/note", what=f"usual {n}")
    for n in range(2):
        enqueue(accepting, "/urgent", what=f"urgent {n}")
    own_database.execute("select rowcall.enqueue('POST /note', '{\"what\": \"first\"}', _priority => 9)")
    start(**{"Jobs:Concurrency": "1"})
    wait_until(lambda: own_database.value("select count(*) from work") == 6, "all jobs have run", 30)
    ran = [what for (what,) in own_database.fetch("select what from work order by id")]
    assert ran == ["first", "urgent 0", "urgent 1", "usual 0", "usual 1", "usual 2"]


@pytest.mark.slow
def test_a_job_that_one_host_accepts_runs_on_another(start: Start, own_database: Database) -> None:
    accepting, mailing = start(**{"Jobs:Concurrency": "0"}), start(**{"Jobs:Queues:0": "mail"})
    other = enqueue(mailing, "/note", what="x")
    letter = enqueue(accepting, "/letter", what="y")
    for service in (accepting, mailing):
        assert ended(service, letter)["state"] == "done"
    assert accepting.get(other).json()["state"] == "waiting"
    assert own_database.fetch("select what from work") == [("y",)]
    start()
    assert ended(accepting, other)["state"] == "done"


@pytest.mark.slow
def test_timestamps_enqueued_in_sql_are_parsed_like_in_requests(
    start: Start, own_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**service_environment(), "TZ": "Asia/Kolkata"}
    monkeypatch.setattr("tests.harness.service.service_environment", lambda: environment)
    monkeypatch.setattr("tests.harness.service.launcher", lambda: None)
    service = start(**{"Service:JsonTimestampsAreUtc": "false"})
    ended(service, enqueue(service, "/at", at="2026-03-01T10:00:00Z"))
    own_database.execute("""select rowcall.enqueue('POST /at', '{"at": "2026-03-01T10:00:00Z"}')""")
    wait_until(lambda: own_database.value("select count(*) from work") == 2, "both jobs have run", 30)
    assert own_database.fetch("select what from work") == [("2026-03-01 15:30:00",)] * 2


def test_an_attempt_has_a_time_limit(start: Start) -> None:
    service = start()
    job = ended(service, enqueue(service, "/endless"))
    assert (job["state"], job["attempts"]) == ("failed", 1)
    assert job["error"] == "Cancelled: 57014 (the time limit of an attempt is 0.3 s)"


@pytest.mark.slow
def test_delays_between_attempts_grow_with_jitter(start: Start, own_database: Database) -> None:
    service = start(**{"Jobs:LongestPause": "250s"})
    places = [enqueue(service, "/broken") for _ in range(8)]
    delays = "select extract(epoch from run_at - clock_timestamp())::float from rowcall.job where state = 'waiting'"
    for attempt, expected in ((1, 100), (2, 200), (3, 250)):
        failed = (
            f"select count(*) from rowcall.job where state = 'waiting' and attempts = {attempt} and error is not null"
        )

        def all_failed(query: str = failed) -> bool:
            return bool(own_database.value(query) == 8)

        wait_until(all_failed, f"attempt {attempt} has failed", 30)
        found = [delay for (delay,) in own_database.fetch(delays)]
        # A busy machine may look late.
        assert all(0.75 * expected - 60 < delay < 1.25 * expected for delay in found), found
        assert max(found) - min(found) > 1
        own_database.execute("update rowcall.job set run_at = now(); notify rowcall_jobs, 'later'")
    for place in places:
        job = ended(service, place)
        assert (job["state"], job["attempts"], "division by zero" in job["error"]) == ("failed", 4, True)


@pytest.mark.slow
def test_finished_jobs_are_removed(start: Start, own_database: Database) -> None:
    service = start(**{"Jobs:Retention": "1 hour"})
    places = [enqueue(service, "/note", what=str(n)) for n in range(2)]
    for place in places:
        assert ended(service, place)["state"] == "done"
    number = places[0].rpartition("/")[2]
    own_database.execute(f"update rowcall.job set finished = now() - interval '61 minutes' where id = '{number}'")
    wait_until(lambda: service.get(places[0]).status_code == 404, "the older job is removed", 30)
    assert service.get(places[1]).status_code == 200
    own_database.execute(
        "insert into rowcall.job (endpoint, state, finished)"
        " select 'POST /note', 'done', now() - interval '2 hours' from generate_series(1, 25000)"
    )
    wait_until(lambda: own_database.value("select count(*) from rowcall.job") == 1, "all old jobs are removed", 40)
