"""A lookup in PostgreSQL's system caches fails because an object was dropped meanwhile."""

from __future__ import annotations

import pytest

from tests.harness.database import Database, create_database
from tests.harness.expect import TEXT, answer, problem
from tests.harness.postgres import PostgresServer
from tests.http.conftest import Serve

SQL = """
create sequence tries;
create function lookup_fails_once() returns int language sql volatile as $$
  select case when nextval('tries') = 1 then cardinality(array_in('{1}', 99999, -1)::text::int[]) else 7 end $$;
create function lookup_fails() returns int language sql volatile as $$
  select cardinality(array_in('{1}', 99999, -1)::text::int[]) $$;
create function raised() returns int language plpgsql as $$
begin raise exception 'cache lookup failed for type 1' using errcode = 'XX000'; end $$;
comment on function lookup_fails_once() is 'HTTP GET';
comment on function lookup_fails() is 'HTTP GET';
comment on function raised() is 'HTTP GET';
"""


def test_failed_lookup_is_retried_or_reported_as_a_changed_database(own_database: Database, serve_once: Serve) -> None:
    service = serve_once(own_database, SQL)
    assert answer(service.get("/api/lookup-fails-once")) == (200, TEXT, "7")
    refused = service.get("/api/lookup-fails")
    assert problem(refused, 503)["detail"].startswith("the database has changed")
    assert int(refused.headers["retry-after"]) > 0
    # The text alone is no evidence: here the routine itself has raised it.
    problem(service.get("/api/raised"), 500)


@pytest.mark.slow
def test_failed_lookup_reports_an_unreachable_database(own_postgres: PostgresServer, serve_once: Serve) -> None:
    database = create_database(own_postgres)
    service = serve_once(database, SQL, {"ConnectionSettings:Pool:QueueTimeout": "500ms"})
    own_postgres.stop()
    assert "cannot be reached" in problem(service.get("/api/lookup-fails-once"), 503)["detail"]
