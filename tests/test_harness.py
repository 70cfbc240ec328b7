"""The servers of the other tests: each version starts, answers, stops and starts again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.harness.database import Database, create_database, drop_database
from tests.harness.postgres import PostgresServer, free_port


def test_each_server_is_the_version_it_says(every_database: Database) -> None:
    version = int(every_database.value("show server_version_num"))
    assert version // 10000 == every_database.server.major


def test_a_database_is_utf8_and_in_utc(every_database: Database) -> None:
    assert every_database.fetch("select current_setting('server_encoding'), current_setting('timezone')") == [
        ("UTF8", "UTC")
    ]


def test_a_script_of_several_statements_runs_as_one(database: Database) -> None:
    database.execute("create table several (id int); insert into several values (1), (2); -- done")
    assert database.value("select count(*) from several") == 2


def test_a_dropped_database_takes_its_roles_along(postgres: PostgresServer) -> None:
    created = create_database(postgres)
    created.execute(f"create role {created.name}_reader login")
    drop_database(created)
    with psycopg.connect(postgres.conninfo()) as connection:
        roles_left = connection.execute(
            "select count(*) from pg_roles where rolname like %s", [f"{created.name}%"]
        ).fetchone()
    assert roles_left == (0,)


def test_a_stopped_server_refuses_and_serves_again(own_postgres: PostgresServer) -> None:
    own_postgres.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(own_postgres.conninfo())
    own_postgres.start()
    with psycopg.connect(own_postgres.conninfo()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_port_is_given_to_one_process_only() -> None:
    """Also if no program listens at the port yet."""
    ask_for_it = "import sys; from tests.harness import postgres; port = int(sys.argv[1])\n"
    ask_for_it += "postgres._candidates = iter([port, port])\nprint(postgres.free_port())"
    command = [sys.executable, "-c", ask_for_it, str(free_port())]
    process = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    assert "a cycle does not end" in process.stderr
