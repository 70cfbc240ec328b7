"""Signing in by a routine's row, and out again (sign-in-14 to sign-in-34, sign-in-14 to sign-in-35)."""

from __future__ import annotations

import jwt
import pytest

from tests.harness.database import Database
from tests.harness.expect import JSON, problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import (
    EVERY_SCHEME,
    KIRI,
    SECRET,
    bearer,
    cookie_of,
    let_in,
    member_sql,
    sign_in,
    tokens,
    with_cookie,
)

SQL = """
create table attempt (n int generated always as identity, outcome text, scheme text, id text, nick text);

create function row_login(_row json) returns table (status int, body text, user_id text, depot text)
language sql as $$select (_row->>'status')::int, _row->>'body', _row->>'id', null$$;
comment on function row_login(json) is E'HTTP POST\\nlogin';

create function bare_login(_known boolean) returns table (user_id int, active boolean, tags text[], ports int[])
language sql as $$select 7, true, array['a', null], array[1, 2] where _known$$;
comment on function bare_login(boolean) is E'HTTP POST\\nlogin\\nX-Depot: yard';

create function flag_login(_ok boolean) returns table (user_id int, status boolean, body text)
language sql as $$select 7, _ok, 'the reason'$$;
comment on function flag_login(boolean) is E'HTTP POST\\nlogin';

create function null_login() returns table (status boolean) language sql as $$select null::boolean$$;
comment on function null_login() is E'HTTP POST\\nlogin';

create function text_login() returns table (status text, user_id int) language sql as $$select 'ok', 1$$;
comment on function text_login() is E'HTTP POST\\nlogin';

create function record_login(_nick text) returns member language sql stable
as $$select * from member where nick = _nick and secret is null$$;
comment on function record_login(text) is E'HTTP POST\\nlogin\\nauthorize unknown';

create function raising_login() returns table (user_id int) language plpgsql
as $$begin raise exception 'locked'; end$$;
comment on function raising_login() is E'HTTP POST\\nlogin';

create function guarded_login(_nick text, _word text) returns table (hash text, user_id int) language sql
as $$select secret, id from member where nick = _nick$$;
comment on function guarded_login(text, text) is E'HTTP POST\\nlogin';

create function named_login(_name text, _passphrase text) returns table (hash text, user_name text) language sql
as $$select 'not a hash', _name$$;
comment on function named_login(text, text) is E'HTTP POST\\nlogin';

create function two_passwords(_nick text, _passcode text default null, _passphrase text default null)
returns table (hash text, user_id int) language sql as $$select secret, id from member where nick = _nick$$;
comment on function two_passwords(text, text, text) is E'HTTP POST\\nlogin';

create function heavy_login(_scheme text, _size int) returns table (scheme text, user_id int, note text) language sql
as $$select _scheme, 7, repeat('x', _size)$$;
comment on function heavy_login(text, int) is E'HTTP POST\\nlogin';

create procedure plain_logout() language sql as $$insert into attempt (outcome) values ('left')$$;
comment on procedure plain_logout() is E'HTTP POST\\nlogout\\nallow_anonymous';

create procedure note(_outcome text, _scheme text, _id text, _nick text) language sql
as $$insert into attempt (outcome, scheme, id, nick) values (_outcome, _scheme, _id, _nick)$$;
"""

COMMANDS = {
    "Service:AuthenticationOptions:PasswordVerificationFailedCommand": "call note('failed', $1, $2, $3)",
    "Service:AuthenticationOptions:PasswordVerificationSucceededCommand": "call note('succeeded', $1, $2, $3)",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    settings = {**EVERY_SCHEME, **COMMANDS, "Service:RequiresAuthorization": None}
    return serve(database, member_sql() + SQL, settings)


@pytest.fixture(autouse=True)
def _no_cookies(service: Service) -> None:
    service.client.cookies.clear()


def last_attempt(database: Database) -> list[str | None]:
    row: list[str | None] = database.value(
        "select array[outcome, scheme, id, nick] from attempt order by n desc limit 1"
    )
    return row


# --- what a sign-in answers ----------------------------------------------------------------------------------------


def test_sign_in_with_a_cookie_has_an_empty_body(service: Service) -> None:
    response = sign_in(service, scheme="Cookies")
    assert response.status_code == 200
    assert response.content == b""
    cookie = response.headers["set-cookie"]
    assert cookie.startswith(".AspNetCore.Cookies=")
    assert cookie.endswith("; max-age=1209600; path=/; samesite=lax; httponly")
    assert response.headers["cache-control"] == "no-cache,no-store"
    assert response.headers["pragma"] == "no-cache"
    assert response.headers["expires"] == "Thu, 01 Jan 1970 00:00:00 GMT"


def test_sign_in_with_opaque_tokens(service: Service) -> None:
    response = let_in(service, "kiri", "BearerToken")
    assert response.headers["content-type"] == "application/json; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    members = response.json()
    assert list(members) == ["tokenType", "accessToken", "expiresIn", "refreshToken"]
    assert members["tokenType"] == "Bearer"
    assert members["expiresIn"] == 3600
    assert members["accessToken"] != members["refreshToken"]


def test_sign_in_with_signed_tokens(service: Service) -> None:
    response = sign_in(service, scheme="Bearer")
    assert response.headers["content-type"] == JSON
    members = response.json()
    assert list(members) == ["accessToken", "refreshToken", "tokenType", "expiresIn", "refreshExpiresIn"]
    assert members["expiresIn"] in (3599, 3600)
    assert members["refreshExpiresIn"] in (604_799, 604_800)
    assert jwt.get_unverified_header(members["accessToken"]) == {"alg": "HS256", "typ": "JWT"}
    payload = jwt.decode(members["accessToken"], SECRET, algorithms=["HS256"])
    assert payload["exp"] - payload["iat"] == 3600
    assert payload["nbf"] == payload["iat"]
    names = ["user_id", "user_name", "user_roles", "depot"]
    assert {name: payload[name] for name in names} == {
        "user_id": "41",
        "user_name": "kiri",
        "user_roles": ["boss", "gate"],
        "depot": "north",
    }
    refresh = jwt.decode(members["refreshToken"], SECRET, algorithms=["HS256"])
    assert refresh["token_type"] == "refresh"


def test_signed_tokens_are_the_default_beside_a_cookie(service: Service) -> None:
    assert "accessToken" in let_in(service, "kiri", None).json()


def test_names_of_signed_schemes_in_any_case(service: Service) -> None:
    assert "accessToken" in let_in(service, "kiri", "bearer").json()


@pytest.mark.parametrize("scheme", ["cookies", "nowhere", "Cookies ", "Bearer'"])
def test_unknown_scheme_is_404(service: Service, scheme: str) -> None:
    response = service.post("/api/let-in", json={"nick": "kiri", "scheme": scheme})
    assert "set-cookie" not in response.headers
    problem(response, 404)


def test_comment_headers_are_sent_too(service: Service) -> None:
    assert service.post("/api/bare-login", json={"known": True}).headers["x-depot"] == "yard"


# --- passwords -----------------------------------------------------------------------------------------------------


def test_unknown_user_is_401(service: Service) -> None:
    problem(sign_in(service, nick="unknown"), 401)


@pytest.mark.parametrize("passphrase", ["wrong", "", None, KIRI + " ", KIRI.upper()])
def test_a_wrong_password_is_refused(service: Service, database: Database, passphrase: str | None) -> None:
    response = sign_in(service, passphrase=passphrase, scheme="Cookies")
    assert "set-cookie" not in response.headers
    problem(response, 401)
    assert last_attempt(database) == ["failed", "Cookies", "41", "kiri"]


def test_a_missing_password_fails(service: Service) -> None:
    problem(service.post("/api/sign-in", json={"nick": "kiri"}), 401)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"passphrase": KIRI}, 200),
        ({"passcode": KIRI}, 200),
        ({"passcode": KIRI, "passphrase": "wrong"}, 200),
        ({"passcode": "wrong", "passphrase": KIRI}, 401),
        ({"passcode": None, "passphrase": KIRI}, 401),
    ],
)
def test_the_password_is_the_first_bound_parameter_with_its_name(
    service: Service, body: dict[str, str | None], status: int
) -> None:
    assert service.post("/api/two-passwords", json={"nick": "kiri", **body}).status_code == status


def test_a_routine_without_password_parameter_refuses_every_caller(service: Service) -> None:
    problem(service.post("/api/guarded-login", json={"nick": "kiri", "word": KIRI}), 401)


def test_an_invalid_hash_refuses_every_caller(service: Service) -> None:
    problem(sign_in(service, nick="broken", passphrase="not a hash"), 401)


@pytest.mark.parametrize("passphrase", ["guessed", "", None])
@pytest.mark.parametrize("nick", ["open", "blank"])
def test_an_account_without_a_hash_refuses_every_caller(
    service: Service, database: Database, nick: str, passphrase: str | None
) -> None:
    """`open` has NULL, `blank` an empty text: the failure is reported like that of a wrong password."""
    database.execute("""
        insert into member (id, nick, secret, duties) select 47, 'blank', '', '{}'
        where not exists (select from member where id = 47)
    """)
    problem(sign_in(service, nick=nick, passphrase=passphrase), 401)
    outcome, _, user_id, _ = last_attempt(database)
    assert (outcome, user_id) == ("failed", "47" if nick == "blank" else "43")


def test_a_login_without_a_hash_column_needs_no_password_check(service: Service) -> None:
    assert service.post("/api/heavy-login", json={"scheme": None, "size": 1}).status_code == 200


def test_the_success_command_runs_before_the_response(service: Service, database: Database) -> None:
    assert sign_in(service).status_code == 200
    assert last_attempt(database) == ["succeeded", None, "41", "kiri"]


def test_a_failed_login_is_logged_without_the_password(service: Service) -> None:
    sign_in(service, passphrase="hush-hush")
    service.wait_for_log("wrong password, user id 41, user name kiri")
    assert "hush-hush" not in service.log


def test_a_name_cannot_forge_a_line_of_the_log(service: Service) -> None:
    body = {"name": "kiri\n[00:00:00 INF] all is well\x1b[2J", "passphrase": "x"}
    problem(service.post("/api/named-login", json=body), 401)
    service.wait_for_log(r"user name kiri\n[00:00:00 INF] all is well\x1b[2J")


# --- rows ----------------------------------------------------------------------------------------------------------


def test_tokens_have_precedence_over_a_body_column(service: Service) -> None:
    response = service.post("/api/row-login", json={"row": {"status": 200, "body": "hi kiri", "id": "1"}})
    assert "accessToken" in response.json()


@pytest.mark.parametrize(("status", "body"), [(202, "later"), (403, "locked"), (299, "")])
def test_a_login_can_set_another_status_with_a_body(service: Service, status: int, body: str) -> None:
    response = service.post("/api/row-login", json={"row": {"status": status, "body": body, "id": "1"}})
    assert (response.status_code, response.text) == (status, body)
    assert response.headers["content-type"] == JSON
    assert "set-cookie" not in response.headers


def test_a_null_body_is_empty(service: Service) -> None:
    response = service.post("/api/row-login", json={"row": {"status": 409, "body": None}})
    assert (response.status_code, response.content) == (409, b"")


@pytest.mark.parametrize("row", [{"status": None, "id": "1"}, {"status": 99}, {"status": 1000}])
def test_an_invalid_status_is_500(service: Service, row: dict[str, object]) -> None:
    problem(service.post("/api/row-login", json={"row": row}), 500)


def test_a_null_status_is_500(service: Service) -> None:
    problem(service.post("/api/null-login"), 500)


def test_a_status_of_another_type_is_500(service: Service) -> None:
    problem(service.post("/api/text-login"), 500)


def test_a_false_status_refuses_the_login(service: Service) -> None:
    response = service.post("/api/flag-login", json={"ok": False})
    problem(response, 401)
    assert "the reason" not in response.text


def test_a_true_status_signs_in(service: Service) -> None:
    assert "accessToken" in service.post("/api/flag-login", json={"ok": True}).json()


@pytest.mark.parametrize("scheme", ["Cookies", "BearerToken", "Bearer"])
def test_a_session_too_large_for_a_request_is_500(service: Service, scheme: str) -> None:
    """The head of a request has 40,960 bytes; in a cookie or a token, three bytes become four characters."""
    fits = service.post("/api/heavy-login", json={"scheme": scheme, "size": 24_000})
    assert fits.status_code == 200
    cookies = "; ".join(cookie.partition(";")[0] for cookie in fits.headers.get_list("set-cookie"))
    service.client.cookies.clear()
    session = {"Cookie": cookies} if cookies else bearer(fits.json()["accessToken"])
    assert service.get("/api/closed", headers=session).text == "in"
    members = problem(service.post("/api/heavy-login", json={"scheme": scheme, "size": 32_000}), 500)
    assert "the claims of this sign-in form a session of" in members["detail"]
    service.wait_for_log("POST /api/heavy-login: the claims of this sign-in form a session of")


def test_no_row_is_401(service: Service) -> None:
    problem(service.post("/api/bare-login", json={"known": False}), 401)


def test_claims_of_every_kind(service: Service) -> None:
    token = service.post("/api/bare-login", json={"known": True}).json()["accessToken"]
    payload = jwt.decode(token, SECRET, algorithms=["HS256"])
    assert payload["user_id"] == "7"
    assert payload["active"] == "True"
    assert payload["tags"] == ["a", ""]
    assert payload["ports"] == ["1", "2"]


def test_a_record_of_nulls_is_refused(service: Service) -> None:
    problem(service.post("/api/record-login", json={"nick": "unknown"}), 401)
    assert service.post("/api/record-login", json={"nick": "open"}).status_code == 200


def test_an_error_of_the_login_routine_is_returned(service: Service) -> None:
    assert problem(service.post("/api/raising-login"), 400)["title"] == "locked"


# --- signing out ---------------------------------------------------------------------------------------------------


def test_logout_ends_the_session_of_the_request(service: Service) -> None:
    headers = with_cookie(service)
    response = service.post("/api/sign-out", headers=headers, json={})
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["set-cookie"] == (
        ".AspNetCore.Cookies=; expires=Thu, 01 Jan 1970 00:00:00 GMT; path=/; samesite=lax; httponly"
    )
    assert response.headers["cache-control"] == "no-cache,no-store"


def test_logout_by_token_sets_no_cookie(service: Service) -> None:
    headers = bearer(tokens(service, "Bearer")["accessToken"])
    response = service.post("/api/sign-out", headers=headers, json={})
    assert response.status_code == 200
    assert "set-cookie" not in response.headers


def test_logout_of_named_schemes(service: Service) -> None:
    headers = bearer(tokens(service, "BearerToken")["accessToken"])
    response = service.post("/api/sign-out", headers=headers, json={"schemes": ["Cookies", "Bearer", None]})
    assert cookie_of(response) == ".AspNetCore.Cookies="


def test_logout_of_an_unknown_scheme_is_500(service: Service) -> None:
    headers = with_cookie(service)
    members = problem(service.post("/api/sign-out", headers=headers, json={"schemes": ["nowhere"]}), 500)
    assert "nowhere" in members["detail"]


def test_logout_requires_authentication(service: Service) -> None:
    problem(service.post("/api/sign-out", json={}), 401)


def test_logout_of_a_procedure(service: Service, database: Database) -> None:
    response = service.post("/api/plain-logout", json={})
    assert cookie_of(response) == ".AspNetCore.Cookies="
    assert last_attempt(database) == ["left", None, None, None]
