"""Errors that look like a changed schema and that clients can provoke: the service compares the catalogue at most once
an interval, and reads it only if it has changed."""

from __future__ import annotations

import pytest

from tests.harness.database import Database
from tests.harness.expect import TEXT, answer
from tests.http.conftest import Serve

SQL = """
create function kind_of(_name text) returns text language sql stable as $$ select _name::regtype::text $$;
comment on function kind_of(text) is 'HTTP GET /kind-of';
"""
REQUESTS = 200
MOST_LOOKS = 12
"""Each is twice as long after the one before: this many take longer than any run of this test."""


def looks(database: Database) -> int:
    """How often the service has worked out the fingerprint of the catalogue, by the log of the server."""
    text = (database.server.folder / "server.log").read_text(errors="replace")
    return sum(f" {database.name} LOG:" in line and "pg_catalog.pg_operator o where" in line for line in _entries(text))


def _entries(text: str) -> list[str]:
    """Statements go over several lines; those behind the first are indented."""
    entries: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t") and entries:
            entries[-1] += line
        else:
            entries.append(line)
    return entries


@pytest.mark.slow
def test_errors_provoked_by_clients_do_not_cause_readings_of_the_catalogue(
    own_database: Database, serve_once: Serve
) -> None:
    own_database.execute(f"alter database {own_database.name} set log_statement = 'all'")
    service = serve_once(own_database, SQL)
    assert answer(service.get("/kind-of?name=int4")) == (200, TEXT, "integer")
    at_the_start = looks(own_database)
    assert at_the_start >= 1
    status = [service.get(f"/kind-of?name=no_such_type_{number}").status_code for number in range(REQUESTS)]
    assert min(status) >= 400
    assert looks(own_database) - at_the_start <= MOST_LOOKS
    assert "schema snapshot" not in service.log
    own_database.execute(
        "create function later() returns int language sql stable as 'select 1';"
        "comment on function later() is 'HTTP GET /later'; notify rowcall, 'reload'"
    )
    service.wait_for_log("added GET /later")
    assert "schema snapshot 2 is served" in service.log
    assert "schema snapshot 3" not in service.log
