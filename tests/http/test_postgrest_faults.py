"""PostgREST's interface while its database, its pool or its sessions fail."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from tests.harness.database import Database, create_database
from tests.harness.postgres import PostgresServer
from tests.harness.postgrest import PLAIN, Case, create_roles, error
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema api;
create table api.item (id int primary key);
insert into api.item values (1);
"""


def _prepare(database: Database) -> dict[str, str]:
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {anonymous}; grant all on api.item to {anonymous}")
    return {**PLAIN, "PostgRest:AnonymousRole": anonymous}


@pytest.mark.slow
def test_a_restart_of_the_database(serve_once: Serve, own_postgres: PostgresServer) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, settings=_prepare(database))
    Case("GET /item", json=[{"id": 1}]).check(service.client)
    own_postgres.stop("immediate")
    refused = wait_until(lambda: _refused(service.get("/item")), "a refusal")
    assert refused.json() == error(refused.json()["code"])
    assert (refused.json()["code"] in ("PGRST000", "PGRST001"), refused.headers["retry-after"]) == (True, "1")
    unreachable = wait_until(lambda: _with_code(service.get("/item"), "PGRST000"), "an attempt to connect", 30)
    assert (unreachable["message"], unreachable["hint"]) == ("Database connection error.", None)
    # The text of the driver.
    assert f"port {own_postgres.port} failed: Connection refused" in unreachable["details"]
    own_postgres.start()
    wait_until(lambda: service.get("/item").status_code == 200, "the database", 30)
    Case("POST /item", 201, body='{"id": 2}').check(service.client)


def _with_code(response: httpx.Response, code: str) -> dict[str, Any] | None:
    body = response.json()
    return body if isinstance(body, dict) and body.get("code") == code else None


def _refused(response: httpx.Response) -> httpx.Response | None:
    return response if response.status_code == 503 else None


@pytest.mark.slow
def test_a_terminated_session_is_replaced_without_an_error(serve_once: Serve, own_database: Database) -> None:
    service = serve_once(own_database, settings=_prepare(own_database))
    for headers in ({}, {"prefer": "count=planned"}) * 3:
        Case("GET /item?id=eq.1", headers=headers, json=[{"id": 1}]).check(service.client)
        own_database.terminate("application_name not like 'pg%' and query not like 'listen%'")


SINGULAR = {"accept": "application/vnd.pgrst.object+json"}


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{}, SINGULAR], ids=["one segment", "explicit transaction"])
def test_a_call_whose_session_is_terminated_while_it_runs_is_repeated(
    serve_once: Serve, own_database: Database, headers: dict[str, str]
) -> None:
    settings = _prepare(own_database)
    own_database.execute(
        "create function api.add(number int) returns setof api.item language sql as "
        "'select pg_advisory_xact_lock(1); insert into api.item values (number) returning *'"
    )
    service = serve_once(own_database, settings=settings)
    with ThreadPoolExecutor() as threads, service.new_client() as other:
        with own_database.locked(1):
            call = threads.submit(other.post, "/rpc/add", json={"number": 2}, headers=headers)
            (first,) = wait_until(own_database.waiting, "the call")
            own_database.terminate(f"pid = {first}")
            wait_until(lambda: set(own_database.waiting()) - {first}, "the repeated call")
        response = call.result()
    assert (response.status_code, response.json()) == (200, {"id": 2} if headers else [{"id": 2}])
    assert own_database.value("select count(*) from api.item") == 2


@pytest.mark.slow
def test_an_exhausted_pool(serve_once: Serve, own_database: Database) -> None:
    pool = {"ConnectionSettings:Pool:ExclusiveConnections": "1", "ConnectionSettings:Pool:QueueTimeout": "500 ms"}
    settings = _prepare(own_database)
    own_database.execute("create function api.held() returns void language sql as 'select pg_advisory_xact_lock(1)'")
    service = serve_once(own_database, settings={**settings, **pool})
    with service.new_client() as other:
        held = threading.Thread(target=other.post, args=("/rpc/held",), kwargs={"json": {}, "timeout": 60})
        with own_database.locked(1):
            held.start()
            wait_until(own_database.waiting, "the call that holds the connection")
            message = "Timed out acquiring connection from connection pool."
            Case("GET /item", 504, error("PGRST003", message)).check(service.client)
        held.join()
    Case("GET /item", json=[{"id": 1}]).check(service.client)


@pytest.mark.slow
def test_two_tenants_interleaved_see_their_rows_only(serve_once: Serve, own_database: Database) -> None:
    settings = _prepare(own_database)
    own_database.execute(
        "create table api.note as select n as id, n % 2 as tenant from generate_series(1, 20) n;"
        f"grant select on api.note to {settings['PostgRest:AnonymousRole']};"
        "alter table api.note enable row level security;"
        "create policy own on api.note using (tenant = (current_setting('request.headers')::json ->> 'x-tenant')::int)"
    )
    service = serve_once(own_database, settings=settings, workers=2)
    wrong: list[object] = []

    def ask(tenant: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", service.port)
        with contextlib.closing(connection):
            for number in range(2_500):
                connection.request(
                    "GET", f"/note?select=tenant&id=lte.{number % 20}", headers={"X-Tenant": str(tenant)}
                )
                rows = json.loads(connection.getresponse().read())
                expected = (number % 20 + tenant) // 2
                if [row["tenant"] for row in rows] != [tenant] * expected:
                    wrong.append((number, rows))

    _run_all([partial(ask, number % 2) for number in range(4)])
    assert wrong == []


def _run_all(targets: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


READS = 40
"""After so many reads, a fast statement runs on pipelined connections."""


@pytest.mark.slow
def test_a_fast_read_whose_result_grows(serve_once: Serve, own_database: Database) -> None:
    service = serve_once(own_database, settings=_prepare(own_database))
    for _ in range(READS):
        Case("GET /item?select=id", json=[{"id": 1}]).check(service.client)
    own_database.execute("insert into api.item select generate_series(2, 200000)")
    for _ in range(3):
        assert len(service.get("/item?select=id").json()) == 200_000


@pytest.mark.slow
def test_a_fast_read_that_becomes_slow_does_not_hold_up_others(serve_once: Serve, own_database: Database) -> None:
    settings = _prepare(own_database)
    own_database.execute(
        "create table api.delay as select 0.0::float as seconds;"
        "create view api.late as select 1 as x, pg_sleep(seconds) is null as y from api.delay;"
        f"grant select on api.late to {settings['PostgRest:AnonymousRole']}"
    )
    service = serve_once(own_database, settings=settings)
    for _ in range(READS):
        Case("GET /late?select=x", json=[{"x": 1}]).check(service.client)
        Case("GET /item", json=[{"id": 1}]).check(service.client)
    own_database.execute("update api.delay set seconds = 2")
    done: list[str] = []

    def ask(path: str) -> None:
        with service.new_client() as client:
            assert client.get(path).status_code == 200
        done.append(path)

    slow = [threading.Thread(target=ask, args=("/late?select=x,y",)) for _ in range(4)]
    for thread in slow:
        thread.start()
    wait_until(lambda: own_database.backends("query like '%late%' and wait_event = 'PgSleep'"), "the slow reads")
    for _ in range(20):
        ask("/item")
    for thread in slow:
        thread.join()
    assert done.index("/late?select=x,y") >= 20


@pytest.mark.slow
def test_sessions_that_end_during_fast_reads(serve_once: Serve, own_database: Database) -> None:
    service = serve_once(own_database, settings=_prepare(own_database))
    answered: list[int] = []
    stop = threading.Event()

    def ask() -> None:
        with service.new_client() as client:
            while not stop.is_set():
                answered.append(client.get("/item?id=eq.1").status_code)

    def has_answered(least: int) -> bool:
        return len(answered) > least

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for round_ in range(1, 6):
        wait_until(partial(has_answered, round_ * 60), "further responses")
        own_database.terminate("application_name not like 'pg%' and query like '%pgrst_source%'")
    stop.set()
    for thread in threads:
        thread.join()
    assert set(answered) == {200}
