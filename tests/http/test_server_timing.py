"""`HttpServer:ServerTiming`: where the time of a request went."""

from __future__ import annotations

import re

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.http.conftest import Serve

SQL = """
create function some_rows(n int) returns table (a int, b text) language sql stable
    as $$ select i, repeat('x', 100) from generate_series(1, n) i $$;
create function a_scalar() returns int language sql stable as 'select 1';
create function nothing() returns void language sql volatile as '';
create function napping() returns int language sql as 'select 1 from pg_sleep(0.05)';
comment on function some_rows(int) is E'HTTP\\ntable_format = html';
comment on function a_scalar() is 'HTTP';
comment on function nothing() is 'HTTP GET';
comment on function napping() is 'HTTP GET';
"""
HEADER = re.compile(r"queue;dur=([\d.]+), database;dur=([\d.]+), render;dur=([\d.]+)")


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, {"HttpServer:ServerTiming": "true", "Service:TableFormatOptions:Enabled": "true"})


@pytest.mark.parametrize("path", ["some-rows?n=10", "some-rows?n=100000", "some-rows?n=0", "a-scalar", "nothing"])
def test_every_result_of_a_routine_tells_its_times(service: Service, path: str) -> None:
    for _ in range(20):
        assert HEADER.fullmatch(service.get(f"/api/{path}").headers["server-timing"])


def test_time_in_the_database_is_the_database_s(service: Service) -> None:
    match = HEADER.fullmatch(service.get("/api/napping").headers["server-timing"])
    assert match is not None
    assert float(match[2]) >= 50 > float(match[3])


def test_what_was_measured_is_what_is_served(service: Service) -> None:
    body = service.get("/api/some-rows?n=3").text
    assert body.count("<tr>") == 4
    assert service.get("/api/a-scalar").text == "1"


def test_head_and_unknown_paths_have_no_times(service: Service) -> None:
    assert "server-timing" not in service.request("HEAD", "/api/a-scalar").headers
    assert "server-timing" not in service.get("/api/nowhere").headers


def test_it_is_off_unless_asked_for(database: Database, service: Service, serve: Serve) -> None:
    """`service` is asked for only because it loads the functions."""
    assert "server-timing" not in serve(database).get("/api/a-scalar").headers
