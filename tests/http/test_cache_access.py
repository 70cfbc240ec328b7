"""Cached responses obey authorization and never reach a caller for whom they were not computed (protection-8 to
protection-11, proxies-5 to proxies-8)."""

from __future__ import annotations

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens

pytestmark = pytest.mark.attack

SQL = """
create sequence runs;
create function ran() returns bigint language sql volatile as $$ select nextval('runs') $$;
create function for_members(_a int) returns bigint language sql as 'select ran()';
comment on function for_members(int) is 'HTTP GET
authorize
cached';
create function for_chiefs(_a int) returns bigint language sql as 'select ran()';
comment on function for_chiefs(int) is 'HTTP GET
authorize boss
cached';
create function mine(_user_id text default null) returns text language sql as $$ select _user_id || ' ' || ran() $$;
comment on function mine(text) is 'HTTP GET
authorize
user_parameters
cached';
create function mine_by_context() returns text language sql as
    $$ select current_setting('request.user_id', true) || ' ' || ran() $$;
comment on function mine_by_context() is 'HTTP GET
user_context
cached';
create function ours(_user_id text default null, _a int default 0) returns text language sql as
    $$ select _user_id || ' ' || ran() $$;
comment on function ours(text, int) is 'HTTP GET
authorize
user_parameters
cached _a';
"""
SETTINGS = {**EVERY_SCHEME, "CacheOptions:Enabled": "true", "CacheOptions:InvalidateCacheSuffix": "purge"}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS, workers=2)


def get(service: Service, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    with service.new_client() as client:
        return client.get(f"/api/{path}", headers=headers)


def post(service: Service, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    with service.new_client() as client:
        return client.post(f"/api/{path}", headers=headers)


@pytest.fixture(scope="module")
def kiri(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken")["accessToken"])


@pytest.fixture(scope="module")
def mo(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken", "mo")["accessToken"])


def test_cached_response_is_not_served_without_access(
    service: Service, kiri: dict[str, str], mo: dict[str, str]
) -> None:
    body = get(service, "for-chiefs?a=1", kiri).text
    for _ in range(4):
        assert get(service, "for-chiefs?a=1").status_code == 401
        assert get(service, "for-chiefs?a=1", mo).status_code == 403
        assert get(service, "for-chiefs?a=1", kiri).text == body


def test_callers_without_access_cannot_invalidate(service: Service, kiri: dict[str, str], mo: dict[str, str]) -> None:
    body = get(service, "for-chiefs?a=2", kiri).text
    assert post(service, "for-chiefs/purge?a=2").status_code == 401
    assert post(service, "for-chiefs/purge?a=2", mo).status_code == 403
    assert get(service, "for-chiefs?a=2", kiri).text == body
    assert post(service, "for-chiefs/purge?a=2", kiri).json() == {"invalidated": True}


def test_users_share_responses_that_are_independent_of_the_caller(
    service: Service, kiri: dict[str, str], mo: dict[str, str]
) -> None:
    assert get(service, "for-members?a=1", kiri).text == get(service, "for-members?a=1", mo).text


@pytest.mark.parametrize("path", ["mine", "mine-by-context"])
def test_claim_parameters_separate_cached_responses_per_caller(
    service: Service, kiri: dict[str, str], mo: dict[str, str], path: str
) -> None:
    his, hers = get(service, path, mo).text, get(service, path, kiri).text
    for _ in range(4):
        assert (get(service, path, mo).text, get(service, path, kiri).text) == (his, hers)
    assert (his.split()[0], hers.split()[0]) == ("42", "41")


@pytest.mark.parametrize("path", ["mine", "mine-by-context"])
def test_invalidation_affects_only_the_response_of_the_caller(
    service: Service, kiri: dict[str, str], mo: dict[str, str], path: str
) -> None:
    his, hers = get(service, path, mo).text, get(service, path, kiri).text
    assert post(service, f"{path}/purge", mo).json() == {"invalidated": True}
    assert get(service, path, mo).text != his
    assert get(service, path, kiri).text == hers


def test_key_without_claim_parameters_shares_responses_and_logs_a_warning(
    service: Service, kiri: dict[str, str], mo: dict[str, str]
) -> None:
    assert get(service, "ours?a=1", kiri).text == get(service, "ours?a=1", mo).text
    assert "GET /api/ours: _user_id is filled from the identity of the caller" in service.log
    assert "GET /api/mine:" not in service.log
