"""Databases for single test files: copies of the tested database, dropped after the file.

PostgreSQL can only copy a database without connections. So one copy, to which no client connects, is made before the
first test, and all other copies are made from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

import psycopg
from psycopg import sql

from rowcall.service.database.connector import ConnectionTarget, Connector
from rowcall.service.startup_error import StartupError

_ADMINISTRATION = ("postgres", "template1")
"""Databases from which others can be created."""

_IS_CLOSED = """
select datacl is not null and not exists (
  select from pg_catalog.aclexplode(datacl) where grantee = 0 and privilege_type = 'CONNECT'
) from pg_catalog.pg_database where datname = %s
"""
"""Whether not everyone may connect to a database."""
_COPY = ("create database {name} template {source}",)
_COPY_OF_CLOSED = (
    "create database {name} template {source} allow_connections false",
    "revoke connect on database {name} from public",
    "alter database {name} allow_connections true",
)
LONGEST_BEGIN = 30
"""Bytes of the name of a database with which the names of its copies begin."""
MAX_ATTEMPTS = 10
"""Attempts to drop a copy, one each second: time for a crashed server to recover."""


class Templates:
    """The copies of the tested databases, for one run. channel: name of the log channel."""

    def __init__(self, channel: str) -> None:
        self._log = logging.getLogger(channel)
        self._numbers = itertools.count()
        self._copying = asyncio.Lock()
        self._made: dict[str, tuple[ConnectionTarget, str]] = {}
        """The first copies, by key of the connection: its target, and the name of the copy."""

    @contextlib.asynccontextmanager
    async def prepare_copies(self, connectors: Iterable[tuple[str, Connector]]) -> AsyncIterator[None]:
        """Provide first copies of the databases of these connections, for `copy`, while the block runs. connectors:
        each with the key of its connection. Raises StartupError if a database cannot be copied.
        """
        try:
            for key, connector in connectors:
                try:
                    self._made[key] = (
                        connector.target,
                        await self._copy_database(connector.target, await _name(connector)),
                    )
                except psycopg.Error as error:
                    why = error.diag.message_detail or ""
                    raise StartupError(f"the database cannot be copied for tests: {str(error).strip()} {why}") from None
            yield
        finally:
            for target, name in self._made.values():
                await self._drop(target, name)
            self._made.clear()

    @contextlib.asynccontextmanager
    async def copy(self, key: str) -> AsyncIterator[Connector]:
        """Provide a connector to a new copy of a prepared database, which is dropped after the block. key: of the
        connection. Raises `psycopg.Error`.
        """
        target, source = self._made[key]
        name = await self._copy_database(target, source)
        try:
            yield Connector(replace(target, parameters={**target.parameters, "dbname": name}))
        finally:
            await asyncio.shield(self._drop(target, name))

    async def _copy_database(self, target: ConnectionTarget, source: str) -> str:
        """Copy a database and return the name of the copy. target: a connection to its server. source: name of the
        database. Raises `psycopg.Error`.

        PostgreSQL does not copy the rights on the database itself. If not everyone may connect to the database, only
        the owner of the copy may connect to it.
        """
        # PostgreSQL would cut a longer name at 63 bytes, and with it the number.
        begin = source.partition("_test_c")[0].encode()[:LONGEST_BEGIN].decode(errors="ignore")
        name = f"{begin}_test_c{os.getpid()}_{next(self._numbers)}"
        names = {"name": sql.Identifier(name), "source": sql.Identifier(source)}
        exists = False
        try:
            async with self._copying, await _administer(target, source) as connection:
                row = await (await connection.execute(_IS_CLOSED, (source,))).fetchone()
                for statement in _COPY_OF_CLOSED if row is not None and row[0] else _COPY:
                    await connection.execute(sql.SQL(statement).format(**names))
                    exists = True
        except BaseException:
            if exists:
                # The caller does not learn its name.
                await asyncio.shield(self._drop(target, name))
            raise
        return name

    async def _drop(self, target: ConnectionTarget, name: str) -> None:
        """Drop a copy, with repeated attempts, because the server may just have crashed. target: a connection to the
        server. name: of the copy. A failure is logged.
        """
        for _ in range(MAX_ATTEMPTS):
            try:
                async with await _administer(target, name) as connection:
                    await connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
            except psycopg.OperationalError as error:
                why = str(error).strip()
                await asyncio.sleep(1)
            except psycopg.Error as error:
                why = str(error).strip()
                break
            else:
                return
        self._log.error("the database %s could not be dropped: %s", name, why)


async def _name(connector: Connector) -> str:
    """Return the name of the database to which a connector connects. Raises `psycopg.Error`."""
    async with await connector.open_plain() as connection:
        row = await (await connection.execute("select current_database()")).fetchone()
    return str(row[0]) if row else ""


async def _administer(target: ConnectionTarget, other_than: str) -> psycopg.AsyncConnection[tuple[object, ...]]:
    """Open a connection from which databases are created and dropped. target: a connection to the server. other_than:
    name of the database to which it must not connect. Raises `psycopg.Error`.
    """
    database = next(database_name for database_name in _ADMINISTRATION if database_name != other_than)
    return await Connector(
        replace(target, parameters={**target.parameters, "dbname": database}, timeout=0)
    ).open_plain()
