"""Role, tenant and claims of a procedure that commits last until its end, not only for its first transaction."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve
from tests.http.members import member_sql

ROLE = f"tenant_{os.getpid()}"

SQL = """
create table seen (n int generated always as identity, role text, tenant text, claim text);
create function note() returns void language sql as $$
    insert into seen (role, tenant, claim) values (
        current_setting('role'), current_setting('app.tenant', true), current_setting('request.user_id', true))
$$;
create procedure twice(_word text default 'x') language plpgsql as $$
begin perform note(); commit; perform note(); rollback; perform note(); end $$;
comment on procedure twice(text) is E'HTTP POST\\nallow_anonymous\\nuser_context';
create function become(_role text) returns void language plpgsql as $$
begin perform set_config('role', _role, true); perform set_config('app.tenant', 'north', true); end $$;
create procedure after() language plpgsql as $$begin perform note(); end $$;
comment on procedure after() is E'HTTP POST\\nallow_anonymous';
"""


def start_service(database: Database, serve_once: Serve, *commands: str, **settings: str) -> Service:
    database.execute(f"do $$begin if to_regrole('{ROLE}') is null then create role {ROLE}; end if; end$$")
    database.execute(member_sql() + SQL + f"grant all on all tables in schema public to {ROLE}")
    before = {f"Service:BeforeRoutineCommands:{number}": command for number, command in enumerate(commands)}
    return serve_once(database, settings={**before, **settings})


def seen(database: Database) -> list[tuple[object, ...]]:
    return database.fetch("select role, tenant from seen order by n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "commands",
    [
        (f"select set_config('role', '{ROLE}', true)", "select set_config('app.tenant', 'north', true)"),
        (f"set local role {ROLE}", "set local app.tenant = 'north'"),
        (f"set  local role {ROLE}", "set /* the tenant */ local\napp.tenant = 'north'"),
        (f"set role {ROLE}", "select set_config('app.tenant', 'north', false)"),
        (f"select set_config('role', '{ROLE}', true), set_config('app.tenant', 'north', true)",),
        (f"select become('{ROLE}')",),
    ],
    ids=["set_config", "set local", "blanks", "session", "two at once", "a function"],
)
def test_settings_of_commands_last_until_a_procedure_ends(
    every_database: Database, serve_once: Serve, commands: tuple[str, ...]
) -> None:
    """Or the procedure is left out, and named at the start."""
    every_database.execute("drop schema public cascade; create schema public; grant usage on schema public to public")
    service = start_service(every_database, serve_once, *commands)
    response = service.post("/api/twice")
    whole = [(ROLE, "north")] * 2
    if response.status_code == 204:
        assert seen(every_database) == whole
    else:
        problem(response, 404)
        assert "public.twice(text): POST /api/twice is left out, because it may commit" in service.log
        assert seen(every_database) == []
    assert service.post("/api/after").status_code == 204
    assert seen(every_database)[-1:] == [(ROLE, "north")]


def test_settings_of_commands_last_for_every_statement_of_a_file(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """Also if one of them commits; then they are set for the session, and reset for the next request."""
    files = {
        "blocks.sql": "-- HTTP POST\n-- allow_anonymous\ndo $$ begin perform note(); end $$;\n"
        "create temp table noted on commit drop as select note()::text as n;\nselect note();",
        "calls.sql": "-- HTTP POST\n-- allow_anonymous\ncall twice();\nselect note();\n"
        "begin;\ncall after();\nrollback;\nbegin;\ncall after();\ncommit;",
    }
    settings = {
        **file_settings(write_files(tmp_path / "sql", files)),
        "ConnectionSettings:Pool:ExclusiveConnections": "1",
        "ConnectionSettings:Pool:Sharing": "false",
    }
    commands = (f"set local role {ROLE}", "select set_config('app.tenant', 'north', true)")
    service = start_service(own_database, serve_once, *commands, **settings)
    for path, count in (("blocks", 3), ("calls", 4), ("blocks", 3)):
        own_database.execute("truncate seen")
        response = service.post(f"/api/{path}")
        assert response.status_code == 200, response.text
        assert seen(own_database) == [(ROLE, "north")] * count


def test_a_file_that_commits_is_left_out_if_its_settings_would_be_lost(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    text = "-- HTTP POST\n-- allow_anonymous\nselect 1;\ncall twice();"
    files = file_settings(write_files(tmp_path / "sql", {"calls.sql": text}))
    service = start_service(own_database, serve_once, f"select become('{ROLE}')", **files)
    problem(service.post("/api/calls"), 404)
    assert "POST /api/calls is left out, because it may commit" in service.log
    assert seen(own_database) == []


def test_settings_of_commands_do_not_reach_the_next_request(own_database: Database, serve_once: Serve) -> None:
    settings = {"ConnectionSettings:Pool:ExclusiveConnections": "1", "ConnectionSettings:Pool:Sharing": "false"}
    sql = (
        "create function who() returns text language sql as $$"
        "select current_user || coalesce(current_setting('app.t', true), '')$$;"
        "comment on function who() is E'HTTP POST\\nallow_anonymous'"
    )
    own_database.execute(sql)
    header = "Service:BeforeRoutineCommands:0:"
    values = {
        header + "Enabled": "true",
        header + "Sql": "select set_config('app.t', $1, true)",
        header + "Parameters:0:Source": "RequestHeader",
        header + "Parameters:0:Name": "X-Tenant",
    }
    service = start_service(own_database, serve_once, **settings, **values)
    before = service.post("/api/who").text
    assert service.post("/api/twice", headers={"X-Tenant": "north"}).status_code == 204
    assert service.post("/api/who").text == before


def test_a_session_is_closed_if_one_of_its_commands_fails(own_database: Database, serve_once: Serve) -> None:
    """Settings of the first command are reset if the second command fails."""
    own_database.execute(
        "create function whose() returns text language sql as $$"
        "select concat_ws(' ', pg_backend_pid(), nullif(current_setting('app.tenant', true), ''))$$;"
        "comment on function whose() is E'HTTP POST\\nallow_anonymous'"
    )
    settings = {"ConnectionSettings:Pool:ExclusiveConnections": "1", "ConnectionSettings:Pool:Sharing": "false"}
    before = "Service:BeforeRoutineCommands:"
    for number, (name, header) in enumerate((("app.tenant", "X-Tenant"), ("role", "X-Role"))):
        settings |= {
            f"{before}{number}:Enabled": "true",
            f"{before}{number}:Sql": f"select set_config('{name}', $1, true)",
            f"{before}{number}:Parameters:0:Source": "RequestHeader",
            f"{before}{number}:Parameters:0:Name": header,
        }
    service = start_service(own_database, serve_once, **settings)
    mine = {"X-Role": "none"}
    first = service.post("/api/whose", headers=mine).text
    assert service.post("/api/whose", headers=mine).text == first
    response = service.post("/api/twice", headers={"X-Tenant": "north", "X-Role": "unknown_role"})
    assert response.status_code >= 400
    assert seen(own_database) == []
    after = service.post("/api/whose", headers=mine).text
    assert after != first
    assert after.isdigit(), "nothing of the tenant is left"
    assert not own_database.backends(f"pid = {first}")
