"""A database for each module or test, and queries about its sessions."""

from __future__ import annotations

import itertools
import os
import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from tests.harness.postgres import PostgresServer

_numbers = itertools.count(1)
_idle: dict[str, psycopg.Connection[tuple[Any, ...]]] = {}
"""The idle session of this process with each database, by connection string: a new session takes the server 8 ms of a
processor."""
_SESSION_DEFAULTS = re.compile(r"\balter\s+(database|role|user|system)\b", re.IGNORECASE)
"""Statements after which new sessions begin with other settings."""


@dataclass(frozen=True)
class Database:
    """`execute` runs scripts, `fetch` reads rows; each call has its own transaction, and a session like a new one.

    The session stays for the next call. For something that needs a database without sessions, call `close`.
    """

    server: PostgresServer
    name: str

    @property
    def conninfo(self) -> str:
        return self.server.conninfo(self.name)

    def conninfo_as(self, user: str) -> str:
        return self.server.conninfo(self.name, user)

    def execute(self, sql: str) -> None:
        """Run one or several statements in one implicit transaction."""
        _execute(self.conninfo, sql)

    def fetch(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        with _session(self.conninfo) as connection:
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

    def close(self) -> None:
        """End the session of this process with the database."""
        if self.conninfo in _idle:
            _idle.pop(self.conninfo).close()

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
    database.close()
    _administer(server, f"drop database if exists {database.name} with (force)")
    with _session(server.conninfo()) as connection:
        pattern = f"{database.name}\\_%"
        roles = connection.execute("select rolname from pg_roles where rolname like %s", [pattern]).fetchall()
        for (role,) in roles:
            connection.execute(f"drop role {role}".encode())


def _administer(server: PostgresServer, *statements: str) -> None:
    for sql in statements:
        _execute(server.conninfo(), sql)


def close_sessions(server: PostgresServer | None = None) -> None:
    """End the idle sessions of this process with a server, or with all servers."""
    for conninfo in list(_idle):
        if server is None or conninfo.startswith(server.conninfo("")):
            _idle.pop(conninfo).close()


def _execute(conninfo: str, sql: str) -> None:
    with _session(conninfo, stays=not _SESSION_DEFAULTS.search(sql)) as connection:
        connection.execute(sql.encode())


@contextmanager
def _session(conninfo: str, *, stays: bool = True) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Provide a session that no other thread uses. It stays for the next call, unless the block has raised an error or
    left a transaction open."""
    connection = _idle.pop(conninfo, None)
    if connection is not None and not _is_usable(connection):
        connection.close()
        connection = None
    if connection is None:
        # Prepared statements would fail after a change of the types of their columns.
        connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    if not stays or connection.info.transaction_status != TransactionStatus.IDLE:
        connection.close()
        return
    connection.execute("discard all")
    if _idle.setdefault(conninfo, connection) is not connection:
        connection.close()


def _is_usable(connection: psycopg.Connection[Any]) -> bool:
    """Return whether an idle session still exists. The server has sent nothing, not even the end of the connection."""
    if connection.closed:
        return False
    readable = select.poll()
    readable.register(connection.fileno(), select.POLLIN)
    return not readable.poll(0)
