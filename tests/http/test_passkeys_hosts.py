"""Passkeys on two hosts that share a Redis: what a challenge was issued for is known to both (docs/passkeys.md)."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.docs.pages import FOLDER, read_page
from tests.harness.database import Database
from tests.harness.passkeys import Authenticator
from tests.harness.redis_server import RedisServer
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.test_passkeys import API, HOST, ORIGIN, new_name, options_of, post, refusal, registered, signed_in

PAGE = read_page(FOLDER / "passkeys.md")
UNKNOWN = (400, "challenge_invalid", "Challenge not found")
Hosts = tuple[httpx.Client, httpx.Client]


@pytest.fixture(scope="module")
def services(database: Database, serve: Serve, redis: RedisServer) -> tuple[Service, Service]:
    """Their keys are the same, so that a session of one host holds on the other."""
    keys = """
    create table if not exists key_element (name text primary key, data text);
    create or replace function get_data_protection_keys() returns setof text language sql
        as 'select data from key_element';
    create or replace procedure store_data_protection_keys(_name text, _data text) language sql
        as 'insert into key_element values (_name, _data) on conflict (name) do update set data = excluded.data';
    create table call (calls json);
    create procedure audit_trail(_calls json) language sql as 'insert into call values (_calls)';
    """
    settings = {
        **PAGE.settings,
        "Service:RequiresAuthorization": None,
        "Auth:BearerTokenAuth": "true",
        "Auth:PasskeyAuth:RedisConfiguration": redis.place,
        "Service:AuditTrail:Enabled": "true",
        "Service:AuditTrail:Interval": "100 milliseconds",
        "DataProtection:Storage": "Database",
        "DataProtection:CustomApplicationName": "shop",
    }
    return serve(database, PAGE.sql + keys, settings, workers=2), serve(database, "", settings, workers=2)


@pytest.fixture
def hosts(services: tuple[Service, Service]) -> Iterator[Hosts]:
    """A browser with its cookies, which comes to either of them."""
    with (
        services[0].new_client(headers={"origin": ORIGIN}) as item,
        services[1].new_client(headers={"origin": ORIGIN}) as other,
    ):
        other.cookies = item.cookies
        yield item, other


def test_a_ceremony_begun_on_one_host_can_be_completed_on_another(hosts: Hosts) -> None:
    item, other = hosts
    authenticator = Authenticator(ORIGIN, HOST)
    made = post(other, "register", authenticator.made(options_of(item, "register", {"name": new_name()})))
    assert made.json()["success"], made.text
    response = post(item, "login", authenticator.signed(options_of(other, "login", {})))
    assert response.status_code == 200, response.text


def test_another_user_context_is_refused_on_every_host(hosts: Hosts) -> None:
    item, other = hosts
    authenticator = Authenticator(ORIGIN, HOST)
    begun = options_of(item, "register", {"name": new_name()})
    changed = authenticator.made(begun, userContext={**begun["userContext"], "name": "another user"})
    assert refusal(post(other, "register", changed)) == (400, "challenge_invalid", "User context mismatch")


def test_a_challenge_for_another_user_is_refused_on_every_host(hosts: Hosts) -> None:
    item, other = hosts
    mine, theirs = registered(item), registered(item)
    signed_in(item, mine)
    begun = options_of(item, "add", {})
    item.cookies.clear()
    signed_in(other, theirs)
    assert refusal(post(other, "add", Authenticator(ORIGIN, HOST).made(begun))) == UNKNOWN


def test_a_challenge_that_no_host_has_issued_is_refused(hosts: Hosts, database: Database) -> None:
    """The challenge is in the database, where every role that can call the commands can write one."""
    authenticator = registered(hosts[0])
    begun = options_of(hosts[0], "login", {})
    number = database.value(
        "insert into passkey_challenge (id, challenge, operation, expires_at)"
        " select gen_random_uuid(), challenge, operation, expires_at from passkey_challenge"
        f" where id = '{begun['challengeId']}' returning id"
    )
    signed = authenticator.signed({**begun, "challengeId": str(number)})
    for host in hosts:
        assert refusal(post(host, "login", signed)) == UNKNOWN
    assert post(hosts[1], "login", authenticator.signed(begun)).status_code == 200


def test_passkey_sign_ins_are_recorded_in_the_audit_trail(hosts: Hosts, database: Database) -> None:
    name = new_name()
    authenticator = registered(hosts[0], name)
    assert signed_in(hosts[0], authenticator).status_code == 200
    begun = options_of(hosts[0], "login", {})
    assert post(hosts[1], "login", authenticator.but(origin="https://other.example").signed(begun)).status_code == 401
    sql = (
        "select c->>'endpoint', c->>'userName', (c->>'status')::int from call, json_array_elements(calls) c"
        " where c->>'endpoint' ~ 'login$'"
    )
    expected = {("POST /api/passkey/login", name, 200), ("POST /api/passkey/login", None, 401)}
    wait_until(lambda: expected <= set(database.fetch(sql)), "both logins have been written down")


def test_used_challenges_are_deleted_and_unused_ones_expire(hosts: Hosts, redis: RedisServer) -> None:
    with redis.client() as client:
        client.flushall()
        registered(hosts[0])
        assert client.dbsize() == 0
        options_of(hosts[1], "login", {})
        (key,) = client.keys("rowcall:passkeys:*")
        assert 0 < client.pttl(key) <= 300_000


@pytest.mark.slow
def test_without_redis_each_host_uses_its_own_challenges(
    hosts: Hosts, services: tuple[Service, Service], redis: RedisServer
) -> None:
    """It neither answers nor refuses, as behind a network that swallows everything; then it is back."""
    item, other = hosts
    authenticator = registered(item)
    before = options_of(item, "login", {})
    redis.pause()
    try:
        begun = options_of(item, "login", {})
        unknown = other.post(f"{API}login", json=authenticator.signed(begun))
        assert (unknown.status_code, "retry-after" in unknown.headers) == (503, True)
        assert post(item, "login", authenticator.signed(begun)).status_code == 200
    finally:
        redis.go_on()

    def login() -> bool:
        """Of the workers each has to find out for itself."""
        return post(other, "login", authenticator.signed(options_of(item, "login", {}))).status_code == 200

    wait_until(login, "the other host knows again what this one issues")
    assert post(item, "login", authenticator.signed(before)).status_code == 200
    assert any("is gone" in service.log for service in services)
