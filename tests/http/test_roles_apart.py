"""Database roles share connections, but no prepared statement: its plan can contain what only one of them may use.

PostgreSQL checks the use of a schema when it prepares a statement. The plan of a statement can contain the body of a
function, whose right to execute is then checked no more.
"""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, create_roles, token
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create schema api; create schema closed; create schema hooks;
create function api.inlined() returns int language sql stable as 'select 1';
create function api.inlined_rows() returns setof int language sql stable as 'select 1';
create function api.inlined_sum(a int) returns int language sql stable as 'select 1 + a';
create function closed.inlined() returns int language sql stable as 'select 1';
create function closed.writes() returns int language plpgsql as 'begin return 1; end';
create table closed.note (id int primary key); insert into closed.note values (1);
grant select on closed.note to public;
create function hooks.before() returns void language plpgsql as 'begin end';
revoke execute on all functions in schema api from public;
"""
COMMENTS = """
comment on function api.inlined() is E'HTTP GET /inlined\\nauthorize';
comment on function api.inlined_rows() is E'HTTP GET /inlined-rows\\nauthorize';
comment on function api.inlined_sum(int) is E'HTTP GET /inlined-sum\\nauthorize';
comment on function closed.inlined() is E'HTTP GET /closed\\nauthorize';
comment on function closed.writes() is E'HTTP POST /closed-writes\\nauthorize';
comment on table closed.note is E'HTTP GET /closed-note\\nauthorize\\nqueryable';
create table key (digest text, id int, role text);
create function find_key(_digest text) returns table (user_id int, database_role text) language sql as
  $$ select id, role from key where digest = _digest $$;
"""
KEY = "X-Key"
RUNS = 25
"""More than the runs after which PostgreSQL uses a generic plan and the service pipelines a call."""


def roles_of(database: Database) -> tuple[str, str]:
    """Return a role without rights to what is closed, and one with them."""
    low, high = create_roles(database, "low", "high")
    database.execute(
        f"grant usage on schema api to {low}, {high}; grant usage on schema closed, hooks to {high};"
        f"grant execute on all functions in schema api to {high}; grant {low}, {high} to current_user"
    )
    return low, high


@pytest.fixture(scope="module")
def roles(database: Database) -> tuple[str, str]:
    database.execute(SQL + COMMENTS)
    return roles_of(database)


@pytest.fixture(scope="module")
def postgrest(
    serve: Serve, database: Database, roles: tuple[str, str]
) -> tuple[Service, dict[str, str], dict[str, str]]:
    low, high = roles
    settings = {**PLAIN, "PostgRest:Schemas": "api, closed", "PostgRest:AnonymousRole": low}
    return serve(database, settings=settings), {}, token(role=high)


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/rpc/inlined", "api"),
        ("/rpc/inlined_rows", "api"),
        ("/rpc/inlined_sum?a=1", "api"),
        ("/rpc/inlined", "closed"),
        ("/note?id=eq.1", "closed"),
    ],
)
@pytest.mark.parametrize("prefer", ["", "tx=rollback, count=planned"])
def test_plans_of_postgrest_requests_are_not_shared_between_roles(
    postgrest: tuple[Service, dict[str, str], dict[str, str]], path: str, schema: str, prefer: str
) -> None:
    service, low, high = postgrest
    headers = {"accept-profile": schema, "prefer": prefer}
    assert {service.get(path, headers={**headers, **high}).status_code for _ in range(RUNS)} == {200}
    assert {service.get(path, headers={**headers, **low}).status_code for _ in range(RUNS)} == {401}


@pytest.mark.slow
def test_the_pre_request_function_runs_for_each_role(serve_once: Serve, own_database: Database) -> None:
    own_database.execute(SQL + "create table api.note (id int); grant select on api.note to public;")
    low, high = roles_of(own_database)
    settings = {**PLAIN, "PostgRest:AnonymousRole": low, "PostgRest:PreRequest": "hooks.before"}
    service = serve_once(own_database, settings=settings)
    assert {service.get("/note", headers=token(role=high)).status_code for _ in range(RUNS)} == {200}
    assert {service.get("/note").status_code for _ in range(RUNS)} == {401}


NATIVE = {
    "Service:RequiresAuthorization": None,
    "Service:CrudSource:Enabled": "true",
    "Service:AuthenticationOptions:UseRoleFromClaim": "true",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Header": KEY,
    "Auth:ApiKey:Command": "select * from find_key($1)",
}


def serve_native(serve: Serve, database: Database, roles: tuple[str, str], settings: dict[str, str]) -> Service:
    """Start a service with `role_from_claim` at all endpoints, whose callers `low` and `high` have these roles."""
    for name, role in zip(("low", "high"), roles, strict=True):
        database.execute(f"insert into key select encode(sha256('{name}'), 'hex'), 1, '{role}'")
    key = "Service:AuthenticationOptions:DatabaseRoles"
    return serve(database, settings={**NATIVE, f"{key}:0": roles[0], f"{key}:1": roles[1], **settings})


@pytest.fixture(scope="module")
def native(serve: Serve, database: Database, roles: tuple[str, str]) -> Service:
    return serve_native(serve, database, roles, {"Batch:Enabled": "true"})


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /inlined",
        "GET /inlined-rows",
        "GET /inlined-sum?a=1",
        "GET /closed",
        "POST /closed-writes",
        "GET /closed-note",
        "GET /closed-note?id=eq.1",
    ],
)
def test_plans_of_routines_are_not_shared_between_roles_of_claims(native: Service, request_line: str) -> None:
    method, path = request_line.split()

    def statuses(name: str) -> set[int]:
        return {native.request(method, path, headers={KEY: name}).status_code for _ in range(RUNS)}

    assert statuses("high") == {200}
    assert statuses("low") == {403}
    assert statuses("high") == {200}


def test_a_batch_in_one_transaction(native: Service) -> None:
    requests = [{"method": "GET", "path": "/closed"}]

    def statuses(name: str) -> set[int]:
        return {native.post("/batch", headers={KEY: name}, json=requests).status_code for _ in range(RUNS)}

    assert statuses("high") == {200}
    assert statuses("low") == {403}


@pytest.mark.slow
def test_commands_before_routines_run_for_each_role(serve_once: Serve, own_database: Database) -> None:
    own_database.execute(SQL + COMMENTS)
    own_database.execute("create function public.open() returns int language sql as 'select 1'")
    own_database.execute("comment on function public.open() is E'HTTP GET /open\\nauthorize'")
    command = {"Service:BeforeRoutineCommands:0": "select hooks.before()"}
    service = serve_native(serve_once, own_database, roles_of(own_database), command)
    assert {service.get("/open", headers={KEY: "high"}).status_code for _ in range(RUNS)} == {200}
    assert {service.get("/open", headers={KEY: "low"}).status_code for _ in range(RUNS)} == {500}
