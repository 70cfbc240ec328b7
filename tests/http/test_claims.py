"""What routines receive about their caller: parameters, session variables, JSON, address (access-12 to access-20)."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens, with_cookie

SQL = """
create function open_who(_user_id text default 'anonymous', _ip_address text default null,
    _user_roles text default 'none')
returns table (user_id text, address text, roles text) language sql stable
as $$select _user_id, _ip_address, _user_roles$$;
comment on function open_who(text, text, text) is E'HTTP GET\\nallow_anonymous\\nuser_parameters\\nsingle';

create function needed(_user_id text, _depot text, _n int) returns text language sql stable
as $$select concat_ws('|', _user_id, _depot, _n)$$;
comment on function needed(text, text, int) is E'HTTP GET\\nallow_anonymous\\nuser_parameters\\nX-User: {_user_id}';

create function posted(_user_id text, _user_roles text[], _note text) returns text language sql
as $$select concat_ws('|', _user_id, array_to_string(_user_roles, '+'), _note)$$;
comment on function posted(text, text[], text) is E'HTTP POST\\nauthorize\\nuser_parameters';

create function strict_depot(_depot text) returns text language sql stable strict as $$select _depot$$;
comment on function strict_depot(text) is E'HTTP GET\\nauthorize\\nuser_parameters';

create function in_path(_user_id text) returns text language sql stable as $$select _user_id$$;
comment on function in_path(text) is E'HTTP GET /users/{_user_id}\\nauthorize\\nuser_parameters';

create function context() returns table (id text, name text, roles text, claims json, address text, depot text)
language sql stable as $$select current_setting('request.user_id', true), current_setting('request.user_name', true),
    current_setting('request.user_roles', true), nullif(current_setting('request.claims', true), '')::json,
    current_setting('request.ip_address', true), current_setting('request.depot', true)$$;
comment on function context() is E'HTTP GET\\nallow_anonymous\\nuser_context\\nsingle';

create function context_written() returns text language sql volatile
as $$select current_setting('request.user_id', true)$$;
comment on function context_written() is E'HTTP POST\\nauthorize\\nuser_context';

create function without_context() returns text language sql volatile
as $$select coalesce(nullif(current_setting('request.user_id', true), ''), 'nothing')$$;
comment on function without_context() is E'HTTP POST\\nallow_anonymous';

create function who_by_table() returns setof member language sql stable
as $$select * from member where id = nullif(current_setting('request.user_id', true), '')::int$$;
comment on function who_by_table() is E'HTTP GET\\nauthorize\\nuser_context';
"""

MAPPING = "Service:AuthenticationOptions:"
SETTINGS = {
    **EVERY_SCHEME,
    MAPPING + "ClaimsJsonContextKey": "request.claims",
    MAPPING + "ParameterNameClaimsMapping:_user_id": "user_id",
    MAPPING + "ParameterNameClaimsMapping:_user_name": "user_name",
    MAPPING + "ParameterNameClaimsMapping:_user_roles": "user_roles",
    MAPPING + "ParameterNameClaimsMapping:_depot": "depot",
    MAPPING + "ContextKeyClaimsMapping:request.user_id": "user_id",
    MAPPING + "ContextKeyClaimsMapping:request.user_name": "user_name",
    MAPPING + "ContextKeyClaimsMapping:request.user_roles": "user_roles",
    MAPPING + "ContextKeyClaimsMapping:request.depot": "depot",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS)


@pytest.fixture(scope="module")
def kiri(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken")["accessToken"])


@pytest.fixture(scope="module")
def mo(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken", "mo")["accessToken"])


CLAIMS = {"user_id": "41", "user_name": "kiri", "user_roles": ["boss", "gate"], "depot": "north"}


@pytest.mark.parametrize("scheme", ["Cookies", "BearerToken", "Bearer"])
def test_claim_parameters_are_filled_under_every_scheme(service: Service, scheme: str) -> None:
    headers = with_cookie(service) if scheme == "Cookies" else bearer(tokens(service, scheme)["accessToken"])
    body = service.get("/api/who", headers=headers).json()
    assert body["userId"] == "41"
    assert body["userName"] == "kiri"
    assert body["userRoles"] == ["boss", "gate"]
    assert body["address"] == "127.0.0.1"
    assert {name: body["claims"][name] for name in CLAIMS} == CLAIMS


def test_claims_json_is_written_without_spaces(service: Service, kiri: dict[str, str]) -> None:
    text = service.get("/api/who", headers=kiri).text
    assert '"claims":{"user_id":"41","user_name":"kiri","user_roles":["boss","gate"],"depot":"north"}' in text


# --- injection -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["userId=42", "userId=42&userId=43", "userId=", "userRoles=admin&userName=mo", "userClaims={}"]
)
def test_claims_are_not_taken_from_the_query_string(service: Service, kiri: dict[str, str], query: str) -> None:
    assert service.get(f"/api/who?{query}", headers=kiri).json() == service.get("/api/who", headers=kiri).json()


@pytest.mark.parametrize("value", ["42", 42, None, ["a"], {"a": 1}, True])
def test_claims_are_not_taken_from_the_body(service: Service, kiri: dict[str, str], value: object) -> None:
    body = {"userId": value, "userRoles": value, "note": "x"}
    assert service.post("/api/posted", headers=kiri, json=body).text == "41|boss+gate|x"


def test_claims_are_not_taken_from_the_path(service: Service, kiri: dict[str, str]) -> None:
    assert service.get("/users/42", headers=kiri).text == "41"


def test_missing_claim_is_not_taken_from_the_query_string(service: Service, mo: dict[str, str]) -> None:
    """A NULL claim is a claim: mo has no depot."""
    response = service.get("/api/needed?userId=1&depot=south&n=1", headers=mo)
    assert response.text == "42|1"


def test_client_address_is_not_taken_from_the_query_string(service: Service) -> None:
    assert service.get("/api/open-who?ipAddress=6.6.6.6").json()["address"] == "127.0.0.1"


def test_an_overwritten_value_is_logged(service: Service, kiri: dict[str, str]) -> None:
    service.get("/api/who?userName=mo", headers=kiri)
    line = service.wait_for_log("userName")
    assert "GET /api/who" in line
    assert "query" in line
    assert "user_name" in line


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-Real-IP", "HTTP_X_FORWARDED_FOR", "REMOTE_ADDR", "Forwarded"])
def test_headers_of_a_client_do_not_change_its_address(service: Service, kiri: dict[str, str], name: str) -> None:
    headers = {**kiri, name: "6.6.6.6"}
    assert service.get("/api/who", headers=headers).json()["address"] == "127.0.0.1"
    assert service.get("/api/context", headers=headers).json()["address"] == "127.0.0.1"


# --- anonymous -----------------------------------------------------------------------------------------------------


def test_anonymous_callers_have_no_claims(service: Service) -> None:
    assert service.get("/api/open-who").json() == {"userId": "anonymous", "address": "127.0.0.1", "roles": "none"}
    assert service.get("/api/open-who?userId=9").json()["userId"] == "anonymous"
    assert service.get("/api/needed?n=1&depot=south").text == "1"


def test_setting_lets_anonymous_callers_send_claim_parameters(own_database: Database, serve_once: Serve) -> None:
    settings = {**SETTINGS, MAPPING + "ClaimsFromAnonymous": "true"}
    opened = serve_once(own_database, member_sql() + SQL, settings)
    assert opened.get("/api/open-who?userId=9").json()["userId"] == "9"
    problem(opened.get("/api/needed?n=1"), 404)
    assert "WRN" in opened.wait_for_log(MAPPING + "ClaimsFromAnonymous")


# --- binding -------------------------------------------------------------------------------------------------------


def test_claim_parameters_are_not_required_in_requests(service: Service, kiri: dict[str, str]) -> None:
    response = service.get("/api/needed?n=5", headers=kiri)
    assert response.text == "41|north|5"


def test_other_parameters_are_still_validated(service: Service, kiri: dict[str, str]) -> None:
    problem(service.get("/api/needed", headers=kiri), 404)
    problem(service.get("/api/needed?n=1&other=2", headers=kiri), 404)


def test_header_placeholders_use_claims(service: Service, kiri: dict[str, str]) -> None:
    assert service.get("/api/needed?n=5&userId=7", headers=kiri).headers["x-user"] == "41"


def test_a_list_for_a_text_parameter_is_an_array_literal(service: Service, kiri: dict[str, str]) -> None:
    assert service.get("/api/open-who", headers=kiri).json()["roles"] == '{"boss","gate"}'


def test_a_null_claim_is_null(service: Service, kiri: dict[str, str], mo: dict[str, str]) -> None:
    assert service.get("/api/strict-depot", headers=kiri).text == "north"
    assert service.get("/api/strict-depot?depot=south", headers=mo).status_code == 204


# --- session variables ---------------------------------------------------------------------------------------------


def test_session_variables_hold_the_claims_of_the_caller(
    service: Service, kiri: dict[str, str], mo: dict[str, str]
) -> None:
    body = service.get("/api/context", headers=kiri).json()
    assert body == {
        "id": "41",
        "name": "kiri",
        "roles": '{"boss","gate"}',
        "claims": CLAIMS,
        "address": "127.0.0.1",
        "depot": "north",
    }
    assert service.get("/api/context", headers=mo).json()["depot"] == ""


@pytest.mark.slow
def test_session_variables_are_reset_after_each_request(
    service: Service, kiri: dict[str, str], mo: dict[str, str]
) -> None:
    """On every connection, shared or not."""
    for number in range(60):
        headers = (kiri, mo)[number % 2]
        assert service.get("/api/context", headers=headers).json()["id"] == ("41", "42")[number % 2]
        assert service.post("/api/context-written", headers=headers, json={}).text == ("41", "42")[number % 2]
        assert service.get("/api/context").json()["id"] in ("", None)
        assert service.post("/api/without-context", json={}).text == "nothing"


def test_routine_selects_rows_of_the_caller(service: Service, mo: dict[str, str]) -> None:
    assert [row["nick"] for row in service.get("/api/who-by-table", headers=mo).json()] == ["mo"]


# --- authorization -------------------------------------------------------------------------------------------------


def test_role_requirement_refuses_other_callers(service: Service, kiri: dict[str, str], mo: dict[str, str]) -> None:
    assert service.get("/api/for-bosses", headers=kiri).text == "in"
    members = problem(service.get("/api/for-bosses", headers=mo), 403)
    assert members["title"] == "Forbidden"
    assert "boss" in members["detail"]


def test_roles_are_checked_before_parameters(service: Service, mo: dict[str, str]) -> None:
    problem(service.get("/api/for-bosses?unknown=1", headers=mo), 403)


# --- behind proxies ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_client_address_is_taken_from_a_trusted_proxy(database: Database, service: Service, serve_once: Serve) -> None:
    settings = {**SETTINGS, "ForwardedHeaders:Enabled": "true", "ForwardedHeaders:KnownProxies:0": "127.0.0.1"}
    behind = serve_once(database, settings=settings)
    headers = {"X-Forwarded-For": "6.6.6.6, 9.9.9.9"}
    assert behind.get("/api/context", headers=headers).json()["address"] == "9.9.9.9"
    assert behind.get("/api/open-who", headers=headers).json()["address"] == "9.9.9.9"
    untrusting = {**settings, "ForwardedHeaders:KnownProxies:0": "10.0.0.1"}
    alone = serve_once(database, settings=untrusting)
    assert alone.get("/api/context", headers=headers).json()["address"] == "127.0.0.1"
    # The cookie is secure if the client uses https to the proxy.
    body = {"nick": "kiri", "scheme": "Cookies"}
    cookie = behind.post("/api/let-in", json=body, headers={"X-Forwarded-Proto": "https"}).headers["set-cookie"]
    assert "; secure" in cookie


def test_routine_with_a_non_text_claim_parameter_is_left_out(own_database: Database, serve_once: Serve) -> None:
    sql = """create function f(_user_id int) returns int language sql stable as 'select 1';
        comment on function f(int) is E'HTTP GET\\nuser_parameters';
        create type pair as (a text, b text);
        create function h(_user_id pair) returns text language sql stable as 'select ($1).a';
        comment on function h(pair) is E'HTTP GET\\nuser_parameters';
        create function g() returns int language sql stable as 'select 1'; comment on function g() is 'HTTP GET';"""
    service = serve_once(own_database, sql)
    assert "_user_id is integer" in service.wait_for_log("public.f(integer)")
    problem(service.get("/api/f"), 404)
    assert '_user_id is "public"."pair"' in service.wait_for_log("public.h(pair)")
    problem(service.get("/api/h?userIdA=42"), 404)
    assert service.get("/api/g").status_code == 200


@pytest.mark.parametrize("result", ["void", "text", "setof text"])
def test_login_without_result_columns_is_left_out(own_database: Database, serve_once: Serve, result: str) -> None:
    sql = f"""create function f() returns {result} language sql as $$ select '' $$;
        comment on function f() is E'HTTP POST\\nlogin';"""
    service = serve_once(own_database, sql.replace("$$ select '' $$", "''") if result == "void" else sql)
    assert "public.f()" in service.wait_for_log("named columns")
    problem(service.post("/api/f"), 404)
