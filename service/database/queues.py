"""Queues in the database: their connections, and the loop that attempts what waits in them.

A queue has one connection for queries, and one that waits for notifications."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import psycopg

from rowcall.service.database.connector import Connector

Attempt = Coroutine[Any, Any, None]

LONGEST_WAIT = 5.0
"""Seconds after which a worker looks into a queue without a notification."""
SHORTEST_WAIT = 0.01
TIDY = 5.0
"""Seconds between two removals of what has ended, and between two counts of the rest."""
MOST_REMOVED = 1000
"""Maximum number of entries that are removed at once."""
REMOVAL_PAUSE = 0.05
"""Seconds between two removals while there is more to remove."""


class QueueConnection:
    """Queries of a queue, one at a time. Use: `async with queue.open(channel, on_notification):`."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def open(self, channel: str, notify: Callable[[str], None]) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        """Open both connections for the block, and yield the one for queries. channel: the SQL identifier of the
        channel to listen on. notify: called with the payload of each notification. Raises `psycopg.Error`.
        """
        async with await self._connector.open_plain() as queue, await self._connector.open_plain() as listener:
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
        """Raise `psycopg.Error` if the connection for notifications is lost."""
        if self._listening is not None and self._listening.done():
            self._listening.result()
            raise psycopg.OperationalError("the connection for notifications was lost")

    async def query(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query, which runs after those that wait before it. values: for its `%s`. Raises
        `psycopg.Error`.
        """
        async with self._lock:
            if self._connection is None:
                raise psycopg.OperationalError("there is no connection for the queue")
            return await (await self._connection.execute(sql.encode(), values)).fetchall()

    async def remove(self, sql: str, age: float, most: int) -> int:
        """Run a query that removes entries, and return how many were removed, which is its only value. age, most: its
        values in this order: entries are removed after so many seconds, and at most so many of them. Raises
        `psycopg.Error`."""
        ((removed,),) = await self.query(sql, age, most)
        return int(removed)


async def _listen(listener: psycopg.AsyncConnection[Any], notify: Callable[[str], None]) -> None:
    """Call `notify` with the payload of each notification until the connection ends. Raises `psycopg.Error`."""
    async for notification in listener.notifies():
        notify(notification.payload)


class Deliverer(Protocol):
    """The interface of what a `DeliveryLoop` attempts: a queue in the database, such as that of mail."""

    def room(self, running: int) -> tuple[int, float]:
        """Return how many attempts may begin now (0 or less: none), and the seconds after which there may be more.
        running: number of attempts that have not ended.
        """

    async def take(self, most: int) -> Sequence[Attempt]:
        """Take what is due from the queue, at most `most` attempts. Raises `psycopg.Error`."""

    async def remove(self, most: int) -> int:
        """Remove up to `most` old entries that have ended, and return how many were removed. Raises `psycopg.Error`."""

    async def count(self) -> None:
        """Update the counts of the entries if they are measured. Raises `psycopg.Error`."""


class Removal:
    """Removes what has ended from a queue, in parts, every `TIDY` seconds, and faster while there is more to remove."""

    def __init__(self, remove: Callable[[int], Awaitable[int]]) -> None:
        """remove: removes up to so many entries, and returns how many were removed."""
        self._remove = remove
        self._due = 0.0

    @property
    def pause(self) -> float:
        """The seconds until the next part is due."""
        return max(0.0, self._due - time.monotonic())

    async def run_if_due(self) -> None:
        """Remove a part if it is due. The errors of `remove` are raised."""
        if not self.pause:
            removed = await self._remove(MOST_REMOVED)
            self._due = time.monotonic() + (TIDY if removed < MOST_REMOVED else REMOVAL_PAUSE)


class DeliveryLoop:
    """Takes the entries of a queue that are due, and runs the attempt for each in a task of its own."""

    def __init__(
        self,
        connector: Connector,
        deliverer: Deliverer,
        next_due: str,
        values: Sequence[object] = (),
        *,
        gather: float = 0.0,
    ) -> None:
        """next_due: SQL that returns the seconds until the next entry is due, or null. values: for its `%s`. gather:
        seconds to wait before more entries are taken while attempts run, so that the ends of several attempts lead to
        one query."""
        self.queue = QueueConnection(connector)
        self._deliverer = deliverer
        self._removal = Removal(deliverer.remove)
        self._next_due = next_due
        self._values = values
        self._gather = gather
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    def open(self, channel: str) -> AbstractAsyncContextManager[psycopg.AsyncConnection[Any]]:
        """Open the connections of the queue for the block. Each notification of the channel makes `work` look into the
        queue. Raises `psycopg.Error`.
        """
        return self.queue.open(channel, lambda _payload: self._wake.set())

    def stop(self) -> None:
        """Take no further entries, and cancel the attempts that run."""
        self._stopping = True
        for task in list(self._tasks):
            task.cancel()

    async def work(self) -> None:
        """Attempt what is due until `stop` is called. Raises `psycopg.Error` if a connection is lost."""
        counted = -TIDY
        while not self._stopping:
            self._wake.clear()
            self.queue.check()
            await self._removal.run_if_due()
            if time.monotonic() - counted > TIDY:
                counted = time.monotonic()
                await self._deliverer.count()
            if self._gather and self._tasks:
                await asyncio.sleep(self._gather)
            free, pause = self._deliverer.room(len(self._tasks))
            attempts = await self._deliverer.take(free) if free > 0 else ()
            for attempt in attempts:
                task = asyncio.get_running_loop().create_task(attempt)
                self._tasks.add(task)
                task.add_done_callback(self._on_task_done)
            if not attempts or len(attempts) >= free:
                # The end of an attempt makes room, and wakes.
                wait = pause if free <= 0 or attempts else await self._next()
                await self._wait(min(wait, self._removal.pause))

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._wake.set()

    async def _next(self) -> float:
        """Return the seconds until something is due, from `SHORTEST_WAIT` to `LONGEST_WAIT`. Raises `psycopg.Error`."""
        ((seconds,),) = await self.queue.query(self._next_due, *self._values)
        return LONGEST_WAIT if seconds is None else min(LONGEST_WAIT, max(SHORTEST_WAIT, float(seconds)))

    async def _wait(self, seconds: float) -> None:
        """Wait, for at most `seconds`, for a notification or the end of an attempt."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
