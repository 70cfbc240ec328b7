"""Impersonation: authorization, recording of the impersonator, and its end (docs/sessions.md)."""

from __future__ import annotations

import time

import httpx
import jwt
import pytest

from tests.docs.pages import FOLDER
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import SECRET, bearer, cookie_of

TRAIL = (
    "create table call ("
    + (FOLDER / "audit.md").read_text(encoding="utf-8").split("create table call (")[1].split("```")[0]
)
ROWS = "returns table (user_id int, user_name text, user_roles text[], scheme text) language sql as"
PEOPLE = "(values (41, 'kiri', array['support']), (42, 'mo', '{}'), (43, 'ola', array['clerk'])) p (id, name, roles)"
SQL = f"""
create function sign_in(_name text, _scheme text default 'Bearer') {ROWS}
    $$select id, name, roles, _scheme from {PEOPLE} where name = _name$$;
comment on function sign_in(text, text) is E'HTTP POST\\nlogin';
create function act_as(_name text, _scheme text default 'Bearer') {ROWS}
    $$select id, name, roles, _scheme from {PEOPLE} where name = _name$$;
comment on function act_as(text, text) is E'HTTP POST\\nimpersonate\\nauthorize support within 5 minutes';
create function act_freely() {ROWS} $$select 42, 'mo', '{{}}'::text[], 'Bearer'$$;
comment on function act_freely() is E'HTTP POST\\nimpersonate\\nallow_anonymous';
create function be_oneself(_impersonator_id text default null, _scheme text default 'Bearer') {ROWS}
    $$select id, name, roles, _scheme from {PEOPLE} where id = _impersonator_id::int$$;
comment on function be_oneself(text, text) is E'HTTP POST\\nend_impersonation\\nuser_parameters';
create function be_any_user() {ROWS} $$select 43, 'ola', array['clerk'], 'Bearer'$$;
comment on function be_any_user() is E'HTTP POST\\nend_impersonation';
create function forge() returns table (user_id int, impersonator_id int) language sql as $$select 42, 41$$;
comment on function forge() is E'HTTP POST\\nlogin';
create function who(_user_id text default null, _impersonator_id text default null, _user_claims json default null)
    returns table (u text, actor text, claimed text, set text) language sql stable as
    $$select _user_id, _impersonator_id, _user_claims->>'impersonator_name',
             nullif(current_setting('request.impersonator_id', true), '')$$;
comment on function who(text, text, json) is E'HTTP GET\\nauthorize\\nuser_parameters\\nuser_context\\nsingle';
create function who_posted(_impersonator_id text default null) returns text language sql stable as
    $$select _impersonator_id$$;
comment on function who_posted(text) is E'HTTP POST\\nauthorize\\nuser_parameters';
create function change_password() returns text language sql as $$select 'changed'$$;
comment on function change_password() is E'HTTP POST\\nauthorize\\nrefuse_impersonation';
create function transfer() returns text language sql as $$select 'done'$$;
comment on function transfer() is E'HTTP POST\\nsecond_factor';
create function pay() returns text language sql as $$select 'paid'$$;
comment on function pay() is E'HTTP POST\\nauthorize within 5 minutes';
"""
A = "Service:AuthenticationOptions:"
SETTINGS = {
    "Service:RequiresAuthorization": None,
    "Auth:CookieAuth": "true",
    "Auth:BearerTokenAuth": "true",
    "Auth:JwtAuth": "true",
    "Auth:JwtSecret": SECRET,
    A + "NoteSignInTime": "true",
    A + "ParameterNameClaimsMapping:_user_id": "user_id",
    A + "ParameterNameClaimsMapping:_impersonator_id": "impersonator_id",
    A + "ContextKeyClaimsMapping:request.impersonator_id": "impersonator_id",
    "Auth:PasskeyAuth:Enabled": "true",
    "Auth:PasskeyAuth:RelyingPartyOrigins:0": "https://shop.example",
    "Service:AuditTrail:Enabled": "true",
    "Service:AuditTrail:Interval": "100 milliseconds",
}
ACTING = {"u": "42", "actor": "41", "claimed": "kiri", "set": "41"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, TRAIL + SQL, SETTINGS, workers=2)


def signed_in(service: Service, name: str = "kiri", scheme: str = "BearerToken") -> dict[str, str]:
    return session(service, service.post("/api/sign-in", json={"name": name, "scheme": scheme}))


def session(service: Service, response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 200, response.text
    if "set-cookie" in response.headers:
        service.client.cookies.clear()
        return {"Cookie": cookie_of(response)}
    return bearer(response.json()["accessToken"])


def acting(service: Service, scheme: str = "BearerToken") -> dict[str, str]:
    own = signed_in(service)
    return session(service, service.post("/api/act-as", json={"name": "mo", "scheme": scheme}, headers=own))


@pytest.mark.parametrize("scheme", ["BearerToken", "Cookies", "Bearer"])
def test_impersonated_session_has_the_impersonator_until_it_ends(service: Service, scheme: str) -> None:
    headers = acting(service, scheme)
    assert service.get("/api/who", headers=headers).json() == ACTING
    ended = session(service, service.post("/api/be-oneself", json={"scheme": scheme}, headers=headers))
    assert service.get("/api/who", headers=ended).json() == {"u": "41", "actor": None, "claimed": None, "set": None}
    # The time of the sign-in is unchanged.
    assert service.post("/api/pay", headers=ended).text == "paid"


@pytest.mark.parametrize("scheme", ["BearerToken", "Cookies", "Bearer"])
def test_impersonator_has_a_proved_second_factor_before_and_behind_the_impersonation(
    service: Service, scheme: str
) -> None:
    now = int(time.time())
    claims = {"user_id": "41", "user_roles": ["support"], "auth_time": str(now), "amr": ["otp", "mfa"]}
    own = bearer(jwt.encode({**claims, "nbf": now, "iat": now, "exp": now + 600}, SECRET, algorithm="HS256"))
    assert service.post("/api/transfer", headers=own).text == "done"
    headers = session(service, service.post("/api/act-as", json={"name": "mo", "scheme": scheme}, headers=own))
    refused = service.post("/api/transfer", headers=headers)
    assert (refused.status_code, refused.json()["type"]) == (401, "insufficient_user_authentication")
    ended = session(service, service.post("/api/be-oneself", json={"scheme": scheme}, headers=headers))
    assert service.post("/api/transfer", headers=ended).text == "done"


def test_refresh_preserves_the_impersonation_and_is_audited(service: Service, database: Database) -> None:
    for scheme, path, member in (("BearerToken", "/api/token/refresh", "refresh"), ("Bearer", "", "refreshToken")):
        own = signed_in(service)
        document = service.post("/api/act-as", json={"name": "mo", "scheme": scheme}, headers=own).json()
        headers = bearer(document["accessToken"])
        body = {member: document["refreshToken"]}
        again = service.post(path or "/api/jwt/refresh", json=body, headers=headers)
        assert again.status_code == 200, again.text
        assert service.get("/api/who", headers=bearer(again.json()["accessToken"])).json() == ACTING
    refreshed = "select user_id, impersonator_id, routine, scheme, status from call where endpoint ~ 'refresh$'"
    values = [("42", "41", None, scheme, 200) for scheme in ("BearerToken", "Bearer")]
    wait_until(lambda: set(values) <= set(database.fetch(refreshed)), "refreshing has been written down")


@pytest.fixture(scope="module")
def short(database: Database, serve: Serve, service: Service) -> Service:
    """Provide a service with impersonations of two seconds, on the schema of the other service."""
    return serve(database, "", {**SETTINGS, A + "ImpersonationValid": "2 seconds"}, workers=2)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["BearerToken", "Cookies", "Bearer"])
def test_impersonation_expires(short: Service, scheme: str) -> None:
    """Including sliding expiration: each of these requests would renew the cookie. The user's own session continues."""
    own = signed_in(short)
    began = short.post("/api/act-as", json={"name": "mo", "scheme": scheme}, headers=own)
    headers = session(short, began)
    wait_until(lambda: short.get("/api/who", headers=headers).status_code == 401, "the impersonation of mo has ended")
    assert problem(short.post("/api/be-oneself", headers=headers), 401)
    assert short.get("/api/who", headers=own).json()["u"] == "41"
    if scheme != "Cookies":
        body = began.json()
        assert body["expiresIn"] <= 2
        path, member = {
            "BearerToken": ("/api/token/refresh", "refresh"),
            "Bearer": ("/api/jwt/refresh", "refreshToken"),
        }[scheme]
        assert problem(short.post(path, json={member: body["refreshToken"]}, headers=headers), 401)


def test_impersonation_lasts_at_most_half_an_hour(service: Service) -> None:
    """A refresh gives the remaining time, and a signed token contains it for other services."""
    own = signed_in(service)
    body = service.post("/api/act-as", json={"name": "mo", "scheme": "Bearer"}, headers=own).json()
    first = jwt.decode(body["accessToken"], SECRET, algorithms=["HS256"])
    assert body["refreshExpiresIn"] <= 1800
    again = service.post("/api/jwt/refresh", json={"refreshToken": body["refreshToken"]}).json()
    second = jwt.decode(again["accessToken"], SECRET, algorithms=["HS256"])
    ends = int(jwt.get_unverified_header(body["accessToken"])["actor"]["impersonation_ends_at"])
    assert not {"impersonator_id", "impersonation_ends_at"} & first.keys()
    assert ends <= first["iat"] + 1800
    assert {first["exp"], second["exp"]} <= {ends, ends - 1}  # whole seconds, rounded down


@pytest.mark.parametrize("ends", ["1", "", "soon", "-5", "inf"])
def test_expired_impersonation_is_refused_without_clock_skew_tolerance(service: Service, ends: str) -> None:
    now = int(time.time())
    claims = {"user_id": "42", "iat": now, "exp": now + 600}
    header = {"actor": {"impersonator_id": "41", "impersonation_ends_at": ends}}
    token = jwt.encode(claims, SECRET, algorithm="HS256", headers=header)
    assert problem(service.get("/api/who", headers=bearer(token)), 401)
    refresh = jwt.encode({**claims, "token_type": "refresh"}, SECRET, algorithm="HS256", headers=header)
    assert problem(service.post("/api/jwt/refresh", json={"refreshToken": refresh}), 401)


def test_impersonator_claims_in_a_token_payload_are_ignored(service: Service) -> None:
    """Another issuer may have the same secret, and let its users choose names of claims."""
    now = int(time.time())
    claims = {"user_id": "42", "iat": now, "exp": now + 600}
    assert service.get("/api/who", headers=bearer(jwt.encode(claims, SECRET, algorithm="HS256"))).status_code == 200
    forged = {**claims, "impersonator_id": "41"}
    assert problem(service.get("/api/who", headers=bearer(jwt.encode(forged, SECRET, algorithm="HS256"))), 401)
    refresh = jwt.encode({**forged, "token_type": "refresh"}, SECRET, algorithm="HS256")
    assert problem(service.post("/api/jwt/refresh", json={"refreshToken": refresh}), 401)


def test_impersonation_requires_a_listed_role(service: Service) -> None:
    body = {"name": "mo"}
    assert problem(service.post("/api/act-as", json=body), 401)
    assert problem(service.post("/api/act-as", json=body, headers=signed_in(service, "ola")), 403)
    assert problem(service.post("/api/act-freely", headers=signed_in(service)), 403)["detail"].endswith(
        "list them in authorize"
    )
    assert service.post("/api/act-as", json={"name": "unknown"}, headers=signed_in(service)).status_code == 401
    # `mo` is no supporter, but the supporter `kiri` impersonating `kiri` is one.
    himself = service.post("/api/act-as", json={"name": "kiri"}, headers=signed_in(service))
    twice = service.post("/api/act-as", json=body, headers=session(service, himself))
    assert (twice.status_code, twice.json()["type"]) == (401, "insufficient_user_authentication")
    service.wait_for_log("authorize has to list roles or users")
    service.wait_for_log("user 41 kiri acts as user 42 mo from now on")


def test_an_impersonator_cannot_be_impersonated(service: Service) -> None:
    """Even if the claim with the time of the sign-in is recent."""
    now = int(time.time())
    claims = {"user_id": "41", "user_roles": ["support"], "auth_time": str(now)}
    payload = {**claims, "nbf": now, "iat": now, "exp": now + 600}
    forged = jwt.encode(payload, SECRET, algorithm="HS256", headers={"actor": {"impersonator_id": "43"}})
    refused = service.post("/api/act-as", json={"name": "mo"}, headers=bearer(forged))
    assert (refused.status_code, refused.json()["type"]) == (403, "impersonation")


def test_endpoints_can_refuse_impersonated_sessions(service: Service) -> None:
    own, headers = signed_in(service), acting(service)
    assert service.post("/api/change-password", headers=own).text == "changed"
    refused = service.post("/api/change-password", headers=headers)
    assert (refused.status_code, refused.json()["type"]) == (403, "impersonation")
    # A user who adds a passkey could return as the impersonated user for ever.
    for path in ("/api/passkey/add/options", "/api/passkey/add"):
        refused = service.post(path, headers=headers)
        assert (refused.status_code, refused.json()["type"]) == (403, "impersonation")
    fresh = service.post("/api/pay", headers=headers)
    assert (fresh.status_code, fresh.json()["type"]) == (401, "insufficient_user_authentication")


def test_only_the_impersonator_can_end_the_impersonation(service: Service) -> None:
    assert problem(service.post("/api/be-oneself"), 401)
    assert problem(service.post("/api/be-oneself", headers=signed_in(service)), 403)
    assert problem(service.post("/api/be-any-user", headers=acting(service)), 500)
    service.wait_for_log("the row is not that of the impersonating user")


def test_impersonator_claim_is_set_only_by_impersonation(service: Service) -> None:
    assert problem(service.post("/api/forge"), 500)
    service.wait_for_log("the column impersonator_id has the name of a claim")
    own = signed_in(service)
    assert service.get("/api/who?impersonatorId=99", headers=own).json()["actor"] is None
    assert service.post("/api/who-posted", json={"impersonatorId": "99"}, headers=own).text == ""


def test_audit_trail_records_user_and_impersonator(service: Service, database: Database) -> None:
    headers = acting(service)
    assert service.get("/api/who", headers=headers).status_code == 200
    sql = (
        "select endpoint, user_id, impersonator_id, impersonator_name from call where impersonator_id is not null"
        " and endpoint in ('POST /api/act-as', 'GET /api/who') group by 1, 2, 3, 4 order by 1"
    )
    expected = [("GET /api/who", "42", "41", "kiri"), ("POST /api/act-as", "42", "41", "kiri")]
    wait_until(lambda: set(expected) <= set(database.fetch(sql)), "both calls have been recorded")
    signed = "select count(*) from call where endpoint = 'POST /api/sign-in' and user_id = '41'"
    wait_until(lambda: database.value(signed), "the sign-in has been written down")
