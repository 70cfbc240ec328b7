"""`authorize … within 5 minutes`: who has signed in longer ago has to do it again (RFC 9470, docs/sessions.md)."""

from __future__ import annotations

import time

import httpx
import jwt
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import SECRET, bearer

SQL = """
create function sign_in(_scheme text default 'Bearer') returns table (user_id int, user_roles text[], scheme text,
    auth_time text) language sql as $$select 41, array['boss'], _scheme, '1'$$;
comment on function sign_in(text) is E'HTTP POST\\nlogin';
create function pay() returns text language sql as $$select 'paid'$$;
comment on function pay() is E'HTTP POST\\nauthorize within 5 minutes';
create function hire() returns text language sql as $$select 'hired'$$;
comment on function hire() is E'HTTP POST\\nallow_anonymous\\nauthorize boss, chief within 1 hour';
create function reach() returns text language sql as $$select 'in'$$;
comment on function reach() is E'HTTP POST\\nauthorize within, reach';
create function look() returns text language sql as $$select 'seen'$$;
comment on function look() is E'HTTP POST\\nauthorize within 1 minute\\nbasic_auth kiri open';
"""
SETTINGS = {
    "Service:RequiresAuthorization": None,
    "Auth:CookieAuth": "true",
    "Auth:JwtAuth": "true",
    "Auth:JwtSecret": SECRET,
    "Service:AuthenticationOptions:NoteSignInTime": "true",
    "Service:AuthenticationOptions:BasicAuth:SslRequirement": "Ignore",
    "Service:AuthenticationOptions:BasicAuth:UseDefaultPasswordHasher": "false",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


def signed(**claims: object) -> dict[str, str]:
    now = int(time.time())
    payload = {"user_id": "41", "user_roles": ["boss"], "nbf": now, "iat": now, "exp": now + 600, **claims}
    return bearer(jwt.encode(payload, SECRET, algorithm="HS256"))


def ago(seconds: int) -> str:
    return str(int(time.time()) - seconds)


def refused(response: httpx.Response, seconds: int) -> None:
    assert response.status_code == 401
    challenge = f'Bearer error="insufficient_user_authentication", max_age={seconds}'
    assert response.headers["www-authenticate"] == challenge
    assert response.json() == {"type": "insufficient_user_authentication", "title": "Sign in again", "status": 401}


def test_a_recent_sign_in_is_accepted(service: Service) -> None:
    tokens = service.post("/api/sign-in").json()
    assert service.post("/api/pay", headers=bearer(tokens["accessToken"])).text == "paid"
    assert service.post("/api/hire", headers=bearer(tokens["accessToken"])).text == "hired"
    noted = jwt.decode(tokens["accessToken"], SECRET, algorithms=["HS256"])["auth_time"]
    assert abs(int(noted) - time.time()) < 300, "what the routine says of it does not count"
    cookie = service.post("/api/sign-in", json={"scheme": "Cookies"}).headers["set-cookie"].partition(";")[0]
    service.client.cookies.clear()
    assert service.post("/api/pay", headers={"cookie": cookie}).text == "paid"


@pytest.mark.parametrize("moment", ["1000000000", "", "soon", "1e12", "-1", "9" * 30, "٣"])
def test_an_old_sign_in_is_asked_to_authenticate_again(service: Service, moment: str) -> None:
    refused(service.post("/api/pay", headers=signed(auth_time=moment)), 300)


def test_a_session_without_auth_time_counts_as_old(service: Service) -> None:
    refused(service.post("/api/pay", headers=signed()), 300)


def test_roles_are_required_besides_a_recent_sign_in(service: Service) -> None:
    assert service.post("/api/hire", headers=signed(auth_time=ago(400))).text == "hired"
    refused(service.post("/api/hire", headers=signed(auth_time=ago(4000))), 3600)
    assert service.post("/api/hire", headers=signed(auth_time=ago(1), user_roles=["clerk"])).status_code == 403
    response = service.post("/api/hire")
    assert (response.status_code, response.json()["title"]) == (401, "Unauthorized")


def test_a_refresh_does_not_renew_auth_time(service: Service) -> None:
    first = service.post("/api/sign-in").json()
    noted = jwt.decode(first["accessToken"], SECRET, algorithms=["HS256"])["auth_time"]
    second = service.post("/api/jwt/refresh", json={"refreshToken": first["refreshToken"]}).json()
    assert jwt.decode(second["accessToken"], SECRET, algorithms=["HS256"])["auth_time"] == noted


def test_within_without_an_interval_is_a_role(service: Service) -> None:
    assert service.post("/api/reach", headers=signed()).status_code == 403
    assert service.post("/api/reach", headers=signed(user_roles=["reach"])).text == "in"


def test_basic_authentication_counts_as_recent(service: Service) -> None:
    assert service.client.post("/api/look", auth=("kiri", "open")).text == "seen"
