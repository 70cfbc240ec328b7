"""Limits on how often callers may ask: four ways to count, callers distinguished, queues, refusals (limits-1 to
limits-8)."""

from __future__ import annotations

import contextlib
import select
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.expect import problem
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.members import EVERY_SCHEME, bearer, member_sql, tokens
from tests.http.queues import DEADLINES, one_waits_again_when_one_has_left, one_waits_again_when_one_is_over

NAMES = (
    *("fixed", "sliding", "bucket", "gate", "queued", "newest", "per_header", "per_address", "per_user", "said"),
    *("silent", "static", "default_one", "unknown", "typeless", "off", "twin", "waiting", "left_fixed", "left_sliding"),
    *("left_bucket",),
)
SQL = (
    "".join(
        f"create function {name}_limited() returns int language sql as 'select 1';"
        f"comment on function {name}_limited() is 'HTTP GET\n"
        + ("" if name == "default_one" else f"rate_limiter {policy}")
        + "';\n"
        for name in NAMES
        for policy in ["fixed" if name == "twin" else {"said": "with own words"}.get(name, name)]
    )
    + """
create function gate_slow() returns int language sql as 'select 1 from pg_advisory_xact_lock(1)';
comment on function gate_slow() is 'HTTP GET
rate_limiter_policy gate';
create function several(_a int) returns int language sql as 'select 1';
create function several(_a int, _b int) returns int language sql as 'select 2';
comment on function several(int) is 'HTTP POST
authorize
rate_limiter several';
comment on function several(int, int) is 'HTTP POST
authorize
rate_limiter several';
create function queued_slow() returns int language sql as 'select 1 from pg_advisory_xact_lock(2)';
comment on function queued_slow() is 'HTTP GET
rate_limiter_policy_name = queued';
create table key_check (digest text);
create function find_key(_digest text) returns table (user_id int) language sql as
$$insert into key_check values (_digest); select 1$$;
"""
)


def policy(name: str, **fields: object) -> dict[str, str]:
    path = f"RateLimiterOptions:Policies:{name}:"
    keys = {"Enabled": True, "QueueLimit": 0, **fields}
    return {path + key.replace("__", ":"): str(value) for key, value in keys.items()}


PER = "Partition__Sources__0__"
SETTINGS = {
    **EVERY_SCHEME,
    **DEADLINES,
    "ForwardedHeaders:Enabled": "true",
    "ForwardedHeaders:KnownProxies:0": "127.0.0.1",
    "RateLimiterOptions:Enabled": "true",
    "RateLimiterOptions:DefaultPolicy": "default",
    **policy("fixed", Type="FixedWindow", PermitLimit=4, WindowSeconds=3600),
    **policy("sliding", Type="slidingwindow", PermitLimit=4, WindowSeconds=3600, SegmentsPerWindow=4),
    **policy("bucket", Type="TokenBucket", TokenLimit=4, TokensPerPeriod=1, ReplenishmentPeriodSeconds=3600),
    **policy("gate", Type="Concurrency", PermitLimit=2),
    **policy("queued", Type="Concurrency", PermitLimit=1, QueueLimit=2),
    **policy("newest", Type="Concurrency", PermitLimit=1, QueueLimit=1, OldestFirst="false"),
    **policy("several", Type="FixedWindow", PermitLimit=3, WindowSeconds=3600),
    **policy("left_fixed", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600, QueueLimit=1),
    **policy("left_sliding", Type="SlidingWindow", PermitLimit=1, WindowSeconds=3600, QueueLimit=1),
    **policy("left_bucket", Type="TokenBucket", TokenLimit=1, TokensPerPeriod=1, ReplenishmentPeriodSeconds=3600,
             QueueLimit=1),
    **policy("waiting", Type="FixedWindow", PermitLimit=1, WindowSeconds=1, QueueLimit=2),
    **policy("per_header", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600,
             **{PER + "Type": "Header", PER + "Name": "X-Till", "Partition__Sources__1__Type": "Static",
                "Partition__Sources__1__Value": "rest"}),
    **policy("per_address", Type="FixedWindow", PermitLimit=2, WindowSeconds=3600, **{PER + "Type": "IpAddress"}),
    **policy("per_user", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600,
             **{PER + "Type": "Claim", PER + "Name": "user_name", "Partition__BypassAuthenticated": "false"}),
    **policy("static", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600, Partition__BypassAuthenticated="true"),
    **policy("with own words", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600, StatusCode=503,
             StatusMessage="The counter is closed."),
    **policy("silent", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600, StatusMessage=""),
    **policy("default", Type="FixedWindow", PermitLimit=2, WindowSeconds=3600, **{PER + "Type": "Header",
             PER + "Name": "x-default"}),
    **policy("off", Type="FixedWindow", PermitLimit=1, Enabled="false"),
    **policy("unfilled", Type="TokenBucket", AutoReplenishment="false", **{PER + "Type": "Header", PER + "Name": "X Y",
             "Partition__Sources__1__Type": "IpAddress"}),
    **policy("typeless", Type="Turnstile", PermitLimit=1),
    **policy("once", Type="FixedWindow", PermitLimit=1, WindowSeconds=3600, **{PER + "Type": "Header",
             PER + "Name": "x-case"}),
    "Stats:Enabled": "true",
    "Stats:RateLimiterPolicy": "once",
    "Service:McpOptions:Enabled": "true",
    "Service:McpOptions:RateLimiterPolicy": "once",
    "Auth:ApiKey:Enabled": "true",
    "Auth:ApiKey:Command": "select * from find_key($1)",
    "Auth:ApiKey:CacheDuration": "0",
    "HealthChecks:Enabled": "true",
    "HealthChecks:RateLimiterPolicy": "off",
}  # fmt: skip


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, member_sql() + SQL, SETTINGS, workers=2)


@pytest.fixture(scope="module")
def kiri(service: Service) -> dict[str, str]:
    return bearer(tokens(service, "BearerToken")["accessToken"])


def ask(service: Service, name: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """On a connection of its own: any worker may get it. The header keeps the default policy out of it."""
    with service.new_client() as client:
        return client.get(f"/api/{name.replace('_', '-')}", headers=headers)


@pytest.mark.parametrize("name", ["fixed", "sliding", "bucket"])
def test_requests_over_the_limit_are_refused_by_every_worker(service: Service, name: str) -> None:
    responses = [ask(service, f"{name}_limited") for _ in range(8)]
    assert [response.status_code for response in responses] == [200] * 4 + [429] * 4
    refused = problem(responses[-1], 429)
    assert refused == {
        "title": "Too Many Requests", "status": 429, "detail": "Too many requests. Please try again later.",
    }  # fmt: skip
    assert 0 < int(responses[-1].headers["retry-after"]) <= 3600
    assert responses[-1].headers["ratelimit-policy"] == f'"{name}";q=4;w=3600'
    assert responses[-1].headers["ratelimit"].startswith(f'"{name}";r=0;t=')


def test_endpoints_share_a_policy(service: Service) -> None:
    while ask(service, "fixed_limited").status_code == 200:
        pass
    assert ask(service, "twin_limited").status_code == 429


def test_overloads_are_counted_before_one_is_selected(service: Service, kiri: dict[str, str]) -> None:
    def status(headers: dict[str, str], **body: int) -> int:
        return service.request_once("POST", "/api/several", json=body, headers=headers).status_code

    assert [status({}, a=1), status(kiri, a=1), status(kiri, a=1, b=2)] == [401, 200, 200]
    assert {status({}, a=1), status(kiri, a=1), status(kiri, a=1, b=2)} == {429}


def test_callers_are_distinguished_by_a_header(service: Service) -> None:
    def status(**headers: str) -> int:
        return ask(service, "per_header_limited", headers).status_code

    assert [status(**{"x-till": till}) for till in ("1", "2", "1", "2", "1" * 2000)] == [200, 200, 429, 429, 200]
    assert [status(), status(), status(**{"x-till": ""}), status(**{"x-till": "rest"})] == [200, 429, 429, 200]


def test_callers_are_distinguished_by_address(service: Service) -> None:
    assert [ask(service, "per_address_limited").status_code for _ in range(4)] == [200, 200, 429, 429]


def test_ipv6_addresses_of_one_network_are_one_caller(service: Service) -> None:
    addresses = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2::3", "2001:db8:1:3::1"]
    responses = [ask(service, "per_address_limited", {"x-forwarded-for": address}) for address in addresses]
    assert [response.status_code for response in responses] == [200, 200, 429, 200]


def test_callers_are_distinguished_by_a_claim(service: Service, kiri: dict[str, str]) -> None:
    statuses = [ask(service, "per_user_limited", who).status_code for who in (kiri, None, kiri, None)]
    assert statuses == [200, 200, 429, 429]


def test_signed_in_callers_may_be_exempt(service: Service, kiri: dict[str, str]) -> None:
    assert [ask(service, "static_limited").status_code for _ in range(2)] == [200, 429]
    assert {ask(service, "static_limited", kiri).status_code for _ in range(4)} == {200}


def test_a_policy_has_its_own_status_and_message(service: Service) -> None:
    assert [ask(service, "said_limited").status_code for _ in range(2)] == [200, 503]
    assert problem(ask(service, "said_limited"), 503)["detail"] == "The counter is closed."
    assert [ask(service, "silent_limited").status_code for _ in range(2)] == [200, 429]
    assert "detail" not in problem(ask(service, "silent_limited"), 429)


def test_the_default_policy_is_for_endpoints_that_name_none(service: Service) -> None:
    mine = {"x-default": "mine"}
    assert [ask(service, "default_one_limited", mine).status_code for _ in range(3)] == [200, 200, 429]
    assert ask(service, "closed", mine).status_code == 429
    assert ask(service, "off_limited", mine).status_code == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/stats/activity"), ("GET", "/mcp"), ("POST", "/mcp")])
def test_paths_without_an_endpoint_are_limited_before_the_caller_is_identified(
    service: Service, database: Database, method: str, path: str
) -> None:
    headers = {"x-case": method + path, "x-api-key": path}
    statement = f"select count(*) from key_check where digest = encode(sha256('{path}'), 'hex')"
    before = database.value(statement)
    options: dict[str, Any] = {"json": {"jsonrpc": "2.0", "id": 1, "method": "ping"}} if method == "POST" else {}
    assert service.request(method, path, headers=headers, **options).status_code != 429
    assert database.value(statement) == before + 1
    problem(service.request(method, path, headers=headers, **options), 429)
    assert database.value(statement) == before + 1


def test_an_endpoint_with_an_unknown_policy_is_left_out(service: Service) -> None:
    assert "public.unknown_limited(): rate_limiter 'unknown' is none of bucket, default, fixed" in service.log
    assert "rate_limiter 'typeless' is none of" in service.log
    assert {ask(service, name).status_code for name in ("unknown_limited", "typeless_limited")} == {404}


def test_an_endpoint_with_a_disabled_policy_is_served(service: Service) -> None:
    message = (
        "rate_limiter 'off' is switched off (RateLimiterOptions:Policies:off:Enabled): the endpoint is not limited"
    )
    assert message in service.log
    assert [ask(service, "off_limited").status_code for _ in range(3)] == [200, 200, 200]


def test_settings_that_cannot_be_used_are_logged_at_the_start(service: Service) -> None:
    assert "RateLimiterOptions:Policies:typeless is skipped: its Type is none of FixedWindow" in service.log
    assert "RateLimiterOptions:Policies:unfilled:AutoReplenishment has no effect" in service.log
    assert "unfilled:Partition:Sources:0 is skipped: 'X Y' is not the name of a header" in service.log
    assert service.log.count("HealthChecks:RateLimiterPolicy: RateLimiterOptions:Policies:off is switched off") == 1
    assert "effect yet" not in service.log


def test_a_permit_is_held_until_the_response_is_complete(service: Service, database: Database) -> None:
    with ThreadPoolExecutor() as threads:
        with database.locked(1):
            running = [threads.submit(ask, service, "gate_slow") for _ in range(2)]
            wait_until(
                lambda: database.waiting() and len(database.backends("wait_event = 'advisory'")) == 2, "both run"
            )
            refused = [ask(service, "gate_limited") for _ in range(4)]
        assert [item.result().status_code for item in running] == [200, 200]
    assert {response.status_code for response in refused} == {429}
    assert refused[0].headers["retry-after"] == "1"
    assert {ask(service, "gate_limited").status_code for _ in range(8)} == {200}


def test_requests_queue_for_a_permit(service: Service, database: Database) -> None:
    with ThreadPoolExecutor() as threads:
        with database.locked(2):
            first = threads.submit(ask, service, "queued_slow")
            wait_until(database.waiting, "the first one runs")
            later = [threads.submit(ask, service, "queued_limited") for _ in range(4)]
            wait_until(lambda: sum(item.done() for item in later) == 2, "two find no place in the queue")
            assert {item.result().status_code for item in later if item.done()} == {429}
        assert first.result().status_code == 200
        assert Counter(item.result().status_code for item in later) == {200: 2, 429: 2}


@pytest.mark.slow
def test_requests_queue_for_the_next_window(service: Service) -> None:
    with ThreadPoolExecutor() as threads:
        responses = [item.result() for item in [threads.submit(ask, service, "waiting_limited") for _ in range(5)]]
    assert Counter(response.status_code for response in responses)[200] >= 3
    assert max(response.elapsed.total_seconds() for response in responses) >= 0.5


def test_a_disconnected_client_frees_its_place_in_the_queue(service: Service, database: Database) -> None:
    with ThreadPoolExecutor() as threads:
        with database.locked(2):
            first = threads.submit(ask, service, "queued_slow")
            wait_until(database.waiting, "the first one runs")
            with contextlib.ExitStack() as impatient:
                asking = [impatient.enter_context(service.connect()) for _ in range(3)]
                for connection in asking:
                    connection.sendall(b"GET /api/queued-limited HTTP/1.1\r\nHost: x\r\n\r\n")
                refused, _, _ = select.select(asking, [], [], 10)
                assert len(refused) == 1, "two wait and fill the queue, the third is refused at once"
            patient = threads.submit(_until_admitted, service)
            wait_until(
                lambda: service.log.count("/api/queued-limited responded 499") >= 2, "both are noticed to be gone"
            )
        assert first.result().status_code == 200
        assert patient.result() == 200


@pytest.mark.parametrize("name", ["left_fixed", "left_sliding", "left_bucket"])
def test_a_client_that_stops_waiting_for_a_window_frees_its_place(service: Service, name: str) -> None:
    assert ask(service, f"{name}_limited").status_code == 200
    path = f"/api/{name.replace('_', '-')}-limited"
    one_waits_again_when_one_has_left(service, path)
    one_waits_again_when_one_is_over(service, path)


def _until_admitted(service: Service) -> int:
    while (status := ask(service, "queued_limited").status_code) == 429:
        pass
    return status
