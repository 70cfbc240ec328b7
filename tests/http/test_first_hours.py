"""First steps of a new user: access rules, their messages, and refusals."""

from __future__ import annotations

import gzip

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function closed() returns text language sql stable as $$ select 'in' $$;
comment on function closed() is 'HTTP GET /closed
authorize';
create function clerks() returns text language sql stable as $$ select 'in' $$;
comment on function clerks() is 'HTTP GET /clerks
authorize: clerk';
create function slip() returns text language sql stable as $$ select 'in' $$;
comment on function slip() is 'HTTP GET /slip
allow_anonymous
authorise boss';
create function open_by_accident() returns text language sql stable as $$ select 'in' $$;
comment on function open_by_accident() is 'HTTP GET /accident allow_anonymous';
create function change(_n int) returns text language sql as $$ select 'changed ' || _n $$;
comment on function change(int) is 'HTTP PATCH /things/{_n}
allow_anonymous';
create function look(_words text) returns text language sql stable as $$ select _words $$;
comment on function look(text) is 'HTTP QUERY /things
allow_anonymous';
create function sign_in(_name text) returns table (user_id text) language sql stable as $$
  select '7' where _name = 'kiri' $$;
comment on function sign_in(text) is 'HTTP POST /sign-in
login';
"""
SETTINGS = {
    "Service:RequiresAuthorization": None,
    "Auth:BearerTokenAuth": "true",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


def test_response_401_contains_no_reason(service: Service) -> None:
    for headers in ({}, {"authorization": "Bearer x.y.z"}):
        response = service.get("/closed", headers=headers)
        assert list(problem(response, 401)) == ["type", "title", "status"]
        assert response.headers["www-authenticate"].startswith("Bearer")
    service.wait_for_log("GET /closed: 401: GET /closed is for signed-in users")


def test_explain_unauthorized_adds_the_reason_to_401(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", SETTINGS | {"ErrorHandlingOptions:ExplainUnauthorized": "true"})
    assert "is for signed-in users" in problem(service.get("/closed"), 401)["detail"]


def test_bearer_scheme_is_case_insensitive(service: Service) -> None:
    token = service.post("/sign-in", json={"name": "kiri"}).json()["accessToken"]
    for word in ("Bearer", "bearer", "BEARER"):
        assert answer(service.get("/closed", headers={"authorization": f"{word} {token}"})) == (200, TEXT, "in")


@pytest.mark.parametrize("path", ["/clerks", "/slip", "/accident", "/api/open-by-accident"])
def test_misspelt_access_annotation_leaves_the_endpoint_out(service: Service, path: str) -> None:
    problem(service.get(path), 404)


def test_misspelt_access_annotations_are_logged(service: Service) -> None:
    assert "clerks(): a header cannot have the name of an annotation" in service.log
    assert "did you mean `authorize clerk`?" in service.log
    assert "clerks(): it is not exposed" in service.log
    assert "did you mean 'authorize'?" in service.log
    assert "open_by_accident(): `HTTP [method] [path]` takes two words" in service.log


def test_patch_and_query_methods_are_supported(service: Service) -> None:
    assert answer(service.request("PATCH", "/things/7", json={})) == (200, TEXT, "changed 7")
    assert answer(service.request("QUERY", "/things", json={"words": "old maps"})) == (200, TEXT, "old maps")


def test_compressed_request_body_gets_415(service: Service) -> None:
    body = gzip.compress(b'{"words":"old maps"}')
    response = service.request("QUERY", "/things", content=body, headers={"content-encoding": "gzip"})
    assert "gzip" in problem(response, 415)["detail"]
    assert response.headers["accept-encoding"] == "identity"
    plain = {"content-encoding": "identity"}
    assert service.request("QUERY", "/things", content=b'{"words":"x"}', headers=plain).status_code == 200
