"""Users of the service with a role of `Console:Roles` sign in to the console by their own session."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.harness.console import console_client, console_link
from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME

SQL = """
create table person (id int primary key, name text, roles text[], ended boolean not null default false);
insert into person values (1, 'ana', '{operator}'), (2, 'bo', '{clerk}'), (3, 'cleo', '{operator,clerk}');
create function enter(_id int, _scheme text default null)
returns table (user_id int, user_name text, user_roles text[], session_id text, scheme text) language sql stable as
    $$ select id, name, roles, id::text, _scheme from person where id = _id $$;
comment on function enter(int, text) is 'HTTP POST /enter
login';
create function holds(_session text, _user text) returns boolean language sql stable as
    'select not ended from person where id = _user::int';
create function key_owner(_digest text)
returns table (user_id int, user_name text, user_roles text[]) language sql stable as
    $$ select id, name, roles from person
    where _digest = encode(sha256(convert_to('key of ' || name, 'UTF8')), 'hex') $$;
create function act_as(_id int) returns table (user_id int, user_name text, user_roles text[]) language sql stable as
    'select id, name, roles from person where id = _id';
comment on function act_as(int) is 'HTTP POST /act-as
authorize clerk
impersonate';
"""
SETTINGS: dict[str, str | None] = {
    **EVERY_SCHEME,
    "Console:Enabled": "true",
    "Console:AllowActions": "true",
    "Console:Roles:0": "operator",
    "Console:Url": "http://127.0.0.1:0",
    "Auth:SessionCheckCommand": "select holds($1, $2)",
    "Auth:SessionCheckInterval": "0",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Command": "select * from key_owner($1)",
}
NEWS = """
create sequence checks;
create function publish(_text text) returns void language plpgsql as $$ begin raise info '%', _text; end $$;
comment on function publish(text) is E'HTTP POST /publish\nallow_anonymous\nsse news';
"""
HEADER = {"x-rowcall-console": "1"}
REVOKE = "/console/api/actions/revoke-tokens?subject=x"


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS, workers=2)


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    """A client of the console without a session."""
    with console_client(console_link(service)[0]) as opened:
        yield opened


def sign_in_headers(service: Service, person: int, scheme: str) -> dict[str, str]:
    """Return the credentials of a user of the service as headers."""
    with service.new_client() as client:
        response = client.post("/enter", json={"id": person, "scheme": scheme})
        assert response.status_code == 200, response.text
        if scheme == "Cookies":
            return {"cookie": response.headers["set-cookie"].partition(";")[0]}
        return {"authorization": f"Bearer {response.json()['accessToken']}"}


def credentials(service: Service, person: int, name: str, scheme: str) -> dict[str, str]:
    if scheme == "key":
        return {"x-api-key": f"key of {name}"}
    return sign_in_headers(service, person, scheme)


EVERY = pytest.mark.parametrize("scheme", ["Cookies", "BearerToken", "Bearer", "key"])


@EVERY
def test_users_with_a_role_sign_in(service: Service, client: httpx.Client, scheme: str) -> None:
    sent = {**credentials(service, 3, "cleo", scheme), **HEADER}
    response = client.post("/console/api/session", headers=sent)
    assert response.status_code == 200, response.text
    assert 0 < response.json()["expiresIn"] <= 8 * 3600
    session = {"authorization": f"Bearer {response.json()['token']}"}
    operators = client.get("/console/api/sessions", headers=session).json()["operators"]
    assert "cleo" in {item["operator"] for item in operators}
    assert client.get("/console/").status_code == 200  # by the cookie
    assert client.post(REVOKE, headers=HEADER).status_code in (200, 409)
    for value in set(sent.values()) - {"1"}:
        assert value not in json.dumps(operators)
        assert value not in service.log


@pytest.mark.attack
@EVERY
def test_other_users_are_refused(service: Service, client: httpx.Client, scheme: str) -> None:
    sent = {**credentials(service, 2, "bo", scheme), **HEADER}
    assert "operator" in problem(client.post("/console/api/session", headers=sent), 403)["detail"]
    problem(client.get("/console/api/overview", headers=sent), 401)


@pytest.mark.attack
def test_service_session_does_not_authorize_console_requests(service: Service, client: httpx.Client) -> None:
    """Users sign in first, so that a page of the service cannot use the console by the cookie of its visitor."""
    for scheme in ("Cookies", "BearerToken"):
        sent = {**sign_in_headers(service, 1, scheme), **HEADER}
        problem(client.get("/console/api/overview", headers=sent), 401)
        problem(client.post(REVOKE, headers=sent), 401)


@pytest.mark.attack
def test_a_cookie_alone_does_not_sign_in(service: Service, client: httpx.Client) -> None:
    sent = sign_in_headers(service, 1, "Cookies")
    problem(client.post("/console/api/session", headers=sent), 403)
    foreign = {**sent, **HEADER, "origin": "https://evil.example"}
    problem(client.post("/console/api/session", headers=foreign), 403)
    problem(client.post("/console/api/session", headers={**sent, **HEADER, "sec-fetch-site": "same-site"}), 403)


@pytest.mark.attack
@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer a.b.c"},
        {"cookie": ".AspNetCore.Cookies=wrong"},
        {"x-api-key": "key of no user"},
        {"authorization": "Basic YW5hOmFuYQ=="},
    ],
    ids=lambda sent: "-".join(sent) or "nothing",
)
def test_invalid_credentials_do_not_sign_in(client: httpx.Client, sent: dict[str, str]) -> None:
    problem(client.post("/console/api/session", headers={**sent, **HEADER}), 401)


@pytest.mark.attack
def test_impersonating_users_are_refused(service: Service, client: httpx.Client) -> None:
    bo = sign_in_headers(service, 2, "BearerToken")
    response = service.post("/act-as", json={"id": 3}, headers=bo)
    assert response.status_code == 200, response.text
    acting = {"authorization": f"Bearer {response.json()['accessToken']}", **HEADER}
    problem(client.post("/console/api/session", headers=acting), 401)


@pytest.mark.attack
def test_an_action_is_refused_if_the_user_has_lost_the_session(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, SETTINGS, workers=2)
    with console_client(console_link(service)[0]) as client:
        assert client.post(
            "/console/api/session", headers={**sign_in_headers(service, 1, "Cookies"), **HEADER}
        ).is_success
        assert client.post("/console/api/actions/end-session?id=none", headers=HEADER).status_code == 404
        own_database.execute("update person set ended = true where id = 1")
        problem(client.post("/console/api/actions/end-session?id=none", headers=HEADER), 401)
        problem(client.get("/console/api/overview"), 401)


def test_without_roles_users_cannot_sign_in(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL, {**SETTINGS, "Console:Roles:0": None})
    with console_client(console_link(service)[0]) as client:
        for scheme in ("Cookies", "BearerToken"):
            problem(client.post("/console/api/session", headers={**sign_in_headers(service, 1, scheme), **HEADER}), 401)
        assert b'id="own" hidden' in client.get("/console/sign-in").content


def test_sign_in_page_offers_service_session_sign_in(client: httpx.Client) -> None:
    page = client.get("/console/sign-in").text
    assert 'id="own">' in page


@pytest.mark.slow
@pytest.mark.attack
def test_an_ended_session_ends_its_streams(service: Service) -> None:
    address, _ = console_link(service)
    with console_client(address) as client, console_client(address) as other:
        for opened, person in ((client, 1), (other, 3)):
            sent = {**sign_in_headers(service, person, "BearerToken"), **HEADER}
            token = opened.post("/console/api/session", headers=sent).json()["token"]
            opened.headers["authorization"] = f"Bearer {token}"
        with client.stream("GET", "/console/api/live") as stream:
            lines = stream.iter_lines()
            assert next(line for line in lines if line.startswith("data: "))
            operators = other.get("/console/api/sessions").json()["operators"]
            (mine,) = [item["id"] for item in operators if item["operator"] == "ana"][-1:]
            assert other.post(f"/console/api/actions/end-session?id={mine}").status_code == 200
            for _ in lines:  # ends
                pass


@pytest.mark.slow
@pytest.mark.attack
def test_session_is_checked_when_a_stream_opens_and_each_minute(own_database: Database, serve_once: Serve) -> None:
    """The session is checked when an action opens the stream, then each minute."""
    command = "select holds($1, $2) from nextval('checks')"
    service = serve_once(own_database, SQL + NEWS, {**SETTINGS, "Auth:SessionCheckCommand": command})
    with console_client(console_link(service)[0]) as client:
        sent = {**sign_in_headers(service, 1, "Cookies"), **HEADER}
        assert client.post("/console/api/session", headers=sent).is_success
        path, target = "/console/api/actions/open-stream", {"path": "/publish/news"}
        with client.stream("POST", path, json=target, headers=HEADER) as response:
            parts = (line for line in response.iter_lines() if line.startswith("data: "))
            assert "200" in next(parts)
            checks = own_database.value("select last_value from checks")
            for number in range(5):
                service.post("/publish", json={"text": f"text {number}"})
                assert any(f"text {number}" in part for part in parts)
    assert checks >= 2
    assert own_database.value("select last_value from checks") == checks
