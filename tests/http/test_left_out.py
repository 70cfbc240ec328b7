"""Objects with annotations that are not served: reported with reason and remedy, counted, without effect on others."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.postgres import free_port
from tests.harness.service import Service
from tests.harness.sql_files import write_files
from tests.http.conftest import Serve

SQL = """
grant usage on schema public to {role};
create schema closed;
create schema other_place;
grant usage on schema other_place to {role};
create function closed.deep() returns int language sql stable as 'select 1';
create type closed.secret as (id int);
create function secrets() returns table (a int, b closed.secret) language sql stable as 'select 1, null::closed.secret';
create function fine() returns int language sql stable as 'select 1';
create function not_granted(_id int, _name text) returns int language sql stable as 'select 1';
revoke execute on function not_granted(int, text) from public;
create function total_step(int, int) returns int language sql immutable as 'select $1 + $2';
create aggregate total(int) (sfunc = total_step, stype = int);
create function on_change() returns trigger language plpgsql as 'begin return new; end';
create function of_whom(_user_id int) returns int language sql stable as 'select 1';
create function signing_in() returns void language sql as '';
create function sign_in() returns table (user_id text) language sql as $$select '1'$$;
create function wishes() returns table (n int) language sql stable as 'select 1';
create function only_tool() returns int language sql stable as 'select 1';
create function second_tool() returns int language sql stable as 'select 1';
create function on_ddl() returns event_trigger language plpgsql as 'begin end';
create type asked as (body text);
create function asks(_answer asked) returns int language sql stable as 'select 1';
create function health() returns int language sql stable as 'select 1';
create function left_x(_x int) returns int language sql stable as 'select 1';
create function left_y(_y int) returns int language sql stable as 'select 2';
create table shelf (id int primary key, label text);
create table hidden_shelf (id int);
grant all on shelf to {role};
comment on function closed.deep() is 'HTTP GET /deep';
comment on function secrets() is 'HTTP GET /secrets';
comment on function fine() is 'HTTP GET /fine';
comment on function not_granted(int, text) is E'Some words.\\nHTTP GET /not-granted';
comment on aggregate total(int) is 'HTTP';
comment on function on_change() is 'HTTP';
comment on function of_whom(int) is E'HTTP GET /of-whom\\nuser_parameters';
comment on function signing_in() is E'HTTP POST /signing-in\\nlogin';
comment on function sign_in() is E'HTTP POST /sign-in\\nlogin';
comment on function wishes() is E'HTTP GET /wishes\\ntable_format = html\\ncached\\nrate_limiter slow\\nupload\\n'
  'authorize within 5 minutes\\nretry_strategy none\\nmcp A tool.\\nproxy\\nconnection other';
comment on function only_tool() is 'mcp A tool.';
comment on function second_tool() is 'mcp Another one.';
comment on function on_ddl() is 'HTTP';
comment on type asked is 'GET http://127.0.0.1:1/';
comment on function asks(asked) is 'HTTP GET /asks';
comment on function health() is 'HTTP GET /Health/';
comment on function left_x(int) is 'HTTP GET /left/{{_x}}';
comment on function left_y(int) is 'HTTP GET /left/{{_y}}';
comment on table shelf is E'HTTP\\npath /shelf\\ntimeout soon\\ncache_expires nil';
comment on table hidden_shelf is 'HTTP';
"""


@pytest.fixture(scope="module")
def role(database: Database) -> Iterator[str]:
    name = f"narrow_{os.getpid()}"
    database.execute(f"create role {name} login")
    database.execute(SQL.format(role=name))
    yield name
    database.execute(f"drop owned by {name}; drop role {name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_files(
        tmp_path_factory.mktemp("files"),
        {"broken.sql": "-- HTTP GET\nselect nothing", "good.sql": "-- HTTP GET\nselect 1"},
    )


@pytest.fixture(scope="module")
def settings(database: Database, role: str, folder: Path) -> dict[str, str]:
    conninfo = database.conninfo_as(role)
    return {
        "ConnectionStrings:Default": conninfo,
        "ConnectionStrings:Other": conninfo,
        "CommandRetryOptions:Enabled": "false",
        "HealthChecks:Enabled": "true",
        "HealthChecks:ReadyPath": "/alive",
        "HealthChecks:LivePath": "/alive",
        "Service:SqlFileSource:FilePattern": f"{folder}/*.sql",
        "Service:SqlFileSource:ErrorMode": "Skip",
    }


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, settings: dict[str, str]) -> Service:
    return serve(database, "", settings)


@pytest.mark.parametrize(
    "message",
    [
        "closed.deep(): left out, as the role {role} may not execute it: GRANT USAGE ON SCHEMA closed TO {role}",
        "public.secrets(): left out, as the role {role} may not execute it: GRANT USAGE ON SCHEMA closed TO {role}",
        "public.not_granted(integer, text): left out, as the role {role} may not execute it: "
        "GRANT EXECUTE ON FUNCTION public.not_granted(integer, text) TO {role}",
        "public.total(integer): left out, as it is an aggregate",
        "public.on_change(): left out, as it is a trigger function",
        "public.on_ddl(): left out, as it is a trigger function",
        "public.shelf: HTTP in its comment has no effect, as Service:CrudSource:Enabled is false",
        "parameter _user_id is integer and would receive the claim user_id, which is text",
        "POST /signing-in: a login has to return named columns",
        "public.sign_in(): login has no effect, as it is switched off (Auth:CookieAuth, Auth:BearerTokenAuth or ",
        "table_format has no effect, as it is switched off (Service:TableFormatOptions:Enabled)",
        "cached has no effect, as it is switched off (CacheOptions:Enabled)",
        "rate_limiter has no effect, as it is switched off (RateLimiterOptions:Enabled)",
        "retry_strategy has no effect, as it is switched off (CommandRetryOptions:Enabled)",
        "it depends on the time of the sign-in, which is not recorded (Service:AuthenticationOptions:NoteSignInTime): ",
        "uploads are switched off: set Service:UploadOptions:Enabled",
        "proxy has no effect, as Service:ProxyOptions:Enabled is false",
        "connection 'other' is not used, as Service:UseMultipleConnections is false",
        "public.only_tool(), public.second_tool(), public.wishes(): mcp has no effect, as it is switched off "
        "(Service:McpOptions:Enabled): no tool is offered [",
        "type asked: the request in its comment is not sent, as Service:HttpClientOptions:Enabled is false",
        "GET /health/ is not reached: HealthChecks:Path answers there; give one of them another path",
        "HealthChecks:ReadyPath and HealthChecks:LivePath are both /alive; only one of them answers there",
        "GET /left/{{_y}} matches the same paths as GET /left/{{_x}}",
    ],
)
def test_each_omitted_object_is_logged_once_with_its_remedy(service: Service, role: str, message: str) -> None:
    assert service.log.count(message.format(role=role)) == 1


def test_other_endpoints_are_served_and_omitted_ones_counted(service: Service) -> None:
    assert answer(service.get("/fine")) == (200, TEXT, "1")
    problem(service.get("/not-granted?id=1&name=x"), 404)
    service.wait_for_log("7 endpoints of 6 functions and 1 file, 1 worker")
    line = service.wait_for_log("14 left out: ")
    assert "broken.sql, closed.deep(), public.hidden_shelf, public.left_y(integer)" in line
    assert line.endswith("rowcall --endpoints lists why [rowcall]")


def test_granted_routine_is_served_after_a_reload(database: Database, service: Service, role: str) -> None:
    database.execute(f"grant execute on function not_granted(int, text) to {role}; notify rowcall, 'reload'")
    service.wait_for_log("schema snapshot 2 is served: 8 endpoints, 13 left out")
    service.wait_for_log("added GET /not-granted")
    assert answer(service.get("/not-granted?id=1&name=x")) == (200, TEXT, "1")


@pytest.mark.slow
def test_endpoints_command_lists_omitted_objects_with_reasons(
    tmp_path: Path, settings: dict[str, str], folder: Path
) -> None:
    done = rowcall(tmp_path, "--endpoints", *(f"--{key}={value}" for key, value in settings.items()))
    assert done.returncode == 0
    paths = [item["path"] for item in json.loads(done.stdout)]
    assert "/fine" in paths
    assert "/left/{_y}" not in paths
    assert f'  - {folder}/broken.sql: 2:8: error 42703: column "nothing" does not exist' in done.stderr
    assert "  - closed.deep(): left out, as the role" in done.stderr
    settings = settings | {"Service:SqlFileSource:ErrorMode": "Exit"}
    done = rowcall(tmp_path, "--endpoints", *(f"--{key}={value}" for key, value in settings.items()))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{folder}/broken.sql:2:8: error 42703" in done.stderr


@pytest.mark.slow
def test_validate_command_lists_omitted_objects_and_tables_once(tmp_path: Path, settings: dict[str, str]) -> None:
    values = [f"--{key}={value}" for key, value in settings.items()]
    done = rowcall(tmp_path, "--validate", "--json", "--Service:CrudSource:Enabled=true", *values)
    report = json.loads(done.stdout)
    assert done.returncode == 0
    of_tables = [warning for warning in report["startWarnings"] if warning.startswith("public.shelf")]
    assert [warning.partition(": ")[2][:20] for warning in of_tables] == [
        "'soon' is not an int",
        "'nil' is not an inte",
        "these operations are",
    ]
    assert any("GRANT SELECT ON public.hidden_shelf TO" in reason for reason in report["leftOut"])
    assert rowcall(tmp_path, "--validate", "--strict", *values).returncode == 1


def test_empty_service_logs_what_was_searched_and_how_to_begin(own_database: Database, serve_once: Serve) -> None:
    own_database.execute("create schema shop; create function shop.plain() returns int language sql as 'select 1'")
    service = serve_once(own_database)
    line = service.wait_for_log("There is nothing to serve")
    assert (
        f"1 functions and procedures that the role may execute in the schemas shop of database {own_database.name}"
        in line
    )
    assert "no tables (Service:CrudSource:Enabled is false)" in line
    assert "comment on function my_function is 'HTTP GET'" in line


def test_file_is_described_on_its_annotated_connection(
    own_database: Database, database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    own_database.execute("create type mood as enum ('calm'); create table people (id int, mood mood)")
    own_database.execute("insert into people values (1, 'calm')")
    folder = write_files(
        tmp_path / "sql",
        {
            "people.sql": "-- HTTP GET\n-- connection Other\n"
            "select id, mood, people as whole from people where id = :id",
            "gone.sql": "-- HTTP GET\n-- connection = away\nselect 1",
        },
    )
    nowhere = f"Host=127.0.0.1;Port={free_port()};Database=x"
    settings = {
        "ConnectionStrings:Other": own_database.conninfo,
        "ConnectionStrings:Away": nowhere,
        "ConnectionSettings:TestConnectionStrings": "false",
        "Service:UseMultipleConnections": "true",
        "Service:SqlFileSource:FilePattern": f"{folder}/*.sql",
        "Service:SqlFileSource:ErrorMode": "Skip",
        "Service:SqlFileSource:NestedJsonForCompositeTypes": "true",
    }
    service = serve_once(database, "", settings)
    assert service.get("/api/people?id=1").text == '[{"id":1,"mood":"calm","whole":{"id":1,"mood":"calm"}}]'
    assert "gone.sql: connection away, where it is described: " in service.log
    problem(service.get("/api/gone"), 404)
