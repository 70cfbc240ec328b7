"""Keys of PostgREST for connections: prepared statements, waiting, and ages of connections."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.harness.database import Database
from tests.harness.postgres import free_port
from tests.harness.postgrest import PLAIN, create_roles, running_by_file
from tests.harness.service import Service
from tests.harness.waiting import wait_until
from tests.http.conftest import Serve

SQL = """
create schema api;
create function api.prepared() returns bigint language sql as 'select count(*) from pg_prepared_statements';
create function api.process() returns int language sql as 'select pg_backend_pid()';
create function api.held() returns int language plpgsql as
  $$ begin perform pg_advisory_xact_lock_shared(4713); return 1; end $$;
"""


@pytest.fixture(scope="module")
def anonymous(database: Database) -> str:
    database.execute(SQL)
    (role,) = create_roles(database, "anon")
    database.execute(f"grant usage on schema api to {role}")
    return role


@contextlib.contextmanager
def served(folder: Path, database: Database, anonymous: str, *lines: str) -> Iterator[str]:
    """Serve a configuration file of PostgREST; returns the address."""
    port = free_port()
    uri = database.conninfo.replace('"', "")
    fixed = (f'db-uri = "{uri}"', 'db-schemas = "api"', f'db-anon-role = "{anonymous}"', f"server-port = {port}")
    (folder / "api.conf").write_text("\n".join((*fixed, 'server-host = "127.0.0.1"', *lines)))
    url = f"http://127.0.0.1:{port}"
    with running_by_file(folder):
        wait_until(lambda: _answers(url), "the service", 90)
        yield url


def _answers(url: str) -> bool:
    try:
        return httpx.post(f"{url}/rpc/process").status_code == 200
    except httpx.TransportError:
        return False


def prepared(service: Service) -> int:
    for _ in range(3):
        response = service.post("/rpc/prepared", json={})
        assert response.status_code == 200
    return int(response.text)


@pytest.mark.slow
def test_statements_are_prepared_by_name_unless_the_key_says_no(
    serve_once: Serve, database: Database, anonymous: str
) -> None:
    settings = {**PLAIN, "PostgRest:AnonymousRole": anonymous}
    assert prepared(serve_once(database, settings=settings)) > 0
    assert prepared(serve_once(database, settings={**settings, "PostgRest:PreparedStatements": "false"})) == 0


@pytest.mark.slow
def test_the_database_may_switch_prepared_statements_off(serve_once: Serve, own_database: Database) -> None:
    own_database.execute(SQL)
    (role,) = create_roles(own_database, "anon")
    own_database.execute(f"grant usage on schema api to {role}")
    service = serve_once(own_database, settings={**PLAIN, "PostgRest:AnonymousRole": role})
    assert prepared(service) > 0
    own_database.execute(
        f"alter role current_user in database {own_database.name} set pgrst.db_prepared_statements = 'false'"
    )
    try:
        own_database.execute("notify pgrst, 'reload config'")
        wait_until(lambda: prepared(service) == 0, "statements without names")
    finally:
        own_database.execute(
            f"alter role current_user in database {own_database.name} reset pgrst.db_prepared_statements"
        )


@pytest.mark.slow
def test_connections_end_with_their_idle_time(tmp_path: Path, database: Database, anonymous: str) -> None:
    with served(tmp_path, database, anonymous, "db-pool-max-idletime = 1") as url:
        process = httpx.post(f"{url}/rpc/process").json()
        wait_until(
            lambda: database.value("select count(*) from pg_stat_activity where pid = %s", process) == 0,
            "the connection is closed",
        )
        assert httpx.post(f"{url}/rpc/process").status_code == 200


@pytest.mark.slow
def test_connections_end_with_their_lifetime(tmp_path: Path, database: Database, anonymous: str) -> None:
    with served(tmp_path, database, anonymous, "db-pool-max-lifetime = 1") as url:
        process = httpx.post(f"{url}/rpc/process").json()
        wait_until(lambda: httpx.post(f"{url}/rpc/process").json() != process, "another connection")


@pytest.mark.slow
def test_requests_wait_for_a_connection_as_long_as_the_key_says(
    tmp_path: Path, database: Database, anonymous: str
) -> None:
    lines = ("db-pool = 1", "db-pool-acquisition-timeout = 1")
    with served(tmp_path, database, anonymous, *lines) as url, ThreadPoolExecutor(1) as pool:
        with database.locked(4713):
            held = pool.submit(lambda: httpx.post(f"{url}/rpc/held", timeout=60))
            wait_until(lambda: bool(database.waiting()), "a request holds the only connection")
            began = time.monotonic()
            response = httpx.post(f"{url}/rpc/process", timeout=60)
            assert (response.status_code, response.json()["code"]) == (504, "PGRST003")
            assert time.monotonic() - began >= 1
        assert held.result().status_code == 200


@pytest.mark.slow
def test_keys_without_effect_are_reported(tmp_path: Path, database: Database, anonymous: str) -> None:
    lines = ("server-reuseport = true", "log-query = true", "db-pool-automatic-recovery = true")
    with served(tmp_path, database, anonymous, *lines):
        log = (tmp_path / "log").read_text()
    assert "api.conf: server-reuseport = true has no effect: " in log
    assert "api.conf: log-query = true has no effect: " in log
    assert "db-pool-automatic-recovery" not in log
