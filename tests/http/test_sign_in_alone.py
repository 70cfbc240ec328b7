"""Signing in where only cookies are on: bodies, paths of the configuration, hashes, upgrades."""

from __future__ import annotations

import pytest

from rowcall.core.auth.password_hash import hash_password, iterations_of, verify_password
from tests.harness.database import Database
from tests.harness.expect import JSON, TEXT, answer, problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import KIRI, member_sql, sign_in

AUTHENTICATION = "Service:AuthenticationOptions:"

SQL = """
create function with_body(_text text) returns table (user_id int, body text) language sql as $$select 1, _text$$;
comment on function with_body(text) is E'HTTP POST\\nlogin';

create function by_path() returns table (user_id int, tags text[], hash text) language sql
as $$select 7, array['a'], null::text$$;
comment on function by_path() is E'HTTP POST /enter';
create procedure leave() language sql as '';
comment on procedure leave() is E'HTTP POST /leave\\nallow_anonymous';

create function hashed(_password text, _again text default 'x', _copy text default null) returns text[] language sql
as $$select array[_password, _again, _copy]$$;
comment on function hashed(text, text, text) is E'HTTP POST\\nallow_anonymous\\nparameter_hash password
param _copy is hash of _again\\nvalidate _password using not_empty';

create function hashed_beside(_text text, _hash text) returns text language sql as $$select _hash$$;
comment on function hashed_beside(text, text) is E'HTTP POST\\nallow_anonymous\\nparam _hash is hash of _text';
create function hashed_beside(_text text, _hash text, _more text) returns text language sql as $$select _more$$;
comment on function hashed_beside(text, text, text) is E'HTTP POST\\nallow_anonymous\\nparam _hash is hash of _text';

create function plain() returns text language sql stable as $$select 'fast'$$;
comment on function plain() is E'HTTP GET\\nallow_anonymous';

create procedure renew(_id text, _hash text) language sql
as $$update member set secret = _hash where id = _id::int and _hash is not null$$;
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {
        "Auth:CookieAuth": "true",
        AUTHENTICATION + "SerializeAuthEndpointsResponse": "true",
        AUTHENTICATION + "LoginPath": "/Enter",
        AUTHENTICATION + "LogoutPath": "/leave",
        AUTHENTICATION + "PasswordHashIterations": "650000",
        AUTHENTICATION + "PasswordVerificationSucceededCommand": "call renew($2, $4)",
    }
    return serve(database, member_sql() + SQL, settings)


@pytest.mark.parametrize("text", ["hi kiri", '{"a":1}', ""])
def test_the_body_column_is_sent_unchanged(service: Service, text: str) -> None:
    response = service.post("/api/with-body", json={"text": text})
    assert answer(response) == (200, JSON, text)
    assert "set-cookie" in response.headers


def test_configured_paths_sign_in_and_out(service: Service) -> None:
    response = service.post("/enter")
    assert "set-cookie" in response.headers
    assert "max-age=0" not in service.post("/leave").headers["set-cookie"]
    assert service.post("/leave").headers["set-cookie"].startswith(".AspNetCore.Cookies=;")


def test_the_login_row_is_returned_without_its_hash(service: Service) -> None:
    assert answer(service.post("/enter")) == (200, JSON, '[{"userId":7,"tags":["a"]}]')


def test_an_anonymous_caller_gets_a_cookie_challenge(service: Service) -> None:
    service.client.cookies.clear()
    response = service.get("/api/closed")
    assert response.headers["www-authenticate"] == 'Cookie cookie-name=".AspNetCore.Cookies"'
    problem(response, 401)


@pytest.mark.slow
def test_parameters_are_hashed(service: Service) -> None:
    first, again, copy = service.post("/api/hashed", json={"password": "one", "again": "two", "copy": "mine"}).json()
    assert verify_password("one", first)
    assert again == "two"
    assert verify_password("two", copy)
    assert service.post("/api/hashed", json={"password": "one", "again": None}).json()[1:] == [None, None]
    problem(service.post("/api/hashed", json={"password": ""}), 400)


def test_the_source_of_a_hashed_parameter_is_required(service: Service) -> None:
    response = service.post("/api/hashed-beside", json={"hash": "mine"})
    # Nothing chooses between the two routines there: the one made last says all that it lacks.
    assert problem(response, 404)["detail"] == "parameter 'text' (text) is required (and 1 more, see errors)"
    assert verify_password("x", service.post("/api/hashed-beside", json={"text": "x"}).text)
    assert answer(service.post("/api/hashed-beside", json={"text": ""})) == (200, TEXT, "")


def test_an_overload_is_selected_without_its_hashed_parameter(service: Service) -> None:
    assert verify_password("x", service.post("/api/hashed-beside", json={"text": "x"}).text)
    assert answer(service.post("/api/hashed-beside", json={"text": "x", "more": "m"})) == (200, TEXT, "m")


@pytest.mark.slow
def test_a_hash_with_fewer_iterations_is_replaced(service: Service, database: Database) -> None:
    before = str(database.value("select secret from member where nick = 'kiri'"))
    assert iterations_of(before) == 600_000
    assert sign_in(service).status_code == 200
    after = str(database.value("select secret from member where nick = 'kiri'"))
    assert iterations_of(after) == 650_000
    assert verify_password(KIRI, after)
    assert sign_in(service).status_code == 200
    assert database.value("select secret from member where nick = 'kiri'") == after


@pytest.mark.slow
def test_a_hash_from_hash_password_is_accepted(service: Service, database: Database) -> None:
    database.execute(f"update member set secret = '{hash_password('new')}' where nick = 'mo'")
    assert sign_in(service, "mo", "new").status_code == 200
