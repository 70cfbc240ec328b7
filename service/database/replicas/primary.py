"""WAL positions of the primary, now and in the past, with which replicas are compared.

Only positions are compared, which needs no rights, no clock of a server, and no connection between the two servers: a
replica that has reached the position of the primary at a moment is no older than that moment.
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
"""Replicas receive only WAL that has been flushed."""
INSERTED = "select pg_current_wal_insert_lsn()::text"
"""Behind every commit that has been confirmed, also with asynchronous commits."""
REMEMBERED = 1200
"""Samples: ten minutes, with one each half second."""


class Primary:
    """The WAL positions of the primary in the last ten minutes, and now."""

    def __init__(self, connector: Connector) -> None:
        self._asking = MonitoringConnection(connector)
        self._loop = asyncio.get_running_loop()
        self._samples: deque[tuple[float, int]] = deque(maxlen=REMEMBERED)
        """Time of the event loop, and a position that the primary had at the latest then."""
        self._waiting: list[asyncio.Future[int]] = []
        """Callers of `position` for which no query has been sent yet."""
        self._background = Background()
        self._busy = False

    async def sample(self) -> None:
        """Record the position of the primary. If it cannot be reached, the recorded samples stay valid. If its position
        is behind that of the latest sample, another server has become the primary without all WAL of the old one; all
        recorded samples are dropped then, before the new one is added."""
        try:
            position = _position(await self._asking.ask(FLUSHED))
        except psycopg.Error as error:
            log.debug("the position of the primary is not known: %s", " ".join(str(error).split()))
            return
        now = self._loop.time()
        if self._samples and position < self._samples[-1][1]:
            # Another server has become the primary without all WAL of the old one.
            self._samples.clear()
        self._samples.append((now, position))

    def moment_of_position(self, position: int) -> float:
        """Return the time of the event loop up to which a replica that has replayed `position` has all commits of the
        primary. 0: it lacks no commit that is known. Minus infinity: `position` is older than all samples, or there are
        none."""
        if not self._samples:
            return -math.inf
        if position >= self._samples[-1][1]:
            return 0.0
        return next((moment for moment, reached in reversed(self._samples) if position >= reached), -math.inf)

    async def position(self) -> int:
        """Return a position of the write-ahead log that includes everything committed before this call. Raises
        `psycopg.Error`.
        """
        waiter: asyncio.Future[int] = self._loop.create_future()
        self._waiting.append(waiter)
        if not self._busy:
            self._busy = True
            self._background.start(self._answer())
        return await waiter

    async def _answer(self) -> None:
        """Answer all callers of `position`: one query for those that arrived before it, and the next one for those that
        arrive meanwhile. If a query fails, its callers get the error.
        """
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
    """Return the WAL position in the first column. Raises `psycopg.OperationalError` if it has none."""
    position = parse_position(str(row[0]))
    if position is None:
        raise psycopg.OperationalError("the server gives no position")
    return position
