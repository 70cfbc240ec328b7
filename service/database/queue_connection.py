"""The connections of a queue in the database: one for queries, and one that waits for notifications."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import psycopg

from rowcall.service.database.connector import Connector


class QueueConnection:
    """Queries of a queue, one at a time. Use: `async with queue.open(channel, on_notification):`."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def open(self, channel: str, notify: Callable[[str], None]) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Open a connection for queries and one that listens, and yield the one for queries. Both are closed after the
        block.

        notify: called with the payload of each notification. Raises `psycopg.Error`.
        """
        async with await self._connector.open_plain() as queue, await self._connector.open_plain() as listener:
            await queue.set_autocommit(True)
            await listener.set_autocommit(True)
            await listener.execute(f"listen {channel}".encode())
            self._connection = queue
            self._listening = asyncio.get_running_loop().create_task(_listen(listener, notify))
            try:
                yield queue
            finally:
                self._connection = None
                self._listening.cancel()
                with contextlib.suppress(asyncio.CancelledError, psycopg.Error):
                    await self._listening

    def check(self) -> None:
        """Raises `psycopg.Error` if the connection for notifications is lost."""
        if self._listening is not None and self._listening.done():
            self._listening.result()
            raise psycopg.OperationalError("the connection for notifications was lost")

    async def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query. Raises `psycopg.Error`."""
        async with self._lock:
            if self._connection is None:
                raise psycopg.OperationalError("there is no connection for the queue")
            return await (await self._connection.execute(sql.encode(), values)).fetchall()


async def _listen(listener: psycopg.AsyncConnection[Any], notify: Callable[[str], None]) -> None:
    async for notification in listener.notifies():
        notify(notification.payload)
