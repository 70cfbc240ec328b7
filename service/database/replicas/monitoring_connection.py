"""A monitoring connection for short queries of the service itself, opened when it is needed."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg

from rowcall.service.database.connector import Connector, shut_down

ANSWER_WITHIN = 2.0
"""Seconds. A server that takes longer counts as unreachable."""


class MonitoringConnection:
    """A connection that runs one query at a time. It is opened at the first query and after a failure."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: psycopg.AsyncConnection[tuple[object, ...]] | None = None
        self._turn = asyncio.Lock()

    async def ask(self, sql: str) -> tuple[object, ...]:
        """Run the query, after those that wait before it, and return its first row. Raises `psycopg.Error`, also if the
        answer takes longer than `ANSWER_WITHIN`.
        """
        async with self._turn:
            loop = asyncio.get_running_loop()
            ends = loop.time() + ANSWER_WITHIN
            try:
                return await self._ask(sql, ends)
            except BaseException as error:
                await self._drop()
                if isinstance(error, TimeoutError | psycopg.Error) and loop.time() >= ends:
                    raise psycopg.OperationalError(f"no answer within {ANSWER_WITHIN:g} s") from None
                raise

    async def _ask(self, sql: str, ends: float) -> tuple[object, ...]:
        """Run the query, on a new connection if there is none, and return its first row.

        ends: time of the event loop after which the attempt to connect raises `TimeoutError`, or the socket of the
        connection is shut down. Raises `psycopg.Error`, also if there is no row.
        """
        connection = self._connection
        if connection is None:
            async with asyncio.timeout_at(ends):
                connection = self._connection = await self._connector.open_plain()
        timer = asyncio.get_running_loop().call_at(ends, shut_down, connection)
        try:
            cursor = await connection.execute(sql.encode())
            row = await cursor.fetchone()
        finally:
            timer.cancel()
        if row is None:
            raise psycopg.OperationalError("no row")
        return row

    async def _drop(self) -> None:
        """Close the connection, if there is one; the next query opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # No result of a statement that may still run is needed.
            with contextlib.suppress(psycopg.Error):
                connection.pgconn.finish()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()
