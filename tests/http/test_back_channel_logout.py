"""An issuer reports that a user has signed out there, and sessions end (OpenID Connect Back-Channel Logout 1.0)."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.identity_provider import ALMA, IdentityProvider
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.external import fresh, issuer_settings, session_of, sign_in

SQL = """
create table session (id int generated always as identity, subject text, sid text, ended boolean default false);
create function external_login(_provider text, _email text, _name text, _info json)
returns table (user_id text, user_name text, session_id int) language sql begin atomic
    insert into session (subject, sid) values (_info->>'sub', _info->>'sid') returning subject, _name, id;
end;
create function holds(_id text, _user text) returns boolean language sql stable
as $$select exists (select from session where id = _id::int and not ended)$$;
create table outage (sid text);
create procedure external_logout(_provider text, _subject text, _sid text) language sql begin atomic
    update session set ended = true where _provider = 'Id' and case when _sid is null then subject = _subject
        else sid = _sid and subject = coalesce(_subject, subject) end;
    select 1 / (1 - count(*)) from outage where sid = _sid;
end;
create function me(_user_name text default null) returns text language sql stable as $$select _user_name$$;
comment on function me(text) is E'HTTP GET\\nauthorize\\nuser_parameters';
create table call (calls json);
create procedure audit_trail(_calls json) language sql as 'insert into call values (_calls)';
"""
PATH = "/signin-id/backchannel-logout"
EVENT = "http://schemas.openid.net/event/backchannel-logout"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, provider: IdentityProvider) -> Service:
    settings = {
        "Auth:CookieAuth": "true",
        "Auth:SessionCheckCommand": "select holds($1, $2)",
        # A cached result would outlive the whole test if it were not invalidated.
        "Auth:SessionCheckInterval": "1 hour",
        "Auth:External:Enabled": "true",
        "Auth:External:LoginCommand": "select * from external_login($1,$2,$3,$4)",
        "Service:AuditTrail:Enabled": "true",
        "Service:AuditTrail:Interval": "100 milliseconds",
        **issuer_settings("Id", provider, KeepTokens="true", BackChannelLogout="true"),
        **issuer_settings("Deaf", provider),
    }
    service = serve(database, SQL, settings, workers=2)
    provider.client.redirect_uris.add(f"{service.url}/signin-id")
    return service


def signed_in(service: Service, provider: IdentityProvider, sid: str, **user: str) -> dict[str, str]:
    with provider.bent(claims=lambda claims: {**claims, "sid": sid}, user={**ALMA, **user}):
        response = sign_in(service, "/signin-id")
    assert response.status_code == 200, response.text
    return session_of(response)


def is_valid_on_all_workers(service: Service, session: dict[str, str]) -> bool:
    """Return whether the session is valid on every worker: each connection may reach another one."""
    result = set()
    for _ in range(8):
        with fresh(service) as client:
            result.add(client.get("/api/me", headers=session).status_code)
    assert len(result) == 1, result
    return result == {200}


def notify(service: Service, token: str, path: str = PATH) -> httpx.Response:
    with fresh(service) as client:
        return client.post(path, data={"logout_token": token})


def test_logout_token_with_sid_ends_that_session_on_all_workers(service: Service, provider: IdentityProvider) -> None:
    item, other = signed_in(service, provider, "one"), signed_in(service, provider, "other")
    assert is_valid_on_all_workers(service, item)
    assert is_valid_on_all_workers(service, other)
    response = notify(service, provider.logout_token(sub=ALMA["sub"], sid="one"))
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["cache-control"] == "no-store"
    wait_until(lambda: not _is_valid(service, item), "no worker takes it")
    assert not is_valid_on_all_workers(service, item)
    assert is_valid_on_all_workers(service, other)
    with fresh(service) as client:
        assert client.post("/signin-id/refresh", headers=item).status_code == 401


def _is_valid(service: Service, session: dict[str, str]) -> bool:
    with fresh(service) as client:
        return client.get("/api/me", headers=session).status_code == 200


def test_logout_token_with_sub_ends_all_sessions_of_the_user(service: Service, provider: IdentityProvider) -> None:
    mine = [signed_in(service, provider, f"mine {number}", sub="me") for number in range(2)]
    theirs = signed_in(service, provider, "theirs", sub="them")
    assert notify(service, provider.logout_token(sub="me", typ=None)).status_code == 200
    wait_until(lambda: not any(_is_valid(service, session) for session in mine), "no worker takes them")
    assert is_valid_on_all_workers(service, theirs)


def test_refreshed_tokens_belong_to_the_same_session(service: Service, provider: IdentityProvider) -> None:
    session = signed_in(service, provider, "kept")
    with fresh(service) as client:
        renewed = client.post("/signin-id/refresh", headers=session)
    assert renewed.status_code == 200, renewed.text
    assert notify(service, provider.logout_token(sid="kept")).status_code == 200
    wait_until(lambda: not _is_valid(service, session_of(renewed)), "no worker takes it")


NOW = int(time.time())
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another issuer": ({"iss": "https://id.example"}, "issuer"),
    "another client": ({"aud": "another"}, "udience"),
    "no audience": ({"aud": None}, "aud"),
    "no event": ({"events": None}, "events"),
    "another event": ({"events": {"http://schemas.openid.net/event/other": {}}}, "no logout"),
    "an event that is none": ({"events": {EVENT: True}}, "no logout"),
    "a list of events": ({"events": [EVENT]}, "no logout"),
    "a nonce": ({"nonce": "n"}, "nonce"),
    "an empty nonce": ({"nonce": ""}, "nonce"),
    "no number": ({"jti": None}, "jti"),
    "no user": ({"sub": None, "sid": None}, "neither"),
    "a number for a subject": ({"sub": 7}, "sub|ubject"),
    "a NUL in a session": ({"sid": "a\0"}, "sid"),
    "expired": ({"iat": NOW - 900, "exp": NOW - 600}, "expired"),
    "no end": ({"exp": None}, "exp"),
    "a long life": ({"exp": NOW + 900_000}, "too long"),
    "from the future": ({"iat": NOW + 90_000, "exp": NOW + 90_100}, "not yet valid"),
    "another kind of token": ({"typ": "at+jwt"}, "another kind"),
}


@pytest.mark.parametrize(("claims", "reason"), REFUSED.values(), ids=REFUSED)
def test_invalid_logout_token_ends_no_session(
    service: Service, provider: IdentityProvider, database: Database, claims: dict[str, Any], reason: str
) -> None:
    before = database.value("select count(*) from session where ended")
    response = notify(service, provider.logout_token(**{"sub": ALMA["sub"], **claims}))
    assert response.status_code == 400
    assert response.headers["cache-control"] == "no-store"
    body = response.json()
    assert body["error"] == "invalid_request"
    assert any(part in body["error_description"] for part in reason.split("|")), body
    assert database.value("select count(*) from session where ended") == before


def test_logout_token_with_invalid_signature_ends_no_session(service: Service, provider: IdentityProvider) -> None:
    key = provider.key
    provider.rotate()
    old = provider.key
    provider.key, provider.published = key, [key]
    with provider.bent(key=old):
        forged = provider.logout_token(sub=ALMA["sub"])
    assert notify(service, forged).status_code == 400
    header, payload, _ = provider.logout_token(sub=ALMA["sub"]).split(".")
    # {"alg":"none"}
    assert notify(service, f"eyJhbGciOiJub25lIn0.{payload}.").status_code == 400
    assert notify(service, f"{header}.{payload}.").status_code == 400


def test_logout_token_is_accepted_once(service: Service, provider: IdentityProvider) -> None:
    token = provider.logout_token(sub="another")
    responses = [notify(service, token).status_code for _ in range(6)]
    assert responses == [200, 400, 400, 400, 400, 400]


def test_logout_token_is_accepted_again_if_the_sessions_could_not_be_ended(
    service: Service, provider: IdentityProvider, database: Database
) -> None:
    """By all workers, and only until the sessions have ended."""
    session = signed_in(service, provider, "failing")
    token = provider.logout_token(sid="failing")
    database.execute("insert into outage values ('failing')")
    assert [notify(service, token).status_code for _ in range(6)] == [500] * 6
    assert is_valid_on_all_workers(service, session)
    database.execute("delete from outage")
    assert [notify(service, token).status_code for _ in range(6)] == [200, 400, 400, 400, 400, 400]
    wait_until(lambda: not _is_valid(service, session), "no worker takes it")


def test_malformed_logout_requests_are_refused(service: Service, provider: IdentityProvider) -> None:
    token = provider.logout_token(sub="another")
    with fresh(service) as client:
        assert client.post(PATH, json={"logout_token": token}).status_code == 400
        assert client.post(PATH, data={"logout_token": ""}).status_code == 400
        assert client.post(PATH, data={"logout_token": [token, token]}).status_code == 400
        assert client.post(PATH).status_code == 400
        assert client.get(f"{PATH}?logout_token={token}").status_code == 405
    # A provider without this option has no such path.
    assert notify(service, token, "/signin-deaf/backchannel-logout").status_code == 404
    assert notify(service, token).status_code == 200


def test_back_channel_logout_is_recorded_in_the_audit_trail(
    service: Service, provider: IdentityProvider, database: Database
) -> None:
    session = signed_in(service, provider, "written")
    notify(service, provider.logout_token(sid="written"))
    with fresh(service) as client:
        assert client.post("/signin-id/logout", headers=session).status_code == 303
    sql = (
        "select c->>'endpoint', c->>'userName', (c->>'status')::int from call, json_array_elements(calls) c"
        " where c->>'endpoint' ~ 'signin'"
    )
    expected = {
        ("POST /signin-id", "Alma Dahl", 200),
        ("POST /signin-id/refresh", "Alma Dahl", 200),
        ("POST /signin-id/refresh", None, 401),
        (f"POST {PATH}", None, 200),
        (f"POST {PATH}", None, 400),
        ("POST /signin-id/logout", None, 303),
    }
    wait_until(lambda: expected <= set(database.fetch(sql)), "all of it has been written down")
