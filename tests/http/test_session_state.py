"""Changes of a routine to its session do not reach the next request, whatever its declaration says.

One connection of each kind, so that whatever was left would be met; every endpoint is called until connections are shared.
"""

# ruff: noqa: E501 (a routine is one line)

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SETTINGS: dict[str, str | None] = {
    "ConnectionSettings:Pool:SharedConnections": "1",
    "ConnectionSettings:Pool:WriteConnections": "1",
    "ConnectionSettings:Pool:ExclusiveConnections": "1",
    # On a busy machine everything is slow now and then.
    "ConnectionSettings:Pool:SlowThreshold": "5 s",
    "Service:CrudSource:Enabled": "true",
}

STATE = """
select concat_ws(' ', coalesce(nullif(current_setting('app.leak', true), ''), '-'), current_setting('work_mem'), current_user,
  (select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'),
  coalesce(to_regclass('pg_temp.remnant')::text, '-'),
  (select count(*) from pg_listening_channels()), (select count(*) from pg_cursors where is_holdable),
  (select count(*) from pg_prepared_statements where from_sql))
"""
LOOKS = f"""
create function look_shared() returns text language sql stable as $$ {STATE} $$;
create function look_writing() returns text language sql as $$ {STATE} $$;
create function look_alone() returns text language plpgsql as $$ declare found text; begin
  execute $q$ {STATE} $q$ into found; return found; end $$;
comment on function look_shared() is 'HTTP GET';
comment on function look_writing() is 'HTTP GET';
comment on function look_alone() is 'HTTP GET';
"""
LEAK = """perform set_config('app.leak', 'seen', false), set_config('work_mem', '1MB', false), pg_advisory_lock(7);
  execute 'create temp table if not exists remnant (n int)'; execute 'listen leak';"""


READING_LEAK = (
    "perform set_config('app.leak', 'seen', false), set_config('work_mem', '1MB', false), pg_advisory_lock(7);"
)
"""What a STABLE function is let do."""


@dataclass(frozen=True)
class Way:
    """sql: makes `leak(_id)`, which gives its argument back. change: what is done to it once it shares connections."""

    sql: str
    change: str = ""


def plain(body: str, volatility: str = "", name: str = "leak") -> str:
    return (
        f"create or replace function {name}(_id int) returns int language plpgsql {volatility} as $$"
        f" begin {body} return _id; end $$;"
    )


TRIGGER = (
    f"create or replace function on_write() returns trigger language plpgsql as $$ begin {LEAK} return new; end $$;"
)
QUIET = "create or replace function on_write() returns trigger language plpgsql as $$ begin return new; end $$;"
PUT = "create trigger put before insert on written for each row execute function on_write();"
WRITE = "create table written (id int); create function leak(_id int) returns int language sql as 'insert into written values (_id) returning id';"

WAYS = {
    "declared stable": Way(plain(READING_LEAK, "stable")),
    "volatile": Way(plain(LEAK)),
    "only settings": Way(plain("perform set_config('app.leak', 'seen', false);", "stable")),
    "a set command": Way(plain("set work_mem = '1MB';")),
    "only a lock": Way(plain("perform pg_try_advisory_lock(7);", "stable")),
    "a role": Way(plain("set role pg_read_all_data;")),
    "a held cursor": Way("create function leak(_id int) returns int language sql as 'declare held cursor with hold for select 1; select _id'"),
    "a prepared statement": Way(plain("execute 'prepare left_behind as select 1';")),
    "dynamic sql": Way(plain("execute 'select set_config(''app.leak'', ''seen'', false)';", "stable")),
    "a helper": Way(plain(LEAK, name="helper") + "create function leak(_id int) returns int language sql stable as 'select helper(_id)'"),
    "an operator": Way(
        plain(LEAK, name="helper") + "create operator @@@@ (function = helper, rightarg = int);"
        "create function leak(_id int) returns int language sql stable as 'select @@@@ _id'"
    ),
    "a cast": Way(
        "create type wrapped as (n int);"
        f"create function unwrap(_w wrapped) returns int language plpgsql as $$ begin {LEAK} return _w.n; end $$;"
        "create cast (wrapped as int) with function unwrap(wrapped) as implicit;"
        "create function leak(_id int) returns int language sql stable as 'select row(_id)::wrapped::int'"
    ),
    "a domain": Way(
        f"create function check_it(_n int) returns bool language plpgsql as $$ begin {LEAK} return true; end $$;"
        "create domain checked as int check (check_it(value));"
        "create function leak(_id int) returns int language sql stable as 'select _id::checked::int'"
    ),
    "a default of a column": Way(
        f"create function fill() returns int language plpgsql as $$ begin {LEAK} return 1; end $$;"
        "create table written (id int, more int default fill());"
        "create function leak(_id int) returns int language sql as 'insert into written (id) values (_id) returning id'"
    ),
    "a default of a parameter": Way(
        f"create function fill() returns int language plpgsql as $$ begin {LEAK} return 1; end $$;"
        "create function leak(_id int, _more int default fill()) returns int language sql stable as 'select _id + 0 * _more'"
    ),
    "a view": Way(
        plain(LEAK, name="helper") + "create view seen as select helper(1) as n;"
        "create function leak(_id int) returns int language sql stable as 'select _id + 0 * n from seen'"
    ),
    "a policy": Way(
        f"create function allow() returns bool language plpgsql as $$ begin {LEAK} return true; end $$;"
        "create table guarded as select 1 as n; alter table guarded enable row level security, force row level security;"
        "create policy p on guarded using (allow());"
        "create function leak(_id int) returns int language sql stable as 'select coalesce(max(n) * 0, 0) + _id from guarded'"
    ),
    "a trigger": Way(WRITE + TRIGGER + PUT),
    "replaced": Way(plain(""), plain(LEAK)),
    "replaced, stable": Way(plain("", "stable"), plain(READING_LEAK, "stable")),
    "a helper replaced": Way(
        plain("", "stable", "helper") + "create function leak(_id int) returns int language plpgsql stable as"
        " $$ begin return helper(_id); end $$;",
        plain(READING_LEAK, "stable", "helper"),
    ),
    "a trigger put on": Way(WRITE + TRIGGER, PUT),
    "a trigger's function replaced": Way(WRITE + QUIET + PUT, TRIGGER),
    "a view replaced": Way(
        plain(LEAK, name="helper") + "create view seen as select 1 as n;"
        "create function leak(_id int) returns int language plpgsql stable as $$ begin return _id + 0 * (select n from seen); end $$;",
        "create or replace view seen as select helper(1) as n;",
    ),
    "a default put on": Way(
        f"create function fill() returns int language plpgsql as $$ begin {LEAK} return 1; end $$;"
        "create table written (id int, more int);"
        "create function leak(_id int) returns int language sql as 'insert into written (id) values (_id) returning id'",
        "alter table written alter more set default fill();",
    ),
}  # fmt: skip


def looks(service: Service) -> set[str]:
    return {service.get(f"/api/look-{kind}").text for kind in ("shared", "writing", "alone")}


def wired(database: Database, name: str) -> list[int]:
    """Sessions whose last statement was one that runs only as long as the routine is what it was."""
    return database.backends(f"query like 'with rowcall_guard%\"{name}\"(%'")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_session_effects_do_not_reach_the_next_request(own_database: Database, serve_once: Serve, way: Way) -> None:
    service = serve_once(own_database, f"{LOOKS}{way.sql}; comment on function leak is 'HTTP POST';", SETTINGS)
    before = looks(service)
    assert len(before) == 1
    for number in range(24):
        assert service.post("/api/leak", json={"id": number}).text == str(number)
        if number % 4 == 0 or number > 16:
            assert looks(service) == before
    if way.change:

        def shares() -> bool:
            return service.post("/api/leak", json={"id": 1}).text == "1" and bool(wired(own_database, "leak"))

        wait_until(shares, "the routine shares connections")
        own_database.execute(way.change)
    for number in range(24, 36):
        assert service.post("/api/leak", json={"id": number}).text == str(number)
        assert looks(service) == before
    assert before.pop().startswith("- 4MB postgres 0 - 0 0 0")


@pytest.mark.slow
def test_routines_without_session_effects_share_connections(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, LOOKS, SETTINGS)

    def shares(kind: str) -> bool:
        return service.get(f"/api/look-{kind}").is_success and bool(wired(own_database, f"look_{kind}"))

    wait_until(lambda: shares("shared"), "what is STABLE shares connections")
    wait_until(lambda: shares("writing"), "what is VOLATILE shares connections")
    for _ in range(20):
        assert service.get("/api/look-alone").is_success
    assert not wired(own_database, "look_alone")


@pytest.mark.slow
def test_a_replaced_routine_shares_connections_again_after_the_next_reading(
    own_database: Database, serve_once: Serve
) -> None:
    helper = plain("", "stable", "helper")
    sql = f"{helper} create function leak(_id int) returns int language plpgsql stable as $$ begin return helper(_id); end $$;"
    service = serve_once(own_database, f"{sql} comment on function leak is 'HTTP POST';", SETTINGS)

    def sharing() -> set[int]:
        assert service.post("/api/leak", json={"id": 7}).text == "7"
        return set(wired(own_database, "leak"))

    wait_until(sharing, "the routine shares connections")
    own_database.execute(helper)
    own_database.terminate("query like 'with rowcall_guard%'")
    wait_until(sharing, "the routine shares connections again")


@pytest.mark.slow
def test_session_effects_of_tables_views_and_files_do_not_reach_the_next_request(
    own_database: Database, serve_once: Serve, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("sql")
    write_files(
        folder, {"leaking.sql": "-- HTTP GET\nselect set_config('app.leak', 'seen', false) as n, :id::int as id"}
    )
    sql = (
        LOOKS
        + plain(READING_LEAK, "stable", "helper")
        + "create view leaking_view as select helper(1) as n; comment on view leaking_view is 'HTTP';"
        + "create table guarded (n int check (helper(n) is not null)); comment on table guarded is 'HTTP';"
    )
    service = serve_once(own_database, sql, SETTINGS | file_settings(folder))
    before = looks(service)
    for number in range(20):
        assert service.get("/api/leaking-view").json() == [{"n": 1}]
        assert looks(service) == before
        assert service.get(f"/api/leaking?id={number}").json() == [{"n": "seen", "id": number}]
        assert looks(service) == before
        assert service.request("PUT", "/api/guarded", json={"n": number}).is_success
        assert looks(service) == before


def test_lastval_of_another_request_is_not_seen(own_database: Database, serve_once: Serve) -> None:
    sql = (
        LOOKS
        + """
    create table numbered (id serial, n int);
    create function put(_n int) returns int language sql as 'insert into numbered (n) values (_n) returning n';
    create function last() returns text language plpgsql as $$ begin return lastval(); exception when others then return 'none'; end $$;
    create function put_and_ask(_n int) returns bigint language sql as 'insert into numbered (n) values (_n); select lastval()';
    comment on function put(int) is 'HTTP POST'; comment on function last() is 'HTTP GET';
    comment on function put_and_ask(int) is 'HTTP POST';
    """
    )
    service = serve_once(own_database, sql, SETTINGS)
    for number in range(1, 41, 2):
        assert service.post("/api/put", json={"n": number}).text == str(number)
        assert service.get("/api/last").text == "none"
        assert service.post("/api/put-and-ask", json={"n": number}).text == str(number + 1)


def test_endpoints_report_session_effects(own_database: Database, tmp_path: Path) -> None:
    own_database.execute(LOOKS + plain("perform pg_advisory_lock(1);") + "comment on function leak(int) is 'HTTP';")
    done = rowcall(tmp_path, "--endpoints", f"--ConnectionStrings:Default={own_database.conninfo}")
    body = {item["path"]: item for item in json.loads(done.stdout)}
    assert "leavesInSession" not in body["/api/look-shared"]
    assert body["/api/leak"]["leavesInSession"] == ["advisory locks"]
    assert body["/api/leak"]["leavesBecause"] == "public.leak: advisory locks"
    assert body["/api/look-alone"]["leavesInSession"] == ["anything"]


def test_trust_stable_lets_stable_routines_share_connections(own_database: Database, serve_once: Serve) -> None:
    """For users whose dynamic SQL is known to be harmless: no reset, shared connections, and a warning."""
    sql = plain("execute 'select 1';", "stable") + "comment on function leak(int) is 'HTTP GET';"
    service = serve_once(own_database, sql, SETTINGS | {"ConnectionSettings:Pool:TrustStable": "true"})
    service.wait_for_log("TrustStable is on")

    def shares() -> bool:
        assert service.get("/api/leak?id=5").text == "5"
        return bool(own_database.backends('query like \'select "public"."leak"(%\''))

    wait_until(shares, "nothing follows the call")
