"""How far the primary is, now and a while ago: what replicas are measured by.

Only positions are compared, which needs no rights, no clock of a server, and no connection between the two servers: a
replica that has reached where the primary was at a moment is no older than that moment.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque

import psycopg

from rowcall.core.text.wal_position import parse_position
from rowcall.service.background import Background
from rowcall.service.database.connector import Connector
from rowcall.service.database.replicas.monitoring_connection import MonitoringConnection

log = logging.getLogger("rowcall.database")

FLUSHED = "select pg_current_wal_flush_lsn()::text"
"""Replicas get no more than what has been flushed."""
INSERTED = "select pg_current_wal_insert_lsn()::text"
"""Behind every commit that has been answered, also where commits do not wait for the disk."""
REMEMBERED = 1200
"""Samples: ten minutes, one for each half second."""


class Primary:
    def __init__(self, connector: Connector) -> None:
        self._asking = MonitoringConnection(connector)
        self._loop = asyncio.get_running_loop()
        self._samples: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        """When, and a position that the primary had at the latest then."""
        self._waiting: list[asyncio.Future[int]] = []
        self._background = Background()
        self._busy = False

    async def sample(self) -> None:
        """Remembers where the primary is. Where it cannot be reached, what is known stays: nothing newer is known."""
        try:
            position = _position(await self._asking.ask(FLUSHED))
        except psycopg.Error as error:
            log.debug("the position of the primary is not known: %s", " ".join(str(error).split()))
            return
        now = self._loop.time()
        if self._samples and position < self._samples[-1][1]:
            # Another server has become the primary, and not all that the old one wrote had come there.
            self._samples.clear()
        self._samples.append((now, position))

    def behind_since(self, position: int) -> float:
        """The moment (of the event loop) whose state whoever is at `position` is known to have; 0: nothing is missing;
        minus infinity: it is older than all that is remembered, or nothing is known."""
        if not self._samples:
            return -math.inf
        if position >= self._samples[-1][1]:
            return 0.0
        return next((moment for moment, reached in reversed(self._samples) if position >= reached), -math.inf)

    async def position(self) -> int:
        """Behind everything that has been committed before this was called. Raises `psycopg.Error`."""
        waiter: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append(waiter)
        if not self._busy:
            self._busy = True
            self._background.start(self._answer())
        return await waiter

    async def _answer(self) -> None:
        """One question for all who have come before it was asked; the next one for those who come meanwhile."""
        try:
            while self._waiting:
                requested, self._waiting = self._waiting, []
                try:
                    position = _position(await self._asking.ask(INSERTED))
                except psycopg.Error as error:
                    for waiter in requested:
                        if not waiter.done():
                            waiter.set_exception(error)
                    continue
                for waiter in requested:
                    if not waiter.done():
                        waiter.set_result(position)
        finally:
            self._busy = False

    def close(self) -> None:
        self._background.cancel()
        self._asking.close()


def _position(row: tuple[object, ...]) -> int:
    position = parse_position(str(row[0]))
    if position is None:
        raise psycopg.OperationalError("the server gives no position")
    return position
