"""What annotations do on routines they do on files: a look at each capability from there (sql-files-29 to
sql-files-32)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, answer, problem
from tests.harness.service import Service
from tests.harness.sql_files import file_settings, write_files
from tests.http.conftest import Serve

SCHEMA = """
create type dims as (w int, h int);
create table person (id int primary key, name text, roles text[], secret text);
insert into person values (7, 'Ada', '{keeper}', 'plants');
create table visit (who text);
create table call_log (n int generated always as identity, place text, who text);
create function note(_place text) returns text language sql as $$
  insert into call_log (place, who) values (_place, current_setting('request.user_id', true)) returning place $$;
create procedure note_twice() language plpgsql as $$
begin perform note('procedure'); commit; perform note('behind its commit'); end $$;
"""

FILES = {
    "sign_in.sql": "-- HTTP POST\n-- login\n-- allow_anonymous\n"
    "select id as user_id, name as user_name, roles as user_roles from person where name = :name and secret = :secret",
    "sign_in_first.sql": "-- HTTP POST\n-- login\n-- allow_anonymous\n"
    "select id as user_id, name as user_name from person where name = :name;\n"
    "-- @result none\ndelete from person returning id",
    "me.sql": "-- HTTP GET\n-- authorize\n-- user_parameters\nselect :_user_id as me, :_user_name as name",
    "me_or_anonymous.sql": "-- HTTP GET\n-- allow_anonymous\n-- user_parameters\n"
    "select :a::int as a, :_user_id::int as me, :b::int as b",
    "me_twice.sql": "-- HTTP GET\n-- authorize\n-- user_parameters\nselect :_user_id;\nselect :a::int, :_user_id",
    "context.sql": "-- HTTP GET\n-- authorize\n-- user_context\n"
    "insert into visit values (current_setting('request.user_id', true)) returning who;\n"
    "select current_setting('request.user_id', true) as me;\nbegin;\n"
    "select current_setting('request.user_id', true) as in_block;\ncommit;",
    "commands.sql": "-- HTTP POST\n-- authorize\n-- user_context\n"
    "do $$ begin perform note('block'); end $$;\ncreate temp table noted on commit drop as select note('table');\n"
    "begin;\ndo $$ begin perform note('inner block'); end $$;\ncommit;",
    "commits.sql": "-- HTTP POST\n-- authorize\n-- user_context\n"
    "call note_twice();\nselect note('select'); -- @skip\nbegin;\nselect note('inner select'); -- @skip\ncommit;\n"
    "do $$ begin perform note('block'); commit; perform note('rest of the block'); end $$;",
    "anonymous.sql": "-- HTTP GET\n-- allow_anonymous\n"
    "select coalesce(current_setting('request.user_id', true), '') as who",
    "keepers.sql": "-- HTTP GET\n-- authorize keeper\nselect 1 as n",
    "others.sql": "-- HTTP GET\n-- authorize other\nselect 1 as n",
    "resolved.sql": "-- HTTP GET\n-- allow_anonymous\n-- owner = select name from person where id = {id}::int\n"
    "select :id::int as id, :owner as owner",
    "resolved_number.sql": "-- HTTP GET\n-- allow_anonymous\n-- param $1 id\n-- param $2 owner\n"
    "-- owner = select name from person where id = {id}\nselect $1::int as id, $2 as owner",
    "checked.sql": "-- HTTP GET\n-- allow_anonymous\n-- validate _mail using email\nselect :_mail as mail, 1 as n",
    "as_table.sql": "-- HTTP GET\n-- allow_anonymous\n-- table_format = html\nselect 1 as id, (4,2)::dims as size",
    "raw_body.sql": "-- HTTP POST\n-- allow_anonymous\n-- body_parameter_name text\n"
    "select :text as text, :n::int as n",
    "headers.sql": "-- HTTP GET\n-- allow_anonymous\n-- param :_headers default null\n"
    "select :_headers::json ->> 'X-Test' as test, 1 as n",
    "metadata.sql": "-- HTTP POST\n-- allow_anonymous\n-- upload\n-- param $1 meta is upload metadata\n"
    "-- param meta type is jsonb\nselect $1 -> 0 as meta",
    "no_null.sql": "-- HTTP GET\n-- allow_anonymous\n-- query_string_null_handling null_literal\nselect :a as a",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Service:
    folder = write_files(tmp_path_factory.mktemp("files"), FILES)
    settings = {
        **file_settings(folder),
        "Auth:CookieAuth": "true",
        "Service:TableFormatOptions:Enabled": "true",
        "Service:RequiresAuthorization": "true",
        "Service:CommandTimeout": "20s",
    }
    return serve(database, SCHEMA, settings, workers=2)


@pytest.fixture
def signed_in(service: Service) -> dict[str, str]:
    response = service.post("/api/sign-in", content=b'{"name":"Ada","secret":"plants"}')
    assert response.status_code == 200, response.text
    cookie = response.headers["set-cookie"].partition(";")[0]
    service.client.cookies.clear()
    return {"cookie": cookie}


def test_a_file_signs_in(service: Service) -> None:
    problem(service.post("/api/sign-in", content=b'{"name":"Ada","secret":"wrong"}'), 401)


def test_of_a_file_that_signs_in_only_the_first_statement_runs(service: Service, database: Database) -> None:
    response = service.post("/api/sign-in-first", content=b'{"name":"Ada"}')
    assert response.status_code == 200
    assert "set-cookie" in response.headers
    assert database.value("select count(*) from person") > 0
    service.wait_for_log("only its first statement is run")


def test_claims_fill_parameters(service: Service, signed_in: dict[str, str]) -> None:
    problem(service.get("/api/me"), 401)
    assert answer(service.get("/api/me", headers=signed_in)) == (200, JSON, '[{"me":"7","name":"Ada"}]')
    response = service.get("/api/me-or-anonymous?a=1&b=2", headers=signed_in)
    assert answer(response) == (200, JSON, '[{"a":1,"me":7,"b":2}]')
    response = service.get("/api/me-twice?a=1", headers=signed_in)
    assert answer(response) == (200, JSON, '{"result1":["7"],"result2":[{"int4":1,"column2":"7"}]}')


def test_claims_are_settings_of_every_transaction(service: Service, signed_in: dict[str, str]) -> None:
    response = service.get("/api/context", headers=signed_in)
    if response.status_code == 405:
        response = service.request("PUT", "/api/context", headers=signed_in, content=b"")
    assert answer(response) == (200, JSON, '{"result1":["7"],"result2":["7"],"result3":["7"]}')


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("commands", ["block", "table", "inner block"]),
        ("commits", ["procedure", "behind its commit", "select", "inner select", "block", "rest of the block"]),
    ],
)
def test_every_statement_has_the_settings_of_its_request(
    service: Service, database: Database, signed_in: dict[str, str], path: str, places: list[str]
) -> None:
    database.execute("truncate call_log")
    response = service.post(f"/api/{path}", headers=signed_in)
    assert response.status_code == 200, response.text
    assert database.fetch("select place, who from call_log order by n") == [(place, "7") for place in places]
    for _ in range(8):
        assert answer(service.get("/api/anonymous")) == (200, JSON, '[""]')


def test_roles_are_required_for_files(service: Service, signed_in: dict[str, str]) -> None:
    assert service.get("/api/keepers", headers=signed_in).status_code == 200
    problem(service.get("/api/others", headers=signed_in), 403)


def test_parameters_are_resolved_and_validated(service: Service) -> None:
    assert answer(service.get("/api/resolved?id=7")) == (200, JSON, '[{"id":7,"owner":"Ada"}]')
    assert answer(service.get("/api/resolved-number?id=7")) == (200, JSON, '[{"id":7,"owner":"Ada"}]')
    assert service.get("/api/checked?Mail=unknown").status_code in (400, 404)


def test_a_html_table_shows_a_composite_as_its_text(service: Service) -> None:
    response = service.get("/api/as-table")
    assert response.status_code == 200
    assert "<td>1</td><td>(4,2)</td>" in response.text


def test_the_whole_body_may_be_a_parameter(service: Service) -> None:
    assert answer(service.post("/api/raw-body?n=3", content=b"a text")) == (200, JSON, '[{"text":"a text","n":3}]')


def test_request_headers_precede_the_default_of_the_comment(service: Service) -> None:
    response = service.get("/api/headers", headers={"X-Test": "v"})
    assert answer(response) == (200, JSON, '[{"test":"v","n":1}]')
    # What a client sends for it is passed over.
    assert answer(service.get('/api/headers?headers={"X-Test":"own"}')) == (200, JSON, '[{"test":null,"n":1}]')


def test_a_parameter_that_receives_upload_metadata_can_be_renamed(service: Service) -> None:
    assert "meta is upload metadata" not in service.log
    assert "'meta'" in problem(service.post("/api/metadata"), 404)["detail"]


def test_the_word_null_is_null_if_configured(service: Service) -> None:
    assert answer(service.get("/api/no-null?a=null")) == (200, JSON, "[null]")
