"""What the keys of `Auth:PasskeyAuth` change: commands of the operator's own, other columns, laxer rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.passkeys import PRESENT, Authenticator, base64url
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create table credential (id bytea primary key, key bytea, count bigint default 0, said json, claims json);
create sequence runs;
create table recorded (what text, said json);

create function keep(_id bytea, _key bytea, _context json, _analytics json, _claims json) returns void language sql
as $$insert into credential
    values (_id, _key, 0, json_build_object('context', _context, 'analytics', _analytics), _claims)$$;

create function flaky() returns text language plpgsql as $$
begin
    if nextval('runs') < 3 then raise exception 'again' using errcode = '40001'; end if;
    return 'YWJj';
end $$;

create function deep(_levels int) returns json language sql as
$$select (repeat('[', _levels) || repeat(']', _levels))::json where _levels is not null$$;

create function sign_in() returns table (scheme text, user_id int) language sql as $$select 'BearerToken', 7$$;
comment on function sign_in() is E'HTTP POST\\nlogin';
"""

P = "Auth:PasskeyAuth:"
FIXED = "select 200 as code, 'YWJj' as challenge, 7 as challenge_id"
SETTINGS = {
    "Auth:BearerTokenAuth": "true",
    "Auth:CookieAuth": "true",
    "ErrorHandlingOptions:RemoveTypeUrl": "true",
    "RateLimiterOptions:Enabled": "true",
    "RateLimiterOptions:Policies:keys:Type": "FixedWindow",
    "RateLimiterOptions:Policies:keys:Enabled": "true",
    "RateLimiterOptions:Policies:keys:PermitLimit": "60",
    "RateLimiterOptions:Policies:keys:WindowSeconds": "3600",
    "RateLimiterOptions:Policies:keys:QueueLimit": "0",
    "RateLimiterOptions:Policies:keys:Partition:Sources:0:Type": "Header",
    "RateLimiterOptions:Policies:keys:Partition:Sources:0:Name": "X-Till",
    P + "Enabled": "true",
    P + "EnableRegister": "true",
    P + "RateLimiterPolicy": "keys",
    P + "ConnectionName": "keys",
    P + "RelyingPartyName": "Yard",
    P + "StatusColumnName": "code",
    P + "UserVerificationRequirement": "preferred",
    P + "ResidentKeyRequirement": "discouraged",
    P + "AttestationConveyance": "direct",
    P + "ChallengeTimeoutMinutes": "2",
    P + "ValidateSignCount": "false",
    P + "ChallengeAddExistingUserCommand": FIXED + ", 'kiri' as user_name, current_setting('work_mem') as "
    "user_display_name, 'aGFuZGxl' as user_handle, '[]'::json as exclude_credentials, "
    "json_build_object('n', 1.0, 'body', coalesce(deep(($2::json->>'levels')::int), $2::json)) as user_context",
    P + "ChallengeRegistrationCommand": "select ($1::json->>'code')::int as code, $1::json->>'message' as message "
    "where $1::json->>'code' is not null",
    P + "ChallengeAuthenticationCommand": "select coalesce(($2::json->>'code')::int, 200) as code, "
    "'secret' as message, flaky() as challenge, 7 as challenge_id",
    P + "VerifyChallengeCommand": "select decode('616263', 'hex') where $1::bigint = 7",
    P + "AuthenticateDataCommand": "select 200 as code, key as public_key, 9 as sign_count, '{\"a\":1}'::json as "
    "user_context from credential where id = $1",
    P + "CompleteAddExistingUserCommand": "select keep($1, $3, $7, $8, $9)",
    P + "CompleteAuthenticateCommand": "with kept as (insert into recorded select 'login', json_build_object('count', "
    "$2::bigint, 'context', $3::json, 'analytics', $4::json)) select 'BearerToken' as scheme, 41 as user_id",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    keys = database.conninfo + ("&" if "?" in database.conninfo else "?") + "options=-c%20work_mem%3D5MB"
    return serve(database, SQL, {**SETTINGS, "ConnectionStrings:keys": keys})


@pytest.fixture(scope="module")
def caller(service: Service) -> Iterator[httpx.Client]:
    token = service.post("/api/sign-in").json()["accessToken"]
    headers = {"authorization": f"Bearer {token}", "x-till": "one"}
    with service.new_client(headers=headers) as client:
        yield client


def post(client: httpx.Client, path: str, content: Any) -> httpx.Response:
    return client.post(f"/api/passkey/{path}", json=content)


def test_configured_commands_provide_the_options_for_adding_a_key(
    service: Service, caller: httpx.Client, database: Database
) -> None:
    """The origin and the relying party follow from the request; the context is the same however it is written."""
    body = post(caller, "add/options", {"x": 2}).json()
    assert body["challengeId"] == "7"
    assert body["rp"] == {"id": "127.0.0.1", "name": "Yard"}
    assert body["user"] == {"id": "aGFuZGxl", "name": "kiri", "displayName": "5MB"}
    assert (body["timeout"], body["attestation"]) == (120_000, "direct")
    assert body["authenticatorSelection"] == {"residentKey": "discouraged", "userVerification": "preferred"}
    assert body["excludeCredentials"] == []
    assert body["userContext"] == {"n": 1, "body": {"x": 2}, "userHandle": "aGFuZGxl"}
    authenticator = Authenticator(service.url, "127.0.0.1", flags=PRESENT)
    context = {"userHandle": "aGFuZGxl", "body": {"x": 2}, "n": 1}
    made = authenticator.made(body, userContext=context, analyticsData={"screen": [1]})
    assert post(caller, "add", made).json() == {"success": True, "credentialId": base64url(authenticator.id)}
    (stored,) = database.fetch("select said, claims from credential where id = %s", authenticator.id)
    assert stored == ({"context": context, "analytics": {"screen": [1], "ip": "127.0.0.1"}}, {"user_id": "7"})


@pytest.mark.slow
def test_a_login_succeeds_without_a_command_that_stores_the_counter(
    service: Service, caller: httpx.Client, database: Database
) -> None:
    """Twice a passing error, and the command is repeated; the stored counter of 9 is above that of the key."""
    authenticator = Authenticator(service.url, "127.0.0.1", flags=PRESENT)
    assert post(caller, "add", authenticator.made(post(caller, "add/options", {"x": 2}).json())).is_success
    body = post(caller, "login/options", {}).json()
    assert body["challenge"] == "YWJj"
    assert database.value("select last_value from runs") >= 3
    signed = authenticator.signed(body, analyticsData='{"a": "b"}')
    members = post(caller, "login", signed).json()
    assert list(members) == ["tokenType", "accessToken", "expiresIn", "refreshToken"]
    (message,) = database.fetch("select said from recorded where what = 'login'")
    assert message[0] == {"count": 0, "context": {"a": 1}, "analytics": {"a": "b", "ip": "127.0.0.1"}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_user_contexts_that_are_nested_too_deeply_are_refused(caller: httpx.Client, service: Service) -> None:
    refused = post(caller, "add/options", {"x": nested(300)})
    assert (refused.status_code, refused.json()["title"]) == (400, "Invalid JSON in request body")
    failed = post(caller, "add/options", {"levels": 300})
    assert (failed.status_code, failed.json()["title"]) == (500, "Command returned invalid JSON")
    log = "ChallengeAddExistingUserCommand: a column must contain JSON, and contains something else or more than"
    assert log in service.wait_for_log(log)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "body", "status", "code", "title"),
    [
        ("register/options", {"code": 409, "message": "taken"}, 409, "store_failed", "taken"),
        ("register/options", {"code": 403}, 403, "store_failed", "Failed to create registration options"),
        ("register/options", {}, 500, "database_error", "Command returned no row"),
        ("register/options", {"code": 99}, 500, "database_error", "Invalid status"),
        ("register/options", {"code": 200}, 500, "database_error", "Command returned no challenge"),
        ("login/options", {"code": 404}, 404, "authentication_failed", "Authentication failed"),
    ],
)
def test_refusals_of_commands_are_returned_with_their_status(
    caller: httpx.Client, path: str, body: dict[str, object], status: int, code: str, title: str
) -> None:
    """`RemoveTypeUrl` is on: the code stays."""
    response = post(caller, path, body)
    assert (response.status_code, response.json()) == (status, {"type": code, "title": title, "status": status})


def test_missing_origins_are_logged_at_the_start(service: Service) -> None:
    assert "Auth:PasskeyAuth:RelyingPartyOrigins is empty" in service.log


def test_the_policy_limits_all_paths(service: Service) -> None:
    with service.new_client(headers={"x-till": "two"}) as client:
        paths = ("login", "register", "add")
        status = [post(client, paths[number % 3], {}).status_code for number in range(61)]
    assert set(status[:60]) == {400, 401}
    assert status[60] == 429
