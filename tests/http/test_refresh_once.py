"""A refresh token can be used once, on all workers and hosts together (RFC 9700 4.14.2)."""

from __future__ import annotations

import json
import os
import signal
import string
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import jwt
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, SECRET, bearer, member_sql, tokens

OPAQUE, SIGNED = "/api/token/refresh", "/api/jwt/refresh"

USE_IN_DATABASE = """
create table refresh_token (family text primary key, used int not null, expires timestamptz not null);
create function use_refresh_token(text, int, timestamptz) returns boolean language sql as $$
    insert into refresh_token values ($1, $2, $3)
    on conflict (family) do update set
        used = case when refresh_token.used < excluded.used then excluded.used else 2147483647 end,
        expires = excluded.expires
    returning used = $2
$$;
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    brief = {
        "Auth:Schemes:brief:Type": "Jwt",
        "Auth:Schemes:brief:JwtRefreshExpire": "1 hour",
        "Auth:Schemes:brief:JwtRefreshPath": "/api/brief/refresh",
    }
    return serve(database, member_sql(), {**EVERY_SCHEME, **brief}, workers=2)


def issued(service: Service, scheme: str) -> dict[str, object]:
    """For a user without a password, so that no password is hashed."""
    return tokens(service, scheme, "open")


def signed(service: Service, token: object) -> httpx.Response:
    """Over a connection of its own: any worker may get it."""
    with service.new_client() as client:
        return client.post(SIGNED, json={"refreshToken": token})


def opaque(service: Service, token: object, access: object) -> httpx.Response:
    with service.new_client() as client:
        return client.post(OPAQUE, json={"refresh": token}, headers=bearer(access))


def refreshed(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["refreshToken"])


def refuse(response: httpx.Response) -> None:
    assert "detail" not in problem(response, 401)
    assert response.headers["www-authenticate"] == "Bearer"


def test_each_refresh_token_is_exchanged_for_the_next(service: Service) -> None:
    token = str(issued(service, "Bearer")["refreshToken"])
    for _ in range(10):
        token = refreshed(signed(service, token))


def test_reuse_of_a_refresh_token_revokes_all_tokens_of_the_sign_in(service: Service) -> None:
    first = issued(service, "Bearer")["refreshToken"]
    second = refreshed(signed(service, first))
    third = refreshed(signed(service, second))
    refuse(signed(service, first))
    refuse(signed(service, third))
    service.wait_for_log("Bearer: refused a refresh token that was used before")


def test_of_concurrent_uses_of_a_refresh_token_one_succeeds(service: Service) -> None:
    token = issued(service, "Bearer")["refreshToken"]
    with ThreadPoolExecutor(16) as threads:
        responses = list(threads.map(lambda _: signed(service, token).status_code, range(16)))
    assert sorted(responses) == [200] + [401] * 15


def test_reuse_detection_does_not_affect_other_sign_ins(service: Service) -> None:
    """Of the same person, in the same second: on the telephone and at the desk."""
    sign_ins = [issued(service, "Bearer")["refreshToken"] for _ in range(3)]
    assert len(set(sign_ins)) == 3
    refreshed(signed(service, sign_ins[0]))
    refuse(signed(service, sign_ins[0]))
    for token in sign_ins[1:]:
        refreshed(signed(service, token))


def test_reuse_of_an_opaque_refresh_token_is_refused(service: Service) -> None:
    made = issued(service, "BearerToken")
    access = made["accessToken"]
    second = refreshed(opaque(service, made["refreshToken"], access))
    third = refreshed(opaque(service, second, access))
    refuse(opaque(service, second, access))
    refuse(opaque(service, third, access))


def test_an_opaque_refresh_token_is_not_consumed_without_a_valid_session(service: Service) -> None:
    made = issued(service, "BearerToken")
    problem(opaque(service, made["refreshToken"], "other"), 401)
    refreshed(opaque(service, made["refreshToken"], made["accessToken"]))


def test_another_encoding_of_a_signature_counts_as_the_same_token(service: Service) -> None:
    """32 bytes are 43 characters of base64, and the last one has two bits that say nothing."""
    token = str(issued(service, "Bearer")["refreshToken"])
    refreshed(signed(service, token))
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    for last in alphabet:
        problem(signed(service, token[:-1] + last), 401)


def test_a_refresh_token_issued_before_single_use_is_accepted_once(own_database: Database, serve_once: Serve) -> None:
    """Where no other scheme has the same secret: there it would have to say whose it is."""
    service = serve_once(own_database, member_sql(), EVERY_SCHEME, workers=2)
    claims = jwt.decode(str(issued(service, "Bearer")["refreshToken"]), SECRET, algorithms=["HS256"])
    token = jwt.encode(claims, SECRET, algorithm="HS256")
    refreshed(signed(service, token))
    refuse(signed(service, token))


def test_a_refresh_token_has_the_same_claims_as_npgsqlrest(service: Service) -> None:
    """The header distinguishes the tokens."""
    token = str(issued(service, "Bearer")["refreshToken"])
    claims = jwt.decode(token, SECRET, algorithms=["HS256"])
    assert list(claims) == ["user_id", "user_name", "depot", "token_type", "nbf", "exp", "iat"]
    assert set(jwt.get_unverified_header(token)) == {"alg", "typ", "refresh_id", "refresh_of"}
    access = str(issued(service, "Bearer")["accessToken"])
    assert jwt.get_unverified_header(access) == {"alg": "HS256", "typ": "JWT"}


def test_a_scheme_with_the_same_secret_refreshes_its_own_tokens_only(service: Service) -> None:
    """Or a sign-in that was meant for an hour would go on for weeks (sign-in-13)."""
    brief, lasting = (issued(service, scheme)["refreshToken"] for scheme in ("brief", "Bearer"))
    problem(signed(service, brief), 401)
    with service.new_client() as client:
        problem(client.post("/api/brief/refresh", json={"refreshToken": lasting}), 401)
        assert client.post("/api/brief/refresh", json={"refreshToken": brief}).json()["refreshExpiresIn"] <= 3600
    refreshed(signed(service, lasting))


def test_without_single_use_refresh_tokens_can_be_reused(own_database: Database, serve_once: Serve) -> None:
    settings = {**EVERY_SCHEME, "Auth:RefreshTokenSingleUse": "false"}
    service = serve_once(own_database, member_sql(), settings, workers=2)
    token = issued(service, "Bearer")["refreshToken"]
    for _ in range(6):
        refreshed(signed(service, token))
    assert jwt.get_unverified_header(str(token)) == {"alg": "HS256", "typ": "JWT"}
    made = issued(service, "BearerToken")
    for _ in range(2):
        refreshed(opaque(service, made["refreshToken"], made["accessToken"]))


def test_use_is_recorded_in_a_shared_folder_for_all_hosts(
    own_database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    """And so over a restart, after which nothing else is known."""
    folder = tmp_path / "keys"
    settings = {**EVERY_SCHEME, "DataProtection:Storage": "FileSystem", "DataProtection:FileSystemPath": str(folder)}
    item = serve_once(own_database, member_sql(), settings, workers=2)
    other = serve_once(own_database, settings=settings)
    first = issued(item, "Bearer")["refreshToken"]
    second = refreshed(signed(other, first))
    third = refreshed(signed(item, second))
    refuse(signed(other, second))
    refuse(signed(other, third))
    (file,) = (folder / "used-refresh-tokens").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_use_is_recorded_in_the_database_for_all_hosts(own_database: Database, serve_once: Serve) -> None:
    settings = {**EVERY_SCHEME, "Auth:RefreshTokenUseCommand": "select use_refresh_token($1, $2, $3)"}
    item = serve_once(own_database, member_sql() + USE_IN_DATABASE, settings)
    other = serve_once(own_database, settings=settings)
    first = issued(item, "Bearer")["refreshToken"]
    second = refreshed(signed(other, first))
    third = refreshed(signed(item, second))
    refuse(signed(other, second))
    refuse(signed(item, third))
    lifetime = own_database.value("select extract(epoch from expires - now())::int from refresh_token")
    assert 0 < lifetime <= 7 * 86_400 + 300


def test_recorded_use_survives_a_killed_worker(own_database: Database, serve_once: Serve) -> None:
    """What has been used is known to the supervisor."""
    service = serve_once(own_database, member_sql(), EVERY_SCHEME)
    first = issued(service, "Bearer")["refreshToken"]
    second = refreshed(signed(service, first))
    before = service.pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: service.pids() and not set(service.pids()) & set(before), "another worker is there")
    service.wait_until_ready()
    third = refreshed(signed(service, second))
    refuse(signed(service, first))
    refuse(signed(service, third))


def test_refresh_is_503_if_use_cannot_be_recorded(own_database: Database, serve_once: Serve) -> None:
    settings = {**EVERY_SCHEME, "Auth:RefreshTokenUseCommand": "select use_refresh_token($1, $2, $3)"}
    service = serve_once(own_database, member_sql(), settings)
    token = issued(service, "Bearer")["refreshToken"]
    response = signed(service, token)
    assert response.headers["retry-after"] == "1"
    assert json.loads(response.content)["status"] == 503
    service.wait_for_log("the use of a refresh token cannot be recorded")
    own_database.execute(USE_IN_DATABASE)
    refreshed(signed(service, token))
