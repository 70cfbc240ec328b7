"""A session of the service's own for short questions, opened when it is needed."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg

from rowcall.service.database.connector import Connector

ANSWER_WITHIN = 2.0
"""Seconds. A server that takes longer is as good as none."""


class Asking:
    """One question at a time."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: psycopg.AsyncConnection[tuple[object, ...]] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, sql: str) -> tuple[object, ...]:
        """The first row. Raises `psycopg.Error`, also when the answer takes too long."""
        async with self._turn:
            try:
                async with asyncio.timeout(ANSWER_WITHIN):
                    return await self._ask(sql)
            except TimeoutError:
                await self._drop()
                raise psycopg.OperationalError(f"no answer within {ANSWER_WITHIN:g} s") from None
            except BaseException:
                await self._drop()
                raise

    async def _ask(self, sql: str) -> tuple[object, ...]:
        if self._connection is None:
            self._connection = await self._connector.open_plain()
        cursor = await self._connection.execute(sql.encode())
        row = await cursor.fetchone()
        if row is None:
            raise psycopg.OperationalError("no row")
        return row

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # What it still runs is nothing that anybody would wait for.
            with contextlib.suppress(psycopg.Error):
                connection.pgconn.finish()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()
