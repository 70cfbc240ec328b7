"""The log has slow requests with the plan of their statement, and without the values of their parameters."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create table parcel (code text primary key, weight numeric);
create function rest() returns int language plpgsql stable as $$ begin perform pg_sleep(0.4); return 1; end $$;
create function parcels(_code text) returns table (code text, weight numeric) language sql stable as
    $$ select p.code, p.weight from parcel p where p.code = _code and (select rest()) = 1 $$;
comment on function parcels(text) is 'HTTP GET /parcels';
create function without_values() returns int language sql as 'select rest()';
comment on function without_values() is 'HTTP GET /without-values';
create procedure move() language plpgsql as $$ begin perform pg_sleep(0.4); end $$;
comment on procedure move() is 'HTTP POST /move';
"""
SETTINGS = {
    "Log:SlowRequests:Threshold": "200ms",
    "Log:SlowRequests:Plan": "true",
    "Log:SlowRequests:PlanInterval": "1 hour",
}


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve) -> Service:
    return serve(database, SQL, SETTINGS)


def entry(service: Service, of: str) -> str:
    """The entry that says that this was slow, with what stands below it."""
    service.wait_for_log(f"slow request: {of}")
    lines = service.log.splitlines()
    first = next(number for number, line in enumerate(lines) if f"slow request: {of}" in line)
    last = next((n for n in range(first + 1, len(lines)) if not lines[n].startswith("  ")), len(lines))
    return "\n".join(lines[first:last])


@pytest.mark.slow
def test_a_slow_request_is_logged_with_its_plan_and_without_its_values(service: Service) -> None:
    service.get("/parcels?code=only-for-me")
    result = entry(service, "GET /parcels public.parcels took")
    assert "s of it in the database, 0 rows" in result
    assert "on parcel p" in result
    assert "$1" in result
    for _ in range(2):
        service.get("/parcels?code=only-for-me")
    wait_until(lambda: service.log.count("slow request: GET /parcels") == 3, "all are logged")
    assert service.log.count("on parcel p") == 1, "its plan was logged a moment ago"
    assert "only-for-me" not in service.log


@pytest.mark.parametrize(
    ("method", "path", "statement", "expected"),
    [
        ("GET", "/without-values", "GET /without-values", "Result"),
        ("POST", "/move", "POST /move", "its plan cannot be read (42601)"),
    ],
)
def test_other_slow_statements_are_logged_with_their_plan(
    service: Service, method: str, path: str, statement: str, expected: str
) -> None:
    assert service.request(method, path).status_code < 300
    assert expected in entry(service, statement)
