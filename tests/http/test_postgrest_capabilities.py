"""Capabilities of the service that apply to PostgREST's interface: limits, metrics, audit trail, audit, slow requests.

The others have tests of their own: `test_postgrest_cache`, `test_postgrest_openapi`, `test_postgrest_types`,
`test_mcp_tables`, `test_sql_tests_of_postgrest`, `test_tracing`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.command import rowcall
from tests.harness.console import console_client, console_link
from tests.harness.database import Database
from tests.harness.metrics import admin_of, numbers_of
from tests.harness.postgrest import PLAIN, create_roles, token
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve
from tests.http.test_audit_trail import TRAIL

SQL = """
create schema api;
create table api.item (id int primary key, name text);
create table api.secured (id int primary key);
alter table api.secured enable row level security;
create table api.read_only (id int primary key);
insert into api.item values (1, 'a'), (2, 'b'), (3, 'c');
create function api.slow() returns int language sql as 'select 1 from pg_sleep(0.15)';
"""
T = "Service:AuditTrail:"


@pytest.fixture(scope="module")
def roles(database: Database) -> tuple[str, ...]:
    database.execute(TRAIL + SQL)
    roles = create_roles(database, "anon", "member")
    database.execute(
        f"grant usage on schema api to {roles[0]}, {roles[1]}; grant select on api.item, api.read_only to {roles[0]};"
        f"grant insert, update (name) on api.item to {roles[0]}; grant delete on api.secured to {roles[0]};"
        f"grant all on api.item to {roles[1]}"
    )
    return roles


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database, roles: tuple[str, ...]) -> Service:
    settings = {
        **PLAIN,
        "PostgRest:AnonymousRole": roles[0],
        T + "Enabled": "true",
        T + "Interval": "100 milliseconds",
        "Log:SlowRequests:Threshold": "100 milliseconds",
        "Metrics:Enabled": "true",
        "Admin:Url": "http://127.0.0.1:0",
        "Console:Enabled": "true",
        "HttpServer:Limits:MaxRequestBodySize": "1000",
    }
    return serve(database, settings=settings, workers=2)


def test_the_audit_trail_has_requests_with_the_users_of_their_tokens(
    service: Service, database: Database, roles: tuple[str, ...]
) -> None:
    member = token(role=roles[1], sub="41")
    assert service.get("/item?id=eq.1").status_code == 200
    assert service.request("PATCH", "/item?id=eq.1", json={"name": "x"}, headers=member).status_code == 204
    assert service.post("/rpc/nothing", json={}, headers=member).status_code == 404
    assert service.get("/item", headers={"authorization": "Bearer x.y.z"}).status_code == 401
    query = """select endpoint, routine, user_id, scheme, status from call
               where user_id is not null or endpoint = 'GET /item' and status in (200, 401) order by at"""
    wait_until(lambda: len(database.fetch(query)) >= 4, "four calls are recorded")
    assert database.fetch(query)[:4] == [
        ("GET /item", None, None, None, 200),
        ("PATCH /item", None, "41", "PostgREST", 204),
        ("POST /rpc/nothing", None, "41", "PostgREST", 404),
        ("GET /item", None, None, None, 401),
    ]


def test_a_path_with_characters_that_postgresql_cannot_store_is_recorded_with_its_neighbours(
    service: Service, database: Database
) -> None:
    before = len(database.fetch("select from call where endpoint = 'GET /read_only'"))
    for path in ("/read_only", "/%00/%ff", "/read_only"):
        service.get(path)
    wait_until(
        lambda: len(database.fetch("select from call where endpoint = 'GET /read_only'")) == before + 2,
        "both neighbours are recorded",
    )
    assert database.fetch(r"select status from call where endpoint = 'GET /\0/�'") == [(404,)]


@pytest.mark.slow
def test_only_annotated_endpoints_are_recorded_if_the_setting_says_so(
    serve_once: Serve, own_database: Database
) -> None:
    own_database.execute(
        TRAIL
        + SQL
        + """
        create function public.noted() returns int language sql as 'select 1';
        comment on function public.noted() is 'HTTP GET /noted
        allow_anonymous
        audit_trail';
        """
    )
    (role,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {role}; grant select on api.item to {role}")
    settings = {
        **PLAIN,
        "Service:RoutineOptions:Enabled": "true",
        "PostgRest:AnonymousRole": role,
        T + "Enabled": "true",
        T + "Interval": "100 milliseconds",
        T + "EveryEndpoint": "false",
    }
    service = serve_once(own_database, settings=settings)
    assert service.get("/item").status_code == 200
    assert service.get("/noted").status_code == 200
    wait_until(lambda: own_database.value("select count(*) from call") == 1, "the call of the endpoint")
    assert own_database.value("select endpoint from call") == "GET /noted"


def test_slow_requests_are_logged(service: Service) -> None:
    assert service.post("/rpc/slow", json={}).status_code == 200
    line = service.wait_for_log("slow request: POST /rpc/slow took ").split("slow request: POST /rpc/slow took ")[1]
    assert " s of it in the database, 1 rows" in line.splitlines()[0]


def test_metrics_measure_the_parts_of_requests(service: Service) -> None:
    for _ in range(5):
        assert service.get("/item").status_code == 200
    labels = {"method": "GET", "route": "/{relation}"}
    with admin_of(service) as admin:
        wait_until(
            lambda: numbers_of(admin).of("rowcall_requests_total", **labels, status="2xx") >= 5,
            "the requests are counted",
        )
        numbers = numbers_of(admin)
    for name in ("rowcall_request_duration_seconds_count", "rowcall_request_database_seconds_count"):
        assert numbers.of(name, **labels) >= 5, name
    assert numbers.of("rowcall_response_bytes_total", **labels) > 100


def test_bodies_beyond_the_limit_are_refused(service: Service) -> None:
    response = service.post("/item", json={"id": 9, "name": "x" * 1000})
    assert response.status_code == 413
    assert service.get("/item?id=eq.9").json() == []


OPEN_WRITES = {
    ("api.item", "anonymous callers of PostgREST's interface may insert, update; it has no row level security"),
    ("api.secured", "anonymous callers of PostgREST's interface may delete"),
}


def open_writes(report: dict[str, Any]) -> set[tuple[str, str]]:
    return {(item["about"], item["message"]) for item in report["findings"] if item["code"] == "anonymous-write"}


def test_the_console_lists_what_anonymous_callers_may_write(service: Service) -> None:
    address, token = console_link(service)
    with console_client(address, token) as client:
        assert client.post("/console/api/session").status_code == 200
        del client.headers["authorization"]
        assert open_writes(client.get("/console/api/diagnosis").json()) == OPEN_WRITES


def test_the_audit_lists_what_anonymous_callers_may_write(
    database: Database, roles: tuple[str, ...], tmp_path: Path
) -> None:
    settings = {**PLAIN, "PostgRest:AnonymousRole": roles[0], "PostgRest:JwtSecret": "keep-this-secret" * 3}
    arguments = [f"--{name}={value}" for name, value in settings.items()]
    result = rowcall(tmp_path, "--audit", "--json", f"--ConnectionStrings:Default={database.conninfo}", *arguments)
    report = json.loads(result.stdout)
    assert ("*", "/*", "PostgREST's interface") in {
        (route["method"], route["path"], route["part"]) for route in report["routes"]
    }
    assert open_writes(report) == OPEN_WRITES
    assert [item["about"] for item in report["findings"] if item["code"] == "weak-key"] == ["PostgRest:JwtSecret"]
    assert "keep-this" not in result.stdout
