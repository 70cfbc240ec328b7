"""Databases of their own for test files: copies of the one that is tested, gone when the file is through."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
from collections.abc import AsyncIterator

import psycopg
from psycopg import sql

from rowcall.service.database.connector import Connector, Target

_numbers = itertools.count(1)
_ADMINISTRATION = ("postgres", "template1")
"""Where a database can be made from another one."""


class Templates:
    def __init__(self, channel: str) -> None:
        self._log = logging.getLogger(channel)
        self._copying = asyncio.Lock()
        """PostgreSQL copies a database that nobody uses, and one copy at a time."""

    @contextlib.asynccontextmanager
    async def copy(self, connector: Connector) -> AsyncIterator[Connector]:
        """Raises `psycopg.Error`: somebody is connected to the database, or it may not be copied."""
        target = connector.target
        async with await connector.open_plain() as connection:
            row = await (await connection.execute("select current_database()")).fetchone()
        source = str(row[0]) if row else ""
        name = f"{source[:30]}_test_{os.getpid()}_{next(_numbers)}"
        async with await self._administer(target, source) as connection, self._copying:
            await connection.execute(
                sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(source))
            )
        try:
            yield Connector(Target({**target.parameters, "dbname": name}, target.pooler, target.timeout))
        finally:
            await asyncio.shield(self._drop(target, source, name))

    async def _administer(self, target: Target, source: str) -> psycopg.AsyncConnection[tuple[object, ...]]:
        database = next(one for one in _ADMINISTRATION if one != source)
        return await Connector(Target({**target.parameters, "dbname": database}, timeout=0)).open_plain()

    async def _drop(self, target: Target, source: str, name: str) -> None:
        try:
            async with await self._administer(target, source) as connection:
                await connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        except psycopg.Error as error:
            self._log.error("the database %s could not be dropped: %s", name, str(error).strip())
