"""Schemes of one's own beside the main ones, and what they take from these (sign-in-11, sign-in-12)."""

from __future__ import annotations

import jwt
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import SECRET, bearer, cookie_of, let_in, member_sql, sign_in, tokens

SQL = """
create function short_names() returns table (sub text, email text, role text, exp text, iss text, token_type text,
    user_id int) language sql as $$select 's', 'e@x.example', 'r', '1', 'someone', 'refresh', 41$$;
comment on function short_names() is E'HTTP POST\\nlogin';
create function my_claims(_user_claims json default null) returns json language sql stable as $$select _user_claims$$;
comment on function my_claims(json) is E'HTTP GET\\nauthorize\\nuser_parameters';
"""

SETTINGS = {
    "Auth:JwtAuth": "true",
    "Auth:JwtSecret": SECRET,
    "Auth:CookieName": "yard",
    "Auth:CookieSameSite": "strict",
    "Auth:CookieSecure": "always",
    "Auth:Schemes:till:Type": "cookies",
    "Auth:Schemes:till:CookieMultiSessions": "false",
    "Auth:Schemes:gate:Type": "Cookies",
    "Auth:Schemes:gate:CookieSameSite": "Unspecified",
    "Auth:Schemes:gate:CookiePath": "/api",
    "Auth:Schemes:partner:Type": "Jwt",
    "Auth:Schemes:partner:JwtSecret": SECRET.upper(),
    "Auth:Schemes:partner:JwtExpire": "2 minutes",
    "Auth:Schemes:off:Type": "Cookies",
    "Auth:Schemes:off:Enabled": "false",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS)


@pytest.fixture(autouse=True)
def _no_cookies(service: Service) -> None:
    service.client.cookies.clear()


@pytest.mark.parametrize(
    ("scheme", "attributes"),
    [
        ("till", "; path=/; secure; samesite=strict; httponly"),
        ("gate", "; max-age=1209600; path=/api; secure; httponly"),
    ],
)
def test_a_named_cookie_scheme_has_its_own_name_and_inherits_other_settings(
    service: Service, scheme: str, attributes: str
) -> None:
    """Even where the main scheme is no cookie it signs in: two schemes in one cookie would end each other."""
    response = let_in(service, "kiri", scheme)
    name, _, rest = response.headers["set-cookie"].partition("=")
    assert name == f".AspNetCore.{scheme}"
    assert rest[rest.index(";") :] == attributes
    service.client.cookies.clear()
    assert service.get("/api/closed", headers={"Cookie": cookie_of(response)}).text == "in"


def test_a_cookie_that_browsers_reject_is_logged_at_the_start(own_database: Database, serve_once: Serve) -> None:
    """SameSite=None is for https alone (sign-in-4)."""
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:CookieSameSite": "none",
        "Auth:Schemes:gate:Type": "Cookies",
        "Auth:Schemes:gate:CookieSecure": "Always",
        "Auth:Schemes:yard:Type": "Cookies",
        "Auth:Schemes:yard:CookiePath": "/api/yard",
        "Auth:Schemes:gate:CookiePath": "/API/gates/",
        "Auth:Schemes:none:Type": "Cookies",
        "Auth:Schemes:none:Enabled": "false",
        "Auth:Schemes:none:CookiePath": "/none",
    }
    sql = """create function open_gate(_n int) returns int language sql as 'select 1';
    comment on function open_gate(int) is 'HTTP GET /api/gates/{_n}';"""
    service = serve_once(own_database, sql, settings)
    service.wait_for_log("Auth:CookieSameSite is None: browsers drop the cookie unless CookieSecure is Always")
    service.wait_for_log("Auth:Schemes:yard:CookieSameSite is None")
    assert "Auth:Schemes:gate:CookieSameSite" not in service.log
    service.wait_for_log("Auth:Schemes:yard:CookiePath: no endpoint is at /api/yard or below, so browsers send")
    assert service.log.count("CookiePath") == 1


def test_a_named_token_scheme_has_its_own_secret(service: Service) -> None:
    made = tokens(service, "partner")
    assert jwt.decode(str(made["accessToken"]), SECRET.upper(), algorithms=["HS256"])["user_name"] == "kiri"
    assert made["expiresIn"] in (119, 120)
    assert service.get("/api/closed", headers=bearer(made["accessToken"])).text == "in"
    # Its refresh token is worth nothing at the path of the main scheme, and it has no path of its own.
    problem(service.post("/api/jwt/refresh", json={"refreshToken": made["refreshToken"]}), 401)


def test_a_disabled_scheme_is_unknown(service: Service) -> None:
    problem(sign_in(service, scheme="off"), 404)


def test_short_names_of_claims_are_unchanged(service: Service) -> None:
    token = service.post("/api/short-names").json()["accessToken"]
    claims = service.get("/api/my-claims", headers=bearer(token)).json()
    assert {name: claims[name] for name in ("sub", "email", "role")} == {
        "sub": "s",
        "email": "e@x.example",
        "role": "r",
    }


def test_columns_of_a_login_row_cannot_set_registered_claims(service: Service) -> None:
    """Claim injection: `exp`, `iss` and `token_type` of a row are not those of the token."""
    token = service.post("/api/short-names").json()["accessToken"]
    payload = jwt.decode(token, SECRET, algorithms=["HS256"])
    assert payload["exp"] > 1
    assert "iss" not in payload
    assert "token_type" not in payload
