"""PostgREST's interface with a schema of thousands of tables: requests are answered while it is read again."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.harness.database import Database
from tests.harness.postgrest import PLAIN, create_roles
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

TABLES = 2000
SQL = f"""do $$ begin
for number in 1..{TABLES} loop
  execute format('create table api.t%s (id int primary key, up int %s, name text default ''x'')', number,
                 case when number > 1 then 'references api.t' || number / 2 end);
  if number % 100 = 0 then commit; end if;
end loop; end $$"""


@pytest.fixture(scope="module")
def service(serve: Serve, database: Database) -> Service:
    database.execute("create schema api")
    database.execute(SQL)
    (anonymous,) = create_roles(database, "anon")
    database.execute(
        f"grant usage on schema api to {anonymous}; grant select on all tables in schema api to {anonymous}"
    )
    database.execute(f"alter default privileges in schema api grant select on tables to {anonymous}")
    database.execute("insert into api.t1 values (1, null)")
    return serve(database, settings={**PLAIN, "PostgRest:AnonymousRole": anonymous})


class Caller:
    """Sends one request after the other until the end of the block, and keeps the bodies of the responses."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.bodies: list[object] = []

    def __enter__(self) -> Caller:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._ending.is_set():
            self.bodies.append(self._service.request_once("GET", "/t1?select=id").json())


@pytest.mark.slow
def test_requests_are_answered_while_the_schema_is_read_again(service: Service, database: Database) -> None:
    database.execute("create table api.late (id int references api.t1)")
    with Caller(service) as caller, psycopg.connect(database.conninfo) as blocking:
        # The reading needs this catalogue and has to wait; requests do not.
        blocking.execute("lock table pg_catalog.pg_description in access exclusive mode")
        database.execute("notify pgrst, 'reload schema'")
        wait_until(lambda: database.backends("wait_event_type = 'Lock'"), "the reading", 60)
        before = len(caller.bodies)
        wait_until(lambda: len(caller.bodies) > before + 20, "further responses")
        assert service.get("/late").status_code == 404
        blocking.rollback()
        wait_until(lambda: service.get("/late").status_code == 200, "the new table", 60)
        assert service.get("/late?select=id,t1(name)").json() == []
    assert set(map(str, caller.bodies)) == {"[{'id': 1}]"}


@pytest.mark.slow
def test_unchanged_tables_are_not_sent_again(service: Service, database: Database) -> None:
    """A worker that gets the whole schema again would say so in the log."""
    database.execute("comment on table api.t7 is 'changed'; notify pgrst, 'reload schema'")
    wait_until(lambda: "changed" in str(service.get("/").json()["definitions"]["t7"]), "the comment", 60)
    assert "gets the whole schema snapshot" not in service.log


@pytest.mark.slow
def test_requests_are_answered_while_the_schema_is_described(service: Service) -> None:
    with Caller(service) as caller:
        documents = [service.get("/", headers={"host": f"h{number}"}).json() for number in range(3)]
        before = len(caller.bodies)
        wait_until(lambda: len(caller.bodies) > before, "a further response")
    assert {len(document["paths"]) > TABLES for document in documents} == {True}
    assert set(map(str, caller.bodies)) == {"[{'id': 1}]"}
