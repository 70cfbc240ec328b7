"""A database for each module or test, and queries about its sessions."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.harness.postgres import PostgresServer

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Database:
    """`execute` runs scripts, `fetch` reads rows; each call has its own connection and its own transaction."""

    server: PostgresServer
    name: str

    @property
    def conninfo(self) -> str:
        return self.server.conninfo(self.name)

    def conninfo_as(self, user: str) -> str:
        return self.server.conninfo(self.name, user)

    def execute(self, sql: str) -> None:
        """Run one or several statements in one implicit transaction."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute(sql.encode())

    def fetch(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            return connection.execute(sql.encode(), parameters or None).fetchall()

    def value(self, sql: str, *parameters: object) -> Any:
        """Return the first column of the first row."""
        return self.fetch(sql, *parameters)[0][0]

    def backends(self, condition: str = "true") -> list[int]:
        """Process ids of the client sessions on this database that satisfy an SQL condition, without this one."""
        return [
            pid
            for (pid,) in self.fetch(
                f"select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                f" and backend_type = 'client backend' and ({condition})"
            )
        ]

    def terminate(self, condition: str = "true") -> int:
        """Run `pg_terminate_backend` for the sessions that satisfy the condition and return their number."""
        return int(
            self.value(
                f"select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database()"
                f" and pid <> pg_backend_pid() and backend_type = 'client backend' and ({condition})"
            )
        )

    @contextmanager
    def locked(self, number: int) -> Iterator[None]:
        """Hold an advisory lock until the block ends, so that statements that need it wait for a defined time."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            connection.execute("select pg_advisory_lock(%s)", [number])
            yield

    def waiting(self) -> list[int]:
        """Return the process ids of the sessions that wait for an advisory lock."""
        return self.backends("wait_event_type = 'Lock' and wait_event = 'advisory' and state = 'active'")

    @contextmanager
    def refusing_connections(self) -> Iterator[None]:
        """Refuse new sessions, including those of superusers; existing sessions continue."""
        _administer(self.server, f"alter database {self.name} allow_connections false")
        try:
            yield
        finally:
            _administer(self.server, f"alter database {self.name} allow_connections true")


def create_database(server: PostgresServer) -> Database:
    name = f"test_{os.getpid()}_{next(_numbers)}"
    # Faster than through the write-ahead log, which is the default from version 15 on.
    copied = " strategy file_copy" if server.major >= 15 else ""
    _administer(
        server, f"create database {name} template template0{copied}", f"alter database {name} set lc_monetary = 'C'"
    )
    return Database(server, name)


def drop_database(database: Database) -> None:
    """Drop it with every session still on it, and the roles that tests made for it."""
    server = database.server
    _administer(server, f"drop database if exists {database.name} with (force)")
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        pattern = f"{database.name}\\_%"
        roles = connection.execute("select rolname from pg_roles where rolname like %s", [pattern]).fetchall()
        for (role,) in roles:
            connection.execute(f"drop role {role}".encode())


def _administer(server: PostgresServer, *statements: str) -> None:
    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        for sql in statements:
            connection.execute(sql.encode())
