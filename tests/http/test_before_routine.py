"""`Service:BeforeRoutineCommands` and `Service:WrapInTransaction` (execution-15 to execution-21)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, member_sql, with_cookie

SQL = """
create table log (what text, transaction xid8, at int generated always as identity);
create function note(_what text) returns void language sql
  as 'insert into log values (_what, pg_current_xact_id())';
create function guard(_word text) returns void language plpgsql as $$
begin
  if _word = 'forbidden' then raise exception 'not you'; end if;
  if _word = 'slow' then perform pg_sleep(30); end if;
end $$;
create function seen() returns text language sql stable as $$
  select concat_ws('|', current_setting('app.fixed', true), current_setting('app.word', true),
    current_setting('app.address', true), coalesce(current_setting('app.claim', true), 'unset')) $$;
create function noted() returns int language sql as $$
  insert into log values ('routine', pg_current_xact_id());
  select count(distinct transaction)::int from log $$;
create procedure proceed() language sql as $$ insert into log values (current_setting('app.word', true), null) $$;
comment on function seen() is 'HTTP';
create function setting() returns text language sql stable as $$ select current_setting('app.setting') $$;
comment on function setting() is 'HTTP';
comment on function noted() is 'HTTP POST';
comment on procedure proceed() is 'HTTP POST';
create sequence runs;
create function kept() returns text language sql as $$ select seen() || nextval('runs') $$;
comment on function kept() is E'HTTP GET\\ncached';
create function limited() returns text language sql stable as 'select seen()';
comment on function limited() is E'HTTP GET\\ntimeout 300ms';
"""

KEY = "Service:BeforeRoutineCommands"


def section(number: int, sql: str, *sources: tuple[str, str], enabled: str = "true") -> dict[str, str]:
    settings = {f"{KEY}:{number}:Sql": sql, f"{KEY}:{number}:Enabled": enabled}
    for index, (source, name) in enumerate(sources):
        settings[f"{KEY}:{number}:Parameters:{index}:Source"] = source
        settings[f"{KEY}:{number}:Parameters:{index}:Name"] = name
    return settings


SETTINGS = (
    {f"{KEY}:0": "select set_config('app.fixed', 'always', true)"}
    | section(1, "select set_config('app.word', $1, true)", ("RequestHeader", "X-Word"))
    | section(2, "select set_config('app.address', $1, true)", ("IpAddress", ""))
    | section(3, "select set_config('app.claim', $1, true)", ("Claim", "none"))
    | section(
        4,
        "select set_config('app.setting', format('%s %s', $3, concat($1, $4)), true)",
        ("RequestHeader", "X-Word"),
        ("IpAddress", ""),
        ("RequestHeader", "X-Other"),
    )
)


@pytest.fixture(scope="module")
def transaction_scoped(database: Database, serve: Serve) -> Service:
    """Provide a service with commands whose effects end with the transaction."""
    return serve(database, SQL, {**SETTINGS, "CacheOptions:Enabled": "true"})


def test_commands_run_before_every_call_with_values_of_the_request(transaction_scoped: Service) -> None:
    for number in range(40):  # long enough to have shared connections
        response = transaction_scoped.get("/api/seen", headers={"X-Word": f"w{number}"})
        assert answer(response) == (200, TEXT, f"always|w{number}|127.0.0.1|")


def test_cached_responses_are_shared_by_requests_with_equal_command_values(transaction_scoped: Service) -> None:
    """The commands may select a tenant."""
    words = ("one", "two", "one", "two")
    first, second, *again = [transaction_scoped.get("/api/kept", headers={"X-Word": word}).text for word in words]
    assert (first.split("|")[1], second.split("|")[1]) == ("one", "two")
    assert again == [first, second]


def test_responses_are_private_if_a_command_gets_a_claim(transaction_scoped: Service) -> None:
    headers = transaction_scoped.get("/api/seen").headers
    assert (headers["cache-control"], headers["vary"]) == ("private, no-cache", "Cookie, Authorization")


def test_missing_request_values_are_null(transaction_scoped: Service) -> None:
    assert answer(transaction_scoped.get("/api/seen")) == (200, TEXT, "always||127.0.0.1|")


def test_command_values_are_always_text(transaction_scoped: Service) -> None:
    """Also if PostgreSQL cannot infer their types; values that are unused or absent are no mistake."""
    response = transaction_scoped.get("/api/setting", headers={"X-Word": "w", "X-Other": "o"})
    assert answer(response) == (200, TEXT, "o w")


def test_repeated_headers_are_joined_by_comma(transaction_scoped: Service) -> None:
    response = transaction_scoped.get("/api/seen", headers=[("X-Word", "a"), ("x-word", "b")])
    assert answer(response) == (200, TEXT, "always|a,b|127.0.0.1|")


def test_values_are_never_sql(transaction_scoped: Service) -> None:
    word = "'; drop table log; --"
    assert answer(transaction_scoped.get("/api/seen", headers={"X-Word": word})) == (
        200,
        TEXT,
        f"always|{word}|127.0.0.1|",
    )


def test_commands_run_before_procedures(transaction_scoped: Service, database: Database) -> None:
    assert transaction_scoped.post("/api/proceed", headers={"X-Word": "for the procedure"}).status_code == 204
    assert database.value("select count(*) from log where what = 'for the procedure'") == 1


@pytest.fixture(scope="module")
def session_scoped(database: Database, serve: Serve) -> Service:
    """Provide a service with commands that may have session effects."""
    database.execute("truncate log")
    commands = (
        {f"{KEY}:0": "select note('first')"}
        | section(1, "select guard($1)", ("requestheader", "x-word"))
        | section(2, "select note('off')", enabled="false")
        | section(3, "select note($1)", ("RequestHeader", ""))
        | section(4, "select note($1)", ("Cookie", "x"))
        | section(5, " ")
        | section(6, "set app.fixed = 'for the session'")
    )
    return serve(database, "", commands)


def test_commands_share_the_transaction_of_the_call(session_scoped: Service, database: Database) -> None:
    database.execute("truncate log")
    assert answer(session_scoped.post("/api/noted")) == (200, TEXT, "1")
    assert [what for (what,) in database.fetch("select what from log order by at")] == ["first", "routine"]


def test_a_command_that_fails_stops_the_call(session_scoped: Service, database: Database) -> None:
    """No error policy applies, because the error is not that of the routine."""
    database.execute("truncate log")
    members = problem(session_scoped.post("/api/noted", headers={"X-Word": "forbidden"}), 500)
    assert (members["title"], members["detail"]) == ("P0001: not you", "P0001")
    assert database.value("select count(*) from log") == 0


def test_a_command_has_the_time_limit_of_the_call(session_scoped: Service) -> None:
    problem(session_scoped.get("/api/limited", headers={"X-Word": "slow"}), 504)


def test_session_state_of_a_command_is_reset_between_requests(session_scoped: Service) -> None:
    for _ in range(3):
        assert answer(session_scoped.get("/api/seen"))[2].startswith("for the session|")


@pytest.mark.parametrize(
    "line",
    [
        f"INF] {KEY}:2 is not enabled",
        f"WRN] {KEY}:3 is left out: a parameter from a RequestHeader needs a Name",
        f"WRN] {KEY}:4 is left out: the Source of a parameter is none of Claim, RequestHeader, IpAddress",
        f"WRN] {KEY}:5 is left out: it has no Sql",
    ],
)
def test_unusable_commands_are_logged_once(session_scoped: Service, line: str) -> None:
    assert session_scoped.log.count(line) == 1


@pytest.mark.parametrize(
    ("command", "expected_error"),
    [
        ("select guard('forbidden')", ("P0001: not you", "P0001")),
        ("select missing()", ("42883: function missing() does not exist", "42883")),
    ],
)
def test_a_command_that_fails_stops_an_upload(
    database: Database, serve: Serve, tmp_path: Path, command: str, expected_error: tuple[str, str]
) -> None:
    """As for any other call: it is neither an error of the routine nor of a changed schema."""
    sql = """
    create or replace function received(_files json) returns json language sql as 'select _files';
    comment on function received(json) is E'HTTP POST\\nupload for file_system\\nparam _files is upload metadata';
    """
    uploads = {
        "Service:UploadOptions:Enabled": "true",
        "Service:UploadOptions:UploadHandlers:FileSystemPath": str(tmp_path),
    }
    service = serve(database, sql, {f"{KEY}:0": command, **uploads})
    members = problem(service.post("/api/received", files={"f": ("a.txt", b"text")}), 500)
    assert (members["title"], members["detail"]) == expected_error
    assert list(tmp_path.iterdir()) == []


WRAPPED = """
create table steps (name text, setting text);
create procedure plain() language plpgsql as $$
begin insert into steps values ('plain', current_setting('statement_timeout')); end $$;
comment on procedure plain() is E'HTTP POST\\ntimeout 7s';
create procedure failing() language plpgsql as $$
begin insert into steps values ('failing', null); raise exception 'no'; end $$;
comment on procedure failing() is E'HTTP POST\\ntimeout 7s';
"""


@pytest.mark.parametrize("wrapped", ["true", "false"])
def test_procedure_settings_apply_with_and_without_wrapping(
    own_database: Database, serve_once: Serve, wrapped: str
) -> None:
    service = serve_once(own_database, WRAPPED, {"Service:WrapInTransaction": wrapped})
    assert service.post("/api/plain").status_code == 204
    problem(service.post("/api/failing"), 400)
    assert own_database.fetch("select * from steps") == [("plain", "7s")]


@pytest.mark.slow
def test_the_application_name_can_contain_the_request(own_database: Database, serve_once: Serve) -> None:
    sql = "create function name() returns text language sql stable as $$ select current_setting('application_name') $$;"
    settings = {"ConnectionSettings:UseJsonApplicationName": "true", "ApplicationName": "shop"}
    service = serve_once(own_database, sql + "comment on function name() is 'HTTP'", settings)
    for number in range(40):  # long enough to have shared connections
        response = service.get("/api/name", headers={"X-NpgsqlRest-ID": str(number)})
        assert response.text == f'{{"app":"shop","uid":null,"id":"{number}"}}'
    assert len(service.get("/api/name", headers={"X-NpgsqlRest-ID": "x" * 99}).text) == 63
    # No notice about a name that is too long.
    assert "truncated" not in service.log


def test_claims_of_signed_in_callers_are_command_values(own_database: Database, serve_once: Serve) -> None:
    """Also without required sign-in; several claims of one type are an array."""
    sql = (
        "create function claimed() returns text language sql stable as $$"
        " select current_setting('app.name') || current_setting('app.roles') || current_setting('application_name') $$;"
        "comment on function claimed() is E'HTTP\\nallow_anonymous';"
    )
    commands = section(0, "select set_config('app.name', $1, true)", ("Claim", "user_name")) | section(
        1, "select set_config('app.roles', $1, true)", ("Claim", "user_roles")
    )
    shown = {"ConnectionSettings:UseJsonApplicationName": "true", "ApplicationName": "x"}
    service = serve_once(own_database, member_sql() + sql, EVERY_SCHEME | commands | shown)
    signed_in = with_cookie(service)
    assert service.get("/api/claimed", headers=signed_in).text == (
        'kiri{"boss","gate"}{"app":"x","uid":"41","id":null}'
    )
    assert service.get("/api/claimed").text == '{"app":"x","uid":null,"id":null}'


@pytest.mark.parametrize(("wrapped", "row_count"), [("true", 0), ("false", 1)])
def test_a_file_of_several_statements_is_one_transaction_when_wrapped(
    own_database: Database, serve_once: Serve, tmp_path: Path, wrapped: str, row_count: int
) -> None:
    own_database.execute("create table steps (name text)")
    text = "-- HTTP POST\ninsert into steps values ('first');\ninsert into steps select 1 / 0;"
    write_files(tmp_path, {"two.sql": text})
    service = serve_once(own_database, "", file_settings(tmp_path) | {"Service:WrapInTransaction": wrapped})
    assert problem(service.post("/api/two"), 500)["detail"] == "22012"
    assert own_database.value("select count(*) from steps") == row_count
