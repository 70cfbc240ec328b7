"""The audit trail: callers and calls, with the command of the manual page (docs/audit.md)."""

from __future__ import annotations

import pytest

from tests.docs.pages import FOLDER
from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import bearer

TRAIL = (
    "create table call ("
    + (FOLDER / "audit.md").read_text(encoding="utf-8").split("create table call (")[1].split("```")[0]
)
SQL = """
create function sign_in() returns table (user_id int, user_name text) language sql as $$select 41, 'kiri'$$;
comment on function sign_in() is E'HTTP POST\\nlogin';
create function closed(_x int default 1) returns int language sql as 'select _x';
comment on function closed(int) is E'HTTP GET\\nauthorize';
create function quiet() returns int language sql as 'select 1';
comment on function quiet() is E'HTTP GET\\nallow_anonymous\\naudit_trail off';
create function many(_count int) returns setof int language sql as 'select * from generate_series(1, _count)';
comment on function many(int) is E'HTTP GET\\nallow_anonymous';
create function open() returns int language sql as 'select 1';
comment on function open() is E'HTTP GET\\nallow_anonymous';
create function enter(_name text) returns table (status int, user_id text) language sql as
$$select case when _name = 'ana' then 200 else 401 end, _name$$;
comment on function enter(text) is E'HTTP POST\\nlogin';
create function leave() returns void language sql as '';
comment on function leave() is E'HTTP POST\\nallow_anonymous\\nlogout';
create function fails() returns int language plpgsql as $$begin raise exception 'no'; end$$;
comment on function fails() is E'HTTP POST\\nallow_anonymous';
"""
P = "Service:AuditTrail:"
SETTINGS = {
    "Service:RequiresAuthorization": None,
    "Auth:BearerTokenAuth": "true",
    P + "Enabled": "true",
    P + "Interval": "100 milliseconds",
    P + "BatchSize": "3",
    P + "QueueLimit": "50",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, TRAIL + SQL, SETTINGS, workers=2)


def calls(database: Database, count: int) -> list[tuple[object, ...]]:
    """Return the calls in the order in which they began."""
    sql = "select endpoint, routine, user_id, user_name, scheme, address, status from call order by at"
    wait_until(lambda: len(database.fetch(sql)) >= count, f"{count} calls have been recorded")
    return database.fetch(sql)


def test_calls_are_recorded_with_their_callers(service: Service, database: Database) -> None:
    token = bearer(service.post("/api/sign-in").json()["accessToken"])
    assert service.get("/api/closed?x=4242", headers=token).status_code == 200
    assert service.get("/api/closed").status_code == 401
    assert service.get("/api/closed?x=no", headers=token).status_code == 400
    assert service.post("/api/fails").status_code == 400
    assert service.get("/api/quiet").status_code == 200
    assert service.request("HEAD", "/api/closed", headers=token).status_code == 200
    assert len(service.get("/api/many?count=200000").content) > 1_000_000
    kiri, anonymous = ("41", "kiri", "BearerToken"), (None, None, None)
    closed = ("GET /api/closed", "public.closed")
    assert calls(database, 7) == [
        ("POST /api/sign-in", "public.sign_in", *kiri, "127.0.0.1", 200),
        (*closed, *kiri, "127.0.0.1", 200),
        (*closed, *anonymous, "127.0.0.1", 401),
        (*closed, *kiri, "127.0.0.1", 400),
        ("POST /api/fails", "public.fails", *anonymous, "127.0.0.1", 400),
        (*closed, *kiri, "127.0.0.1", 200),
        ("GET /api/many", "public.many", *anonymous, "127.0.0.1", 200),
    ]
    assert database.value("select count(*) from call where milliseconds < 0 or at > now()") == 0
    assert "4242" not in str(database.fetch("select c.*::text from call c"))


def test_callers_of_open_endpoints_are_named(service: Service, database: Database) -> None:
    """A refused sign-in has no user, whatever session its request has; a sign-out has that of the session."""
    ana = bearer(service.post("/api/enter", json={"name": "ana"}).json()["accessToken"])
    assert service.get("/api/open", headers=ana).status_code == 200
    assert service.post("/api/enter", json={"name": "ben"}, headers=ana).status_code == 401
    assert service.post("/api/leave", headers=ana).status_code == 200
    sql = "select endpoint, user_id, status from call where routine ~ '(enter|open|leave)$' order by at"
    wait_until(lambda: len(database.fetch(sql)) == 4, "the calls have been recorded")
    assert database.fetch(sql) == [
        ("POST /api/enter", "ana", 200),
        ("GET /api/open", "ana", 200),
        ("POST /api/enter", None, 401),
        ("POST /api/leave", "ana", 200),
    ]


@pytest.mark.slow
def test_records_are_queued_and_the_error_is_logged_if_the_command_fails(
    own_database: Database, serve_once: Serve
) -> None:
    """The command fails: that does not delay requests, and the log reports it."""
    service = serve_once(own_database, SQL, SETTINGS)
    for _ in range(5):
        assert service.get("/api/many?count=1").status_code == 200
    service.wait_for_log("Service:AuditTrail:Command refuses")
    own_database.execute(TRAIL)
    assert service.get("/api/many?count=1").status_code == 200
    assert calls(own_database, 1)[-1][0] == "GET /api/many"
    for _ in range(3):
        service.get("/api/many?count=1")
    before = len(own_database.fetch("select 1 from call"))
    assert service.stop() == 0
    assert len(own_database.fetch("select 1 from call")) >= max(before, 4)


@pytest.mark.slow
def test_only_rejected_records_of_a_batch_are_dropped(own_database: Database, serve_once: Serve) -> None:
    """The records of a refused batch are written over one connection."""
    own_database.execute(
        TRAIL + "; alter table call add check (status <> 400), add backend int default pg_backend_pid()"
    )
    settings = {**SETTINGS, P + "Interval": "2 seconds", P + "BatchSize": "50"}
    service = serve_once(own_database, SQL, settings)
    for _ in range(2):
        assert service.get("/api/many?count=1").status_code == 200
        assert service.post("/api/fails").status_code == 400
    assert service.get("/api/many?count=1").status_code == 200
    assert [endpoint for endpoint, *_ in calls(own_database, 3)] == ["GET /api/many"] * 3
    assert own_database.value("select count(distinct backend) from call") == 1
    assert "Service:AuditTrail:Command refuses 2 calls, which are lost: " in service.wait_for_log("refuses 2 calls")


@pytest.mark.slow
def test_rejected_records_are_counted_if_the_service_stops(own_database: Database, serve_once: Serve) -> None:
    own_database.execute(
        TRAIL
        + """; create function judge() returns trigger language plpgsql as $$begin
            if new.status = 400 then raise exception 'refused'; end if;
            perform pg_sleep(30); return new;
        end$$; create trigger judge before insert on call for each row execute function judge()"""
    )
    service = serve_once(own_database, SQL, {**SETTINGS, P + "Interval": "2 seconds", P + "BatchSize": "50"})
    assert service.post("/api/fails").status_code == 400
    assert service.get("/api/many?count=1").status_code == 200
    sleeping = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()"
    wait_until(lambda: own_database.value(sleeping) == 1, "the second record is being written")
    service.stop()
    assert "Service:AuditTrail:Command refuses 1 calls, which are lost: " in service.log
    assert "1 calls are missing in the audit trail: the service has ended before" in service.log
