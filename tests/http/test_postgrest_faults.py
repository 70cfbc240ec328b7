"""PostgREST's interface while its database, its pool or its sessions fail."""

from __future__ import annotations

import threading

import httpx

from tests.harness.database import Database, create_database
from tests.harness.postgres import PostgresServer
from tests.harness.postgrest import PLAIN, Case, create_roles, error
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema api;
create table api.item (id int primary key);
insert into api.item values (1);
create function api.nap(seconds float) returns int language sql as 'select 1 from pg_sleep(seconds)';
"""


def _prepare(database: Database) -> dict[str, str]:
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {anonymous}; grant all on api.item to {anonymous}")
    return {**PLAIN, "PostgRest:AnonymousRole": anonymous}


def test_a_restart_of_the_database(serve_once: Serve, own_postgres: PostgresServer) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, settings=_prepare(database))
    Case("GET /item", json=[{"id": 1}]).check(service.client)
    own_postgres.stop("immediate")
    refused = wait_until(lambda: _refused(service.get("/item")), "a refusal")
    assert refused.json() == error(refused.json()["code"])
    assert (refused.json()["code"] in ("PGRST000", "PGRST001"), refused.headers["retry-after"]) == (True, "1")
    own_postgres.start()
    wait_until(lambda: service.get("/item").status_code == 200, "the database", 30)
    Case("POST /item", 201, body='{"id": 2}').check(service.client)


def _refused(response: httpx.Response) -> httpx.Response | None:
    return response if response.status_code == 503 else None


def test_a_terminated_session_is_replaced_without_an_error(serve_once: Serve, own_database: Database) -> None:
    service = serve_once(own_database, settings=_prepare(own_database))
    for _ in range(3):
        Case("GET /item", json=[{"id": 1}]).check(service.client)
        own_database.terminate("application_name not like 'pg%' and query not like 'listen%'")


def test_an_exhausted_pool(serve_once: Serve, own_database: Database) -> None:
    pool = {"ConnectionSettings:Pool:ExclusiveConnections": "1", "ConnectionSettings:Pool:QueueTimeout": "500 ms"}
    service = serve_once(own_database, settings={**_prepare(own_database), **pool})
    with service.new_client() as other:
        slow = threading.Thread(target=other.post, args=("/rpc/nap",), kwargs={"json": {"seconds": 3}})
        slow.start()
        wait_until(lambda: own_database.backends("query like '%pg_sleep%' or query like '%nap%'"), "the slow call")
        message = "Timed out acquiring connection from connection pool."
        Case("GET /item", 504, error("PGRST003", message)).check(service.client)
        slow.join()
    Case("GET /item", json=[{"id": 1}]).check(service.client)


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
        with service.new_client() as client:
            for number in range(150):
                rows = client.get(f"/note?select=tenant&id=lte.{number % 20}", headers={"x-tenant": str(tenant)}).json()
                wrong.extend(row for row in rows if row["tenant"] != tenant)

    threads = [threading.Thread(target=ask, args=(number % 2,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
