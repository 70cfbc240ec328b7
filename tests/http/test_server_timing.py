"""`HttpServer:ServerTiming`: where the time of a request went."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.upstream import Upstream
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create function some_rows(n int) returns table (a int, b text) language sql stable
    as $$ select i, repeat('x', 100) from generate_series(1, n) i $$;
create function a_scalar() returns int language sql stable as 'select 1';
create function nothing() returns void language sql volatile as '';
create function napping() returns int language sql as 'select 1 from pg_sleep(0.05)';
create function refusing() returns int language plpgsql volatile as 'begin raise exception $$no$$; end';
create function refusing_quickly() returns int language plpgsql stable as 'begin raise exception $$no$$; end';
create function waiting() returns int language sql as 'select 1 from pg_advisory_xact_lock(7)';
create function forwarded() returns void language sql as '';
comment on function forwarded() is E'HTTP GET\\nproxy\\ncached';
comment on function refusing() is 'HTTP GET';
comment on function refusing_quickly() is 'HTTP GET';
comment on function waiting() is 'HTTP GET';
comment on function some_rows(int) is E'HTTP\\ntable_format = html';
comment on function a_scalar() is 'HTTP';
comment on function nothing() is 'HTTP GET';
comment on function napping() is 'HTTP GET';
"""
HEADER = re.compile(r"queue;dur=([\d.]+), database;dur=([\d.]+), render;dur=([\d.]+)")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    settings = {
        "HttpServer:ServerTiming": "true",
        "Service:TableFormatOptions:Enabled": "true",
        "Service:ProxyOptions:Enabled": "true",
        "Service:ProxyOptions:Host": upstream.url,
        "CacheOptions:Enabled": "true",
    }
    return serve(database, SQL, settings)


@pytest.mark.slow
@pytest.mark.parametrize("path", ["some-rows?n=10", "some-rows?n=20000", "some-rows?n=0", "a-scalar", "nothing"])
def test_every_result_of_a_routine_has_its_times(service: Service, path: str) -> None:
    for _ in range(20):
        assert HEADER.fullmatch(service.get(f"/api/{path}").headers["server-timing"])


@pytest.mark.parametrize("path", ["refusing", "refusing-quickly"])
def test_an_error_of_the_database_has_server_timing(service: Service, path: str) -> None:
    for _ in range(60):
        response = service.get(f"/api/{path}")
        assert response.status_code == 400
        assert HEADER.fullmatch(response.headers["server-timing"])


def test_a_request_that_was_never_run_reports_only_its_wait(database: Database, service: Service, serve: Serve) -> None:
    """The fixture `service` loads the functions."""
    pool = {"ExclusiveConnections": "1", "QueueLimit": "1", "QueueTimeout": "100 ms"}
    settings = {f"ConnectionSettings:Pool:{key}": value for key, value in pool.items()}
    full = serve(database, settings={"HttpServer:ServerTiming": "true", **settings})
    with ThreadPoolExecutor() as threads:
        with database.locked(7):
            first = threads.submit(full.get, "/api/waiting")
            wait_until(database.waiting, "the first request waits for the lock")
            refused = full.get("/api/waiting")
        assert first.result().status_code == 200
    assert refused.status_code == 503
    match = HEADER.fullmatch(refused.headers["server-timing"])
    assert match is not None
    assert float(match[1]) > 0
    assert [float(match[2]), float(match[3])] == [0, 0]


def test_database_time_excludes_rendering(service: Service) -> None:
    match = HEADER.fullmatch(service.get("/api/napping").headers["server-timing"])
    assert match is not None
    assert float(match[2]) >= 50 > float(match[3])


def test_responses_are_complete_with_server_timing_enabled(service: Service) -> None:
    body = service.get("/api/some-rows?n=3").text
    assert body.count("<tr>") == 4
    assert service.get("/api/a-scalar").text == "1"


def test_head_has_server_timing_and_an_unknown_path_does_not(service: Service) -> None:
    assert "database;dur=" in service.request("HEAD", "/api/a-scalar").headers["server-timing"]
    assert "server-timing" not in service.get("/api/nowhere").headers


def test_a_cached_response_of_another_service_has_no_time_of_an_earlier_request(service: Service) -> None:
    first, second = (service.get("/api/forwarded") for _ in range(2))
    assert re.fullmatch(r"upstream;dur=[\d.]+", first.headers["server-timing"])
    assert first.status_code == second.status_code
    assert "server-timing" not in second.headers


def test_server_timing_is_off_by_default(database: Database, service: Service, serve: Serve) -> None:
    """The fixture `service` loads the functions."""
    assert "server-timing" not in serve(database).get("/api/a-scalar").headers
