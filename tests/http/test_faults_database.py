"""All kinds of failures of PostgreSQL: each request gets exactly one response, and it is its own.

Each routine returns the number of its call, so that swapped and repeated responses are detected.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database, create_database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.load import Load, Outcome
from tests.harness.postgres import PostgresServer
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table written (id int);
create function echo(_id int) returns int language sql stable as 'select _id';
create function slow_echo(_id int) returns int language plpgsql stable as $$
begin perform pg_sleep(0.01); return _id; end $$;
create function write(_id int) returns int language sql volatile as 'insert into written values (_id) returning id';
create function rows_of(_id int) returns table(id int, n int) language sql stable
  as 'select _id, n from generate_series(1, 20) n';
comment on function echo(int) is 'HTTP';
comment on function slow_echo(int) is 'HTTP';
comment on function write(int) is 'HTTP';
comment on function rows_of(int) is 'HTTP';
"""

IMPATIENT = {"ConnectionSettings:Pool:QueueTimeout": "500ms"}
"""If no connection can be opened, a request waits this long before the 503 with Retry-After."""

MOST_CONNECTIONS = 2 + 2 + 16 + 16 + 2
"""Pipelined, generic-plan, volatile and dedicated connections of a worker, and those of the supervisor."""


def mixed(number: int) -> tuple[str, str, bytes]:
    """Reads, slow reads, sets and writes in turn."""
    match number % 4:
        case 0:
            return "GET", f"/api/echo?id={number}", b""
        case 1:
            return "GET", f"/api/slow-echo?id={number}", b""
        case 2:
            return "GET", f"/api/rows-of?id={number}", b""
        case _:
            return "POST", "/api/write", b'{"id":%d}' % number


def expected_body(number: int) -> bytes:
    if number % 4 != 2:
        return b"%d" % number
    return b"[" + b",".join(b'{"id":%d,"n":%d}' % (number, n) for n in range(1, 21)) + b"]"


def swapped_responses(outcomes: list[Outcome]) -> list[Outcome]:
    """Return the successes that contain the response of another request."""
    return [outcome for outcome in outcomes if outcome.status == 200 and outcome.body != expected_body(outcome.number)]


def unexpected_statuses(outcomes: list[Outcome], *expected: int) -> list[Outcome]:
    return [outcome for outcome in outcomes if outcome.status not in expected]


def check_writes(database: Database, outcomes: list[Outcome]) -> None:
    """Check that nothing ran twice, and that every success took effect (driver-14, driver-25)."""
    written = [row for (row,) in database.fetch("select id from written order by id")]
    assert len(written) == len(set(written)), "a write was repeated"
    reported = {outcome.number for outcome in outcomes if outcome.status == 200 and outcome.number % 4 == 3}
    assert reported <= set(written), "a success was reported that never happened"


@pytest.mark.parametrize("sharing", ["true", pytest.param("false", marks=pytest.mark.slow)])
def test_every_request_gets_a_response_if_backends_are_killed(
    own_database: Database, serve_once: Serve, sharing: str
) -> None:
    service = serve_once(own_database, SQL, {"ConnectionSettings:Pool:Sharing": sharing})
    with Load(service.port, mixed) as load:
        for _ in range(6):
            load.wait_for(150)
            own_database.terminate()
        load.wait_for(300)
    assert swapped_responses(load.outcomes) == []
    assert unexpected_statuses(load.outcomes, 200, 503) == []
    check_writes(own_database, load.outcomes)
    assert len(own_database.backends()) <= MOST_CONNECTIONS


@pytest.mark.slow
def test_read_only_requests_survive_a_killed_backend(own_database: Database, serve_once: Serve) -> None:
    """A call that only reads is repeated, so its client notices nothing (driver-25)."""
    service = serve_once(own_database, SQL)
    with Load(service.port, lambda number: ("GET", f"/api/echo?id={number}", b""), clients=8) as load:
        load.wait_for(300)
        own_database.terminate("query like '%echo%'")
        load.wait_for(300)
    assert unexpected_statuses(load.outcomes, 200) == []
    assert [outcome for outcome in load.outcomes if outcome.body != b"%d" % outcome.number] == []


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_service_recovers_after_a_database_restart_under_load(
    own_postgres: PostgresServer, serve_once: Serve, mode: str
) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, SQL, IMPATIENT)
    workers = service.pids()
    with Load(service.port, mixed) as load:
        load.wait_for(200)
        own_postgres.stop(mode)
        load.wait_for(50, status=503)
        own_postgres.start()
        load.wait_for(300, seconds=60)
    assert swapped_responses(load.outcomes) == []
    assert unexpected_statuses(load.outcomes, 200, 503) == []
    check_writes(database, load.outcomes)
    assert service.pids() == workers
    assert len(database.backends()) <= MOST_CONNECTIONS
    wait_until(lambda: not database.backends("state <> 'idle'"), "every session is idle again")


@pytest.mark.slow
def test_unreachable_database_gets_503_with_retry_after(own_postgres: PostgresServer, serve_once: Serve) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, SQL, IMPATIENT)
    assert answer(service.get("/api/echo?id=1")) == (200, TEXT, "1")
    own_postgres.stop()
    response = service.get("/api/echo?id=2")
    problem(response, 503)
    assert int(response.headers["retry-after"]) > 0
    own_postgres.start()
    wait_until(lambda: service.get("/api/echo?id=3").status_code == 200, "the service is back", 30)


@pytest.mark.slow
def test_stopped_service_leaves_no_database_session(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, workers=2)
    with Load(service.port, mixed) as load:
        load.wait_for(200)
    assert own_database.backends()
    assert service.stop() == 0
    wait_until(lambda: not own_database.backends(), "every session has ended")


STATEFUL = """
create function leave_setting() returns text language sql volatile as $$select set_config('app.left', 'here', false)$$;
create function leave_zone() returns text language plpgsql volatile
  as $$begin set timezone = 'Asia/Tokyo'; return 'left'; end$$;
create function leave_style() returns text language sql volatile as $$select set_config('datestyle', 'German', false)$$;
create function see_setting() returns text language sql volatile
  as $$select coalesce(nullif(current_setting('app.left', true), ''), 'nothing')$$;
create function see_moment() returns timestamptz language sql volatile as $$select timestamptz '2024-01-15 10:30Z'$$;
comment on function leave_setting() is 'HTTP GET';
comment on function leave_zone() is 'HTTP GET';
comment on function leave_style() is 'HTTP GET';
comment on function see_setting() is 'HTTP GET';
comment on function see_moment() is 'HTTP GET';
"""


@pytest.mark.slow
@pytest.mark.parametrize("changing_path", ["leave-setting", "leave-zone", "leave-style"])
def test_session_state_does_not_leak_to_the_next_caller(
    own_database: Database, serve_once: Serve, changing_path: str
) -> None:
    """One connection of each kind, so that the next caller uses the same one (driver-18 to driver-21)."""
    few = {"ConnectionSettings:Pool:SharedConnections": "1", "ConnectionSettings:Pool:ExclusiveConnections": "1"}
    service = serve_once(own_database, STATEFUL, few)
    for _ in range(30):
        assert service.get(f"/api/{changing_path}").status_code == 200
        assert answer(service.get("/api/see-setting"))[2] == "nothing"
        assert answer(service.get("/api/see-moment"))[2] == "2024-01-15 10:30:00+00"


CHANGING = """
create table shelf (id int);
insert into shelf values (1);
create function shelves() returns setof shelf language sql stable as 'select * from shelf';
create function version() returns int language sql stable as 'select 1';
comment on function shelves() is 'HTTP GET /shelves';
comment on function public.version() is 'HTTP GET /version';
"""


@pytest.mark.slow
def test_statements_are_prepared_again_after_ddl(own_database: Database, serve_once: Serve) -> None:
    """The driver handles 0A000 (`cached plan must not change result type`), and the endpoint is read again
    (test_faults_schema.py)."""
    service = serve_once(own_database, CHANGING)
    for _ in range(50):
        assert answer(service.get("/shelves"))[2] == '[{"id":1}]'
    own_database.execute("alter table shelf alter id type text using 'no. ' || id")
    wait_until(lambda: service.get("/shelves").status_code == 200, "the new type has been read", 20)
    for _ in range(50):
        assert answer(service.get("/shelves"))[2] == '[{"id":"no. 1"}]'


def test_replaced_function_is_called_at_once(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, CHANGING)
    for _ in range(50):
        assert answer(service.get("/version"))[2] == "1"
    own_database.execute("create or replace function public.version() returns int language sql stable as 'select 2'")
    assert answer(service.get("/version"))[2] == "2"
    own_database.execute("drop function public.version()")
    own_database.execute("create function public.version() returns int language sql stable as 'select 3'")
    assert answer(service.get("/version"))[2] == "3"


@pytest.mark.slow
def test_deallocated_statements_are_prepared_again(own_database: Database, serve_once: Serve) -> None:
    """26000: some routines and poolers deallocate statements of others."""
    sql = """
    create function forget_all() returns void language plpgsql volatile as $$begin execute 'deallocate all'; end$$;
    create function echo(_id int) returns int language sql stable as 'select _id';
    comment on function forget_all() is 'HTTP GET';
    comment on function echo(int) is 'HTTP';
    """
    few = {"ConnectionSettings:Pool:SharedConnections": "1", "ConnectionSettings:Pool:ExclusiveConnections": "1"}
    service = serve_once(own_database, sql, few)
    for number in range(20):
        assert answer(service.get(f"/api/echo?id={number}"))[2] == str(number)
        assert service.get("/api/forget-all").status_code == 204


ONE_CONNECTION = {
    "ConnectionSettings:Pool:SharedConnections": "1",
    "ConnectionSettings:Pool:ExclusiveConnections": "1",
    "CommandRetryOptions:Enabled": "false",
}


@pytest.mark.slow
def test_deallocation_in_a_file_does_not_affect_other_requests(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    files = {
        "forget.sql": "-- HTTP GET\ndeallocate all",
        "forget_between.sql": "-- HTTP GET\nselect 1 as a; deallocate all; select 2 as b",
        "forget_within.sql": "-- HTTP GET\nbegin; select 1 as a; deallocate all; select 2 as b; commit",
        "discard.sql": "-- HTTP GET\nselect 1 as a; discard all",
        "prepare.sql": "-- HTTP GET\nprepare mine as select 1",
        "prepare_here.sql": "-- HTTP GET\nprepare mine as select 1; execute mine; deallocate mine",
        "add.sql": "-- HTTP GET\nselect :n::int + 1",
    }
    settings = ONE_CONNECTION | file_settings(write_files(tmp_path, files))
    service = serve_once(own_database, settings=settings)
    for _ in range(3):
        for name in files:
            path = f"/api/{name.removesuffix('.sql').replace('_', '-')}"
            assert (name, service.get(path, params={"n": "1"} if name == "add.sql" else {}).is_success) == (name, True)
            assert answer(service.get("/api/add?n=4"))[2] == "[5]"


def test_statement_prepared_by_a_routine_does_not_break_its_next_call(
    own_database: Database, serve_once: Serve
) -> None:
    sql = """
    create function prepare() returns text language plpgsql volatile
      as $$begin execute 'prepare mine as select 1'; return 'done'; end$$;
    comment on function prepare() is 'HTTP GET';
    """
    service = serve_once(own_database, sql, ONE_CONNECTION)
    assert [answer(service.get("/api/prepare"))[2] for _ in range(4)] == ["done"] * 4


def test_lastval_does_not_leak_to_the_next_caller(own_database: Database, serve_once: Serve) -> None:
    sql = """
    create sequence numbers;
    create function draw() returns bigint language sql volatile as $$select nextval('numbers')$$;
    create function last_drawn() returns bigint language sql volatile as 'select lastval()';
    comment on function draw() is 'HTTP GET';
    comment on function last_drawn() is 'HTTP GET';
    """
    service = serve_once(own_database, sql, ONE_CONNECTION)
    assert answer(service.get("/api/draw"))[2] == "1"
    assert problem(service.get("/api/last-drawn"), 500)["detail"] == "55000"
