"""Access rules: by default only signed-in users may call, and this is checked first (access-1 to access-4,
execution-2)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve

pytestmark = pytest.mark.attack

SQL = """
create function plain(_a int) returns text language sql stable as $$select 'plain'$$;
create function plain_strict(_a int default null) returns text language sql stable strict as $$select 'ran'$$;
create function opened() returns text language sql stable as $$select 'open'$$;
create function opened_alias() returns text language sql stable as $$select 'open'$$;
create function opened_strict(_a int) returns text language sql stable strict as $$select 'ran'$$;
create function closed() returns text language sql stable as $$select 'closed'$$;
create function closed_to_roles() returns text language sql stable as $$select 'closed'$$;
create function posted(_a int) returns text language sql as $$select 'posted'$$;
comment on function plain(int) is 'HTTP';
comment on function plain_strict(int) is 'HTTP';
comment on function opened() is E'HTTP\\nallow_anonymous';
comment on function opened_alias() is E'HTTP\\n@anonymous';
comment on function opened_strict(int) is E'HTTP\\nallow_anonymous';
comment on function closed() is E'HTTP\\nauthorize';
comment on function closed_to_roles() is E'HTTP\\nauthorize admin, clerk';
comment on function posted(int) is 'HTTP';
"""


@pytest.fixture(scope="module")
def by_default(database: Database, serve: Serve) -> Service:
    """Provide a service without settings: `Service:RequiresAuthorization` is true."""
    return serve(database, SQL, {"Service:RequiresAuthorization": None})


@pytest.fixture(scope="module")
def opened(database: Database, by_default: Service, serve: Serve) -> Service:
    """The parameter `by_default` only ensures that the functions are loaded."""
    return serve(database, settings={"Service:RequiresAuthorization": "false"})


@pytest.mark.parametrize(
    "path", ["plain?a=1", "plain", "plain?a=x", "plain?a=1&unknown=1", "plain-strict?a=", "closed", "closed-to-roles"]
)
def test_anonymous_caller_gets_401_before_parameter_validation(by_default: Service, path: str) -> None:
    members = problem(by_default.get(f"/api/{path}"), 401)
    assert members["title"] == "Unauthorized"


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"a":1}'])
def test_anonymous_caller_gets_401_before_body_validation(by_default: Service, body: bytes) -> None:
    problem(by_default.post("/api/posted", content=body), 401)


def test_log_names_the_remedy_for_401_and_the_response_does_not(by_default: Service) -> None:
    assert "detail" not in problem(by_default.get("/api/plain?a=1"), 401)
    entry = by_default.wait_for_log("/api/plain: 401:")
    assert "allow_anonymous" in entry
    assert "RequiresAuthorization" in entry


def test_hide_paths_makes_closed_endpoints_and_unknown_paths_identical(
    own_database: Database, serve_once: Serve
) -> None:
    """Status, headers and body are the same for closed endpoints, unknown paths and other methods."""
    settings = {"Service:RequiresAuthorization": None, "Service:HidePaths": "true", "Auth:BearerTokenAuth": "true"}
    login = (
        "create function sign_in() returns table (user_id int) language sql as 'select 1';"
        "comment on function sign_in() is E'HTTP POST\\nlogin';"
    )
    service = serve_once(own_database, SQL + login, settings)

    def shown(method: str, path: str, **headers: str) -> tuple[object, ...]:
        response = service.request(method, path, headers=headers)
        header = {name: value for name, value in response.headers.items() if name != "date"}
        return response.status_code, header, response.content

    closed = shown("GET", "/api/closed")
    assert closed[0] == 401
    for method, path in (("GET", "/api/nowhere"), ("POST", "/api/closed"), ("OPTIONS", "/api/closed"), ("GET", "/")):
        assert shown(method, path) == closed, (method, path)
    assert service.get("/api/opened").text == "open"
    token = service.post("/api/sign-in").json()["accessToken"]
    signed_in = {"Authorization": f"Bearer {token}"}
    statuses = [
        service.request(method, path, headers=signed_in).status_code
        for method, path in (("GET", "/api/nowhere"), ("POST", "/api/closed"), ("OPTIONS", "/api/closed"))
    ]
    assert statuses == [404, 405, 204]
    assert service.request("HEAD", "/api/closed", headers=signed_in).status_code == 200
    assert service.request("HEAD", "/api/closed").status_code == 401


@pytest.mark.parametrize("path", ["opened", "opened-alias"])
def test_allow_anonymous_annotation_makes_an_endpoint_public(by_default: Service, path: str) -> None:
    assert answer(by_default.get(f"/api/{path}")) == (200, TEXT, "open")


def test_strict_routine_with_null_returns_204_for_authorized_callers(by_default: Service) -> None:
    assert answer(by_default.get("/api/opened-strict?a=")) == (204, None, "")


def test_unknown_path_gets_404_before_authorization(by_default: Service) -> None:
    problem(by_default.get("/api/nowhere"), 404)


def test_wrong_method_gets_405_before_authorization(by_default: Service) -> None:
    problem(by_default.post("/api/plain"), 405)


def test_requires_authorization_false_opens_endpoints_without_authorize(opened: Service) -> None:
    assert answer(opened.get("/api/plain?a=1")) == (200, TEXT, "plain")
    problem(opened.get("/api/closed"), 401)
    problem(opened.get("/api/closed-to-roles"), 401)


def test_no_query_runs_for_an_anonymous_caller(database: Database, by_default: Service) -> None:
    requested = """select count(*) from pg_stat_activity
                where datname = current_database() and query like '%plain%' and pid <> pg_backend_pid()"""
    before = database.value(requested)
    by_default.get("/api/plain?a=1")
    after = database.value(requested)
    assert after == before
