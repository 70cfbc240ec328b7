"""The response to an invalid request lists all of its mistakes with their places."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create type mood as enum ('calm', 'keen');
create type order_line as (track_id int, quantity int, mood mood);
create function find_tracks(_genre int default null, _since date default null) returns text language sql stable
as $$ select 'all' || coalesce(_genre::text, '') $$;
comment on function find_tracks(int, date) is 'HTTP GET /tracks';
create function find_openly(_genre int default null) returns text language sql stable as $$ select 'all' $$;
comment on function find_openly(int) is 'HTTP GET /open
unknown_query_parameters ignore
parameter_mismatch_status 422';
create function buy(_customer int, lines order_line[], _note text default null) returns text language sql
as $$ select _customer || array_length(lines, 1)::text $$;
comment on function buy(int, order_line[], text) is 'HTTP POST /buy';
create function secretly(_pin int, _name text) returns text language sql as $$ select 'in' $$;
comment on function secretly(int, text) is 'HTTP POST /secretly
sensitive';
create function needed(_a int) returns text language sql stable as $$ select 'in' $$;
comment on function needed(int) is 'HTTP GET /needed
parameter_mismatch_status 422';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL)


def places(members: dict[str, object]) -> list[str]:
    errors = members["errors"]
    assert isinstance(errors, list)
    return [error["path"] for error in errors]


@pytest.mark.parametrize("query", ["genre=rock", "genre=1&since=soon", "genre=1&genre=2", "since=2026-02-30"])
def test_an_invalid_filter_is_refused_and_returns_no_rows(service: Service, query: str) -> None:
    problem(service.get(f"/tracks?{query}"), 400)


def test_all_errors_of_a_query_are_reported(service: Service) -> None:
    members = problem(service.get("/tracks?genre=rock&since=soon"), 400)
    assert members["detail"] == "parameter 'genre' (integer): 'rock' is not an integer (and 1 more, see errors)"
    assert members["errors"] == [
        {"parameter": "genre", "path": "genre", "message": "parameter 'genre' (integer): 'rock' is not an integer"},
        {"parameter": "since", "path": "since", "message": "parameter 'since' (date): 'soon' is not a date"},
    ]


def test_all_errors_of_a_body_are_reported_with_their_path(service: Service) -> None:
    body = {"customer": "me", "lines": [{"trackId": 1}, {"trackId": 2, "quantity": "x"}, {"trackId": 1.5}]}
    members = problem(service.post("/buy", json=body), 400)
    assert places(members) == ["customer", "lines[1].quantity", "lines[2].trackId"]
    assert members["errors"][2] == {
        "parameter": "lines",
        "path": "lines[2].trackId",
        "message": "parameter 'lines[2].trackId' (integer): '1.5' is not an integer",
    }


def test_errors_found_by_postgresql_are_reported_with_the_parameter(service: Service) -> None:
    members = problem(service.post("/buy", json={"customer": 1, "lines": [{"mood": "odd"}]}), 400)
    assert places(members) == ["lines"]
    assert 'invalid input value for enum mood: "odd"' in members["detail"]


def test_missing_and_unknown_names_are_404_by_default(service: Service) -> None:
    assert places(problem(service.post("/buy", json={"lines": [], "nots": "x"}), 404)) == ["nots", "customer"]


def test_a_comment_can_choose_the_status_and_ignore_unknown_parameters(service: Service) -> None:
    problem(service.get("/needed"), 422)
    problem(service.get("/needed?a=1&b=2"), 422)
    assert answer(service.get("/open?utm_source=mail")) == (200, TEXT, "all")


def test_errors_of_a_sensitive_endpoint_contain_no_values(service: Service) -> None:
    response = service.post("/secretly", json={"pin": "abc123"})
    members = problem(response, 404)
    assert places(members) == ["name", "pin"]
    assert "abc123" not in response.text


def test_settings_choose_status_and_unknown_parameters_for_all_endpoints(database: Database, serve_once: Serve) -> None:
    settings = {"Service:ParameterMismatchStatusCode": "400", "Service:UnknownQueryParameters": "Ignore"}
    service = serve_once(database, "", settings)
    problem(service.post("/buy", json={"lines": []}), 400)
    assert answer(service.get("/tracks?utm_source=mail&genre=7")) == (200, TEXT, "all7")


def test_unusable_values_can_be_handled_as_by_npgsqlrest(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {"Service:UnusableValues": "Established"})
    assert answer(service.get("/tracks?genre=rock")) == (200, TEXT, "all")
    assert answer(service.get("/tracks?genre=1&genre=2")) == (200, TEXT, "all12")
    problem(service.post("/buy", json={"customer": "me", "lines": []}), 500)
