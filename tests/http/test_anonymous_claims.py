"""Claims of a caller never come from the request itself, whether the caller has signed in or not."""

from __future__ import annotations

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import KIRI, bearer, member_sql, tokens

pytestmark = pytest.mark.attack

SQL = """
create function needed(_user_id text, _n int default 0) returns text language sql stable
as $$select coalesce(_user_id, 'anonymous') || _n$$;
comment on function needed(text, int) is E'HTTP GET\\nallow_anonymous\\nuser_parameters\\nX-User: {_user_id}';
create function defaulted(
    _user_id text default 'default', _user_roles text[] default null, _user_claims json default null)
returns text language sql stable
as $$select concat_ws('|', _user_id, coalesce(array_to_string(_user_roles, '+'), 'none'),
    coalesce(_user_claims::text, 'none'))$$;
comment on function defaulted(text, text[], json) is E'HTTP GET\\nallow_anonymous\\nuser_parameters';
create function posted(_user_id text, _user_roles text[], _note text) returns text language sql volatile
as $$select concat_ws('|', coalesce(_user_id, 'anonymous'), coalesce(array_to_string(_user_roles, '+'), 'none'),
    _note)$$;
comment on function posted(text, text[], text) is E'HTTP POST\\nallow_anonymous\\nuser_parameters';
create function in_path(_user_id text) returns text language sql stable as $$select coalesce(_user_id, 'anonymous')$$;
comment on function in_path(text) is E'HTTP GET /users/{_user_id}\\nallow_anonymous\\nuser_parameters';
create function over(_user_id text, _n int) returns text language sql stable
as $$select coalesce(_user_id, 'anonymous') || _n$$;
comment on function over(text, int) is E'HTTP GET\\nallow_anonymous\\nuser_parameters';
create function over(_user_id text, _n int, _m int) returns text language sql stable
as $$select coalesce(_user_id, 'anonymous') || _n || _m$$;
comment on function over(text, int, int) is E'HTTP GET\\nallow_anonymous\\nuser_parameters';
create function seen(_headers json default '{}') returns text language sql stable as $$select _headers->>'X-Proof'$$;
comment on function seen(json) is E'HTTP GET\\nallow_anonymous';
create function seen_posted(_headers json default '{}') returns text language sql volatile
as $$select _headers->>'X-Proof'$$;
comment on function seen_posted(json) is E'HTTP POST\\nallow_anonymous';

create function flat_login(_who text, _pass text) returns table (status boolean, hash text, user_id int)
language sql stable as $$select true, secret, id from member where nick = _who$$;
comment on function flat_login(text, text) is E'HTTP POST\\nlogin';
"""

OPEN_AGAIN = "Service:AuthenticationOptions:DistinguishWrongPasswords"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, {"Auth:BearerTokenAuth": "true"})


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("needed", "anonymous0"),
        ("needed?userId=41", "anonymous0"),
        ("needed?userId=41&n=5", "anonymous5"),
        ("defaulted", "default|none|none"),
        ("defaulted?userId=41&userRoles=boss&userRoles=gate", "default|none|none"),
        ('defaulted?userClaims={"user_id":"41"}', "default|none|none"),
        ("over?userId=41&n=1", "anonymous1"),
        ("over?n=1&m=2", "anonymous12"),
    ],
)
def test_claims_are_not_taken_from_the_query_string(service: Service, path: str, answer: str) -> None:
    assert service.get(f"/api/{path}").text == answer


@pytest.mark.parametrize("value", ["41", None, 41, {"a": 1}, ["boss"]])
def test_claims_are_not_taken_from_the_body(service: Service, value: object) -> None:
    body = {"userId": value, "userRoles": value, "note": "x"}
    assert service.post("/api/posted", json=body).text == "anonymous|none|x"


def test_claims_are_not_taken_from_the_path(service: Service) -> None:
    assert service.get("/users/41").text == "anonymous"


def test_response_header_placeholders_ignore_claims_sent_by_anonymous_callers(service: Service) -> None:
    assert service.get("/api/needed?userId=41").headers.get("x-user", "") == ""


def test_claim_parameters_of_signed_in_callers_ignore_query_values(service: Service) -> None:
    headers = bearer(tokens(service, "BearerToken")["accessToken"])
    assert service.get("/api/needed?userId=42", headers=headers).text == "410"


@pytest.mark.parametrize("query", ["", '?headers={"X-Proof":"forged"}', "?headers=", "?headers=null"])
def test_request_headers_parameter_is_not_taken_from_the_query_string(service: Service, query: str) -> None:
    assert service.get(f"/api/seen{query}", headers={"X-Proof": "real"}).text == "real"


@pytest.mark.parametrize("body", ["{}", '{"headers":{"X-Proof":"forged"}}', '{"headers":null}'])
def test_request_headers_parameter_is_not_taken_from_the_body(service: Service, body: str) -> None:
    assert service.post("/api/seen-posted", content=body, headers={"X-Proof": "real"}).text == "real"


# --- sign-in -------------------------------------------------------------------------------------------------------


def comparable_response(response: httpx.Response) -> tuple[object, ...]:
    headers = {name: value for name, value in response.headers.items() if name != "date"}
    return response.status_code, headers, response.content


@pytest.mark.slow
def test_failed_sign_ins_get_identical_responses(service: Service) -> None:
    def attempt(path: str, **body: object) -> tuple[object, ...]:
        return comparable_response(service.post(f"/api/{path}", json=body))

    unknown = attempt("sign-in", nick="unknown", passphrase="x")
    assert unknown[0] == 401
    assert attempt("sign-in", nick="kiri", passphrase="wrong") == unknown
    assert attempt("sign-in", nick="kiri", passphrase="") == unknown
    assert attempt("sign-in", nick="kiri", passphrase=None) == unknown
    assert attempt("sign-in", nick="broken", passphrase="not a hash") == unknown
    assert attempt("flat-login", who="kiri", **{"pass": "wrong"}) == unknown
    assert attempt("flat-login", who="unknown", **{"pass": "wrong"}) == unknown


def test_log_states_the_reason_of_a_failed_sign_in(service: Service) -> None:
    service.post("/api/sign-in", json={"nick": "mo", "passphrase": "hush"})
    service.wait_for_log("wrong password, user id 42, user name mo")


@pytest.mark.slow
def test_setting_restores_distinguishable_responses_to_failed_sign_ins(
    own_database: Database, serve_once: Serve
) -> None:
    service = serve_once(own_database, member_sql(), {"Auth:BearerTokenAuth": "true", OPEN_AGAIN: "true"})
    problem(service.post("/api/sign-in", json={"nick": "kiri", "passphrase": "wrong"}), 404)
    problem(service.post("/api/sign-in", json={"nick": "unknown", "passphrase": KIRI}), 401)
    assert OPEN_AGAIN in service.wait_for_log("WRN")
