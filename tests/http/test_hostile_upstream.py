"""Upstreams whose responses are not HTTP: callers get 502, and no worker ends."""

from __future__ import annotations

import socket

import pytest

from tests.harness.database import Database
from tests.harness.effort import examples, seed
from tests.harness.expect import problem
from tests.harness.hostile_upstream import MALFORMED, Hostile
from tests.harness.service import Service
from tests.harness.upstream import Seen, Upstream, answer
from tests.http.conftest import Serve
from tests.http.hostile import SETTINGS, call_all, schema

SQL = """
create function many_headers(_count int) returns text language plpgsql as $$
begin
  perform set_config('response.headers', json_build_object('X-A', array_fill('1'::text, array[_count]))::text, true);
  return 'x';
end $$;
comment on function many_headers(int) is 'HTTP GET /many-headers';
"""


@pytest.fixture(scope="module")
def service(database: Database, serve: Serve, upstream: Upstream) -> Service:
    return serve(database, schema(upstream.url) + SQL, SETTINGS)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_response_is_502_and_is_not_cached(service: Service, upstream: Upstream, name: str) -> None:
    def behave(_seen: Seen, connection: socket.socket) -> None:
        connection.sendall(MALFORMED[name])

    workers = service.pids()
    upstream.on("/cached", behave)
    upstream.on("/passed", behave)
    number = list(MALFORMED).index(name)
    for path in (f"/cached?n={number}", f"/passed?n={number}"):
        problem(service.get(path), 502)
    upstream.on("/cached", answer("right", content_type="text/plain"))
    assert service.get(f"/cached?n={number}").text == "right"
    assert service.pids() == workers


def test_upstream_headers_up_to_the_limit_are_forwarded(service: Service, upstream: Upstream) -> None:
    upstream.on("/passed", answer("x", headers=[(f"x-{number}", "1") for number in range(490)]))
    assert service.get("/passed?n=1").headers["x-489"] == "1"


@pytest.mark.parametrize("count", [1_100, 30_000])
def test_a_response_of_sql_with_too_many_headers_is_500(service: Service, count: int) -> None:
    workers = service.pids()
    problem(service.get(f"/many-headers?count={count}"), 500)
    service.wait_for_log("the response was rejected: it has more than 1000 headers")  # it comes in batches
    assert service.get("/many-headers?count=900").text == "x"
    assert service.pids() == workers


def test_surplus_upstream_bytes_are_not_read_as_the_next_response(service: Service, upstream: Upstream) -> None:
    """The connection is closed: otherwise the next bytes would complete a partial surplus response."""
    whole = answer("first", content_type="text/plain")
    upstream.on("/passed", whole + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsur")
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    upstream.on("/cached", chunked + b"HTTP/1.1 200 OK\r\nX: ")
    accepted = upstream.accepted
    for number in range(100, 104):
        assert service.get(f"/passed?n={number}").text == "first"
        assert service.get(f"/cached?n={number}").text == "x"
    assert upstream.accepted >= accepted + 7


@pytest.mark.slow
def test_no_response_is_lost_or_swapped(service: Service, upstream: Upstream) -> None:
    """The short form of the drill in `tests/drills`."""
    number = seed("ROWCALL_TEST_HOSTILE_SEED")
    hostile = Hostile(number)
    for path in ("/passed", "/cached", "/transformed", "/typed"):
        upstream.on(path, hostile)
    workers = service.pids()
    rounds = examples(400)
    assert call_all(service, 3, lambda done: done < rounds) == 3 * rounds * 6
    assert service.pids() == workers
