"""Default responses to errors of PostgreSQL, and the parts that clients receive."""

from __future__ import annotations

import json

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create extension if not exists btree_gist;
create table artist (
  id int primary key, secret_name text not null unique, rating smallint check (rating between 1 and 5),
  during int4range, exclude using gist (during with &&));
create table album (id int primary key, artist_id int references artist);
insert into artist values (1, 'Ann', 5, '[1,5)');
insert into album values (1, 1);
create function add_artist(_id int, _name text, _rating int, _during text) returns void language sql
as $$ insert into artist values (_id, _name, _rating, _during::int4range) $$;
comment on function add_artist(int, text, int, text) is 'HTTP POST /artists';
create function drop_artist(_id int) returns void language sql as $$ delete from artist where id = _id $$;
comment on function drop_artist(int) is 'HTTP POST /artists/drop';
create domain needed as text not null;
create function take_name(_name text) returns text language plpgsql as $$
declare taken needed := ''; begin taken := _name; return taken; end $$;
comment on function take_name(text) is 'HTTP POST /names';
create function cast_text(_text text, _type text) returns text language plpgsql stable as $$
declare found text; begin execute format('select cast(%L as %s)::text', _text, _type) into found; return found; end $$;
comment on function cast_text(text, text) is 'HTTP GET /cast';
create function search(_pattern text default '', _like text default '%', _most int default 9, _first int default 0)
returns setof text language sql stable as $$
    select name from (values ('Ann')) known (name) where name ~ _pattern and name like _like
    limit _most offset _first $$;
comment on function search(text, text, int, int) is 'HTTP GET /search';
create function raise_code(_code text) returns text language plpgsql stable as $$ begin
  raise 'said so' using errcode = _code, detail = 'in detail', hint = 'try this'; end $$;
comment on function raise_code(text) is 'HTTP GET /raise';
create function raise_plainly(_code text) returns text language plpgsql stable as $$ begin
  raise 'said so' using errcode = _code; end $$;
comment on function raise_plainly(text) is 'HTTP GET /plainly';
create function divide() returns int language sql stable
as $$ select 1 / (select count(*)::int from album where id < 0) $$;
comment on function divide() is 'HTTP GET /divide';
create function no_row() returns int language sql as $$ delete from album where id < 0 returning 1 $$;
comment on function no_row() is 'HTTP GET /elsewhere
connection nowhere';
create function slowly() returns text language plpgsql as $$ begin perform pg_sleep(30); return 'never'; end $$;
comment on function slowly() is 'HTTP GET /slowly
timeout 100ms';
create function show_headers(_headers json default null) returns text language sql stable
as $$ select string_agg(key, ' ') from json_object_keys(_headers) key where key ilike 'x-%' $$;
comment on function show_headers(json) is 'HTTP GET /headers';
"""
ANN = {"id": 2, "name": "Bob", "rating": 5, "during": "[7,9)"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(
        database, SQL, {"Service:CustomRequestHeaders:x-myTenant": "north", "Log:MinimalLevels:rowcall.http": "Off"}
    )


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"id": 1}, 409, "23505"),
        ({"name": "Ann"}, 409, "23505"),
        ({"during": "[3,8)"}, 409, "23P01"),
        ({"rating": 9}, 400, "23514"),
        ({"rating": 70000}, 400, "22003"),
    ],
)
def test_constraint_violation_is_a_client_error_without_names(
    service: Service, change: dict[str, object], status: int, code: str
) -> None:
    response = service.post("/artists", json=ANN | change)
    members = problem(response, status)
    assert members["detail"] == code
    for name in ("secret_name", "artist", "_key", "_pkey", "_check", "_excl"):
        assert name not in response.text


def test_not_null_violation_names_only_the_column(service: Service) -> None:
    response = service.post("/artists", json=ANN | {"name": None})
    members = problem(response, 400)
    assert (members["title"], members["detail"]) == ("A value is missing in column 'secret_name'", "23502")
    assert list(members) == ["type", "title", "status", "detail"]
    assert "artist" not in response.text


def test_not_null_domain_violation_names_no_column(service: Service) -> None:
    members = problem(service.post("/names", json={"name": None}), 400)
    assert (members["title"], members["detail"]) == ("A value is missing", "23502")


def test_raised_not_null_violation_keeps_its_message(service: Service) -> None:
    assert problem(service.get("/plainly?code=23502"), 400)["title"] == "said so"


def test_deleting_a_referenced_row_gets_409(service: Service) -> None:
    response = service.post("/artists/drop", json={"id": 1})
    assert problem(response, 409)["detail"] == "23503"
    assert "album" not in response.text


@pytest.mark.parametrize(
    ("text", "type", "code"),
    [
        ("x", "int", "22P02"),
        ("70000", "smallint", "22003"),
        ("soon", "date", "22007"),
        ("2026-02-30", "date", "22008"),
        ("2026-02-03 10:00+99", "timestamptz", "22009"),
        ("99999999999 years", "interval", "22015"),
    ],
)
def test_invalid_cast_is_a_client_error(service: Service, text: str, type: str, code: str) -> None:
    assert problem(service.get("/cast", params={"text": text, "type": type}), 400)["detail"] == code


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("pattern=%28", "2201B"),
        ("like=%5C", "22025"),
        ("most=-1", "2201W"),
        ("first=-1", "2201X"),
    ],
)
def test_data_exception_in_a_search_is_a_client_error(service: Service, query: str, code: str) -> None:
    """Values that can be cast, but that PostgreSQL refuses in use (class 22)."""
    assert service.get("/search").json() == ["Ann"]
    assert problem(service.get(f"/search?{query}"), 400)["detail"] == code


@pytest.mark.parametrize("status", [404, 409, 418, 422, 451, 503])
def test_pt_sqlstate_sets_the_status(service: Service, status: int) -> None:
    response = service.get(f"/plainly?code=PT{status}")
    assert (response.status_code, response.json()["title"]) == (status, "said so")


@pytest.mark.parametrize("code", ["PT200", "PT302", "PTabc", "PT600"])
def test_pt_sqlstates_without_an_error_status_get_500(service: Service, code: str) -> None:
    assert problem(service.get(f"/plainly?code={code.upper()}"), 500)["title"] == f"{code.upper()}: said so"


def test_raised_errors_are_returned_with_detail_and_hint(service: Service) -> None:
    members = problem(service.get("/raise?code=P0001"), 400)
    assert list(members.values())[1:] == ["said so", 400, "in detail", "try this", "P0001"]
    assert list(members)[3:] == ["detail", "hint", "sqlstate"]
    assert problem(service.get("/raise?code=23505"), 409)["title"] == "said so"


def test_raised_error_without_detail_has_its_sqlstate_as_detail(service: Service) -> None:
    assert list(problem(service.get("/plainly?code=P0001"), 400)) == ["type", "title", "status", "detail"]


def test_timeout_response_has_the_standard_members(service: Service) -> None:
    assert list(problem(service.get("/slowly"), 504)) == ["type", "title", "status"]


def test_every_500_is_logged_even_without_request_logging(service: Service) -> None:
    problem(service.get("/divide"), 500)
    service.wait_for_log("22012")
    problem(service.get("/elsewhere"), 500)
    service.wait_for_log("GET /elsewhere: Connection name nowhere could not be found")
    entries = [line for line in service.log.splitlines() if "GET /elsewhere: Connection" in line]
    assert len(entries) == 1
    assert "ERR" in entries[0]


def test_custom_request_headers_keep_their_spelling(service: Service) -> None:
    assert "x-myTenant" in service.get("/headers").text.split()


def test_configuration_shows_constraint_names_and_hides_details(database: Database, serve_once: Serve) -> None:
    settings = {
        "ErrorHandlingOptions:IncludeConstraintNames": "true",
        "ErrorHandlingOptions:IncludeRaisedDetails": "false",
    }
    service = serve_once(database, "", settings)
    members = problem(service.post("/artists", json=ANN | {"name": "Ann"}), 409)
    assert (members["constraint"], members["table"]) == ("artist_secret_name_key", "artist")
    assert "artist_secret_name_key" in members["title"]
    assert json.dumps(problem(service.get("/raise?code=P0001"), 400)).count("detail") == 1
